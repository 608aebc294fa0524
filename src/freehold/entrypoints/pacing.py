"""How long the loops of the service wait."""

from __future__ import annotations

from collections.abc import Callable

FIRST_SECONDS = 0.01
SHORTEST_SECONDS = 0.02  # holds that fall due closer together than this share a scan
AHEAD_SECONDS = 0.1  # a scan that is 20 batches ahead of the workers looks again after this


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
