"""A host whose clocks move only when a test moves them, beside the database's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from freehold.adapters.sql.ledger import WatchedClock
from freehold.adapters.system import Onwards
from freehold.application.schedule import Scheduler
from tests.behaviour.till import Till

if TYPE_CHECKING:
    from freehold.domain.rules import Rule
    from tests.behaviour.place import Place


@dataclass
class HostClock:
    """The clocks of one host; implements `ports.system.HostClock`."""

    at: datetime
    seconds: float = 1_000.0

    def wall(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass
class Host:
    """One host beside the place of the tests."""

    place: Place
    clock: HostClock
    name: str = "alpha"

    @classmethod
    def beside(cls, place: Place, name: str = "alpha") -> Host:
        """Return a host whose clock agrees with the database's."""
        return cls(place, HostClock(place.clock.at), name)

    def till(self, rule: Rule) -> Till:
        """Start a process: nothing of what another one knew is known to it."""
        till = Till.open(self.place, rule)
        till.ledger._watched = WatchedClock(self.name, self.clock)
        return till

    def fire(self, till: Till) -> None:
        """Fire the schedule and work, as a service does."""
        scheduler = Scheduler(till.ledger, till.scanner, self.clock, "one", Onwards())
        scheduler.fire(till.rule)
        till.worker.work(till.rule)

    def run_for(self, span: timedelta) -> None:
        """Let time go by on every clock."""
        self.place.advance(span)
        self.clock.at += span
        self.clock.seconds += span.total_seconds()

    def set_both(self, span: timedelta) -> None:
        """Move the database's clock and the host's wall together, as nobody's seconds pass."""
        self.place.advance(span)
        self.clock.at += span
