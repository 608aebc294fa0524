"""What Freehold tells of its work."""
