"""Spans of time as a person reads them."""

from __future__ import annotations

from datetime import timedelta


def span(length: timedelta) -> str:
    """Write a span of time in its two largest units."""
    seconds = length.total_seconds()
    if seconds < 10:  # noqa: PLR2004 - below that a person reads tenths
        return f"{seconds:.1f} s".replace(".0 s", " s")
    left, parts = int(seconds), []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2])
