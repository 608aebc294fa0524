"""What the application needs of the process that it runs in: luck, waiting, crash boundaries.

The clock that decides is not here: every transaction carries the database's own `now`.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Protocol


class Boundary(StrEnum):
    """The points at which a crash is tried; each names what was just done."""

    TICK_STARTED = "tick started"
    DUE_READ = "due read"
    OPERATIONS_WRITTEN = "operations written, not committed"
    OPERATIONS_COMMITTED = "operations committed"
    TICK_FINISHED = "tick finished"
    LEASE_COMMITTED = "lease committed"
    CLAIMED = "claimed"
    HOLDS_LOCKED = "holds locked"
    COMPANIONS_BEFORE = "companions before done"
    TALLIES_WRITTEN = "tallies written"
    RELEASED = "released, not committed"
    SKIPS_WRITTEN = "skips written"
    COMPANIONS_AFTER = "companions after done"
    HANDLED = "handler done"
    BEFORE_COMMIT = "before commit"
    COMMITTED = "committed, not acknowledged"
    FAILURE_CLASSIFIED = "failure classified"
    FAILURE_WRITTEN = "failure written"
    SWEPT = "swept"
    REVIEWED = "reviewed"
    REPORTS_ASSIGNED = "reports assigned, not committed"
    FACTS_FROZEN = "facts frozen, not committed"
    MAILS_FROZEN = "mails frozen, not committed"
    SEND_CLAIMED = "send claimed"
    SEND_BEGUN = "send attempt written, provider not asked"
    PROVIDER_ANSWERED = "provider answered, not noted"
    SEND_SETTLED = "send settled"
    SUMMARY_BEGUN = "summary attempt written, model not asked"
    SUMMARY_TOLD = "model answered, not noted"
    READY_READ = "ready operations read, not published"
    MESSAGES_PUBLISHED = "messages published, confirms in hand"
    DELIVERIES_TAKEN = "deliveries taken, nothing done"
    DELIVERIES_HANDLED = "deliveries handled, not settled"
    DELIVERIES_SETTLED = "deliveries settled"
    EVENTS_ROUTED = "events routed, not committed"
    FORWARDS_CLAIMED = "forwards claimed"
    PARCELS_DELIVERED = "parcels delivered, not noted"
    FORWARDS_SETTLED = "forwards settled"


class Checkpoint(Protocol):
    """Reached at every boundary; production does nothing there, tests crash there."""

    def reach(self, boundary: Boundary) -> None:
        """Pass the boundary, or never return."""
        ...


class Dice(Protocol):
    """All randomness."""

    def luck(self) -> float:
        """Return a uniform draw in [0, 1)."""
        ...

    def name(self) -> str:
        """Return a name that no other process draws."""
        ...


class HostClock(Protocol):
    """The host's clocks; they measure and log, they never decide about a hold."""

    def wall(self) -> datetime:
        """Return the host's wall time, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait so long, at most a moment: a stop request does not end it."""
        ...


class Pause(Protocol):
    """Waiting that a stop request ends at once."""

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; return True as soon as the process is asked to stop."""
        ...

    @property
    def stopping(self) -> bool:
        """Tell whether the process was asked to stop."""
        ...
