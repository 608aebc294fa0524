"""Dice whose whole luck follows from a seed, on every version of Python."""

from __future__ import annotations

import hashlib
from itertools import count


class SeededDice:
    """Implements `ports.system.Dice`; the n-th draw of one seed is always the same."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._numbers = count(1)

    def luck(self) -> float:
        """Return the next draw in [0, 1)."""
        return (int.from_bytes(self._draw()[:8], "big") >> 11) / 2**53

    def name(self) -> str:
        """Return the next name."""
        return self._draw().hex()[:32]

    def _draw(self) -> bytes:
        return hashlib.sha256(f"{self.seed} {next(self._numbers)}".encode()).digest()
