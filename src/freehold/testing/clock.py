"""A clock that stands still until a test moves it, and dice that always fall the same way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count


@dataclass(slots=True)
class SetClock:
    """Says the instant that it was set to, whatever the database's own clock reads.

    Implements `adapters.sql.session.Clock`.
    """

    instant: datetime

    def read(self, database_now: datetime) -> datetime:
        """Return the instant that the test chose."""
        return self.instant

    def advance(self, seconds: float) -> None:
        """Move the instant on."""
        self.instant += timedelta(seconds=seconds)


class SteadyDice:
    """Dice without luck: no jitter, and names that count up. Implements `ports.system.Dice`."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def luck(self) -> float:
        """Return the middle of the range, which leaves a delay as it is."""
        return 0.5

    def name(self) -> str:
        """Return the next name."""
        return f"name {next(self._numbers)}"
