"""The demonstration: a small shop with holds in its own table, and the service beside it."""
