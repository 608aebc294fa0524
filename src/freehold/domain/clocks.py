"""Whether the database's clock still runs as it did: compared with a clock that cannot jump.

*Invariants*: what a slow answer, a stopped process or a suspended host explains is no jump.
*Not here*: what is done about a jump (`application.guards`), the clocks (`adapters.system`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

MOVED_MOST = timedelta(seconds=60)  # DESIGN section 3: more than this freezes releases


@dataclass(frozen=True, slots=True)
class ClockReading:
    """What the clocks said when a transaction began.

    Attributes:
        host: the host that this process runs on.
        host_at: the host's wall clock, read just after the database's.
        asked_seconds: the host's monotonic clock before the database was asked.
        answered_seconds: the same after the answer: the database read its clock in between.
    """

    host: str
    database_at: datetime
    host_at: datetime
    asked_seconds: float
    answered_seconds: float


@dataclass(frozen=True, slots=True)
class NotedClock:
    """What one host noted last about the database's clock and its own."""

    host: str
    database_at: datetime
    host_at: datetime


def moved_since(base: ClockReading, now: ClockReading) -> timedelta:
    """Return how far the database's clock moved apart from the monotonic one; zero is in step."""
    passed = (now.database_at - base.database_at).total_seconds()
    least = now.asked_seconds - base.answered_seconds
    most = now.answered_seconds - base.asked_seconds
    return timedelta(seconds=passed - min(max(passed, least), most))


def moved_apart(noted: ClockReading | NotedClock, now: ClockReading) -> timedelta:
    """Return how far the database's clock moved apart from the host's wall clock."""
    moved = (now.database_at - now.host_at) - (noted.database_at - noted.host_at)
    if moved >= timedelta(0):
        return moved
    return min(timedelta(0), moved + timedelta(seconds=now.answered_seconds - now.asked_seconds))


def is_jump(moved: timedelta) -> bool:
    """Tell whether a clock moved so far that nothing may be released by it."""
    return abs(moved) > MOVED_MOST


def moved_by_notes(
    notes: Sequence[NotedClock], now: ClockReading, *, vouched: bool = True
) -> tuple[timedelta, bool]:
    """Judge a first reading by what was noted before; the own host's note stands first.

    A clock that stands before a note of its own went back.

    Args:
        vouched: a note less than a minute old, by the database's clock, vouches for that clock;
            whatever is wrong then is wrong with a host's.

    Returns:
        How far it moved, and whether it moved apart from the host's clock rather than with it.
    """
    recent = (abs(now.database_at - one.database_at) <= MOVED_MOST for one in notes)
    if not notes or (vouched and any(recent)):
        return timedelta(0), False
    apart = moved_apart(notes[0], now)
    if is_jump(apart):
        return apart, True
    return min(timedelta(0), now.database_at - max(one.database_at for one in notes)), False
