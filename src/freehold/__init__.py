"""Freehold frees holds: on time, once, never the wrong one, and provably so."""

__version__ = "0.1.0"
