"""Freehold on real bookings of two hotels, and on a small synthesised sample with the same dirt."""
