"""What a loop of the service is, and how long loops wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

AWAY_FIRST_SECONDS = 0.25
AWAY_MOST_SECONDS = 5.0
FIRST_SECONDS = 0.01
SHORTEST_SECONDS = 0.02  # holds that fall due closer together than this share a scan
AHEAD_SECONDS = 0.1  # a scan that is 20 batches ahead of the workers looks again after this


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop: its name, one step that returns seconds to wait, and what ends it.

    Attributes:
        wake: set when there is something to do before those seconds are over.
    """

    name: str
    step: Callable[[], float]
    close: Callable[[], None]
    wake: threading.Event | None = None


@dataclass(slots=True)
class AwayPause:
    """Pauses that double while the other side is away."""

    most_seconds: float = AWAY_MOST_SECONDS
    _next_seconds: float = AWAY_FIRST_SECONDS

    def next_seconds(self) -> float:
        """Return the seconds to wait after one more failure."""
        pause = self._next_seconds
        self._next_seconds = min(pause * 2, self.most_seconds)
        return pause

    def end(self) -> None:
        """Begin with the short pause again."""
        self._next_seconds = AWAY_FIRST_SECONDS


class IdlePause:
    """Pauses that double while nothing comes, and are short again when a hold falls due."""

    def __init__(self, most_seconds: float, until_due: Callable[[], float]) -> None:
        """Begin with the short pause.

        Args:
            until_due: returns seconds until the next hold falls due.
        """
        self._most = most_seconds
        self._until_due = until_due
        self._next = FIRST_SECONDS

    def after(self, *, busy: bool) -> float:
        """Return the seconds to wait after a pass."""
        if busy:
            self._next = FIRST_SECONDS
            return 0.0
        pause, self._next = self._next, min(self._next * 2, self._most)
        due_in = self._until_due()
        if due_in < pause:
            self._next = FIRST_SECONDS
        return max(FIRST_SECONDS, min(pause, due_in))
