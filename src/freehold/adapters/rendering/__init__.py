"""Frozen facts as a mail that people want to read: HTML, plain text, a table, and the bytes of all."""

from freehold.adapters.rendering.renderer import MimeRenderer

__all__ = ["MimeRenderer"]
