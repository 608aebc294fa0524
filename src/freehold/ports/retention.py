"""Retention: removing what is older than its age, a bounded step a transaction.

*Invariants*: open operations and their attempts, events that some target is owed or is dead for,
strays in review, tallies that no report has counted yet, the bytes of mails that some recipient may
still be sent, everything else about a report, unfinished runs and the newest run of each schedule,
guards that stand and the newest of each kind, pauses that nobody ended, of roles and of targets,
and the action log are never removed, however old.
*Not here*: how old is old enough (`application.prune`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol


class Subject(StrEnum):
    """What has an age, in the order in which it is pruned: records before what explains them."""

    RECORDS = "records"
    TALLIES = "tallies"
    ATTEMPTS = "attempts"
    EVENTS = "events"
    MAILS = "mails"
    TICKS = "ticks"
    GUARDS = "guards"
    PAUSES = "pauses"
    TARGET_PAUSES = "target pauses"
    STRAYS = "strays"
    DELIVERY_COUNTS = "delivery counts"


@dataclass(frozen=True, slots=True)
class Readings:
    """What two readings of the clock say about one subject.

    Attributes:
        read_at: when the newest reading was taken.
        read_before: what was out of age by that reading.
        pruned_before: what two readings agree on; everything older may be gone.
    """

    read_at: datetime | None = None
    read_before: datetime | None = None
    pruned_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where the next step goes on.

    Attributes:
        at: an instant, where the subject is walked in the order of time; else None.
        id: the last id seen.
    """

    at: datetime | None
    id: int


@dataclass(frozen=True, slots=True)
class Step:
    """What one step removed.

    Attributes:
        place: where the next one goes on; None when nothing older is left.
    """

    removed_count: int
    place: Place | None


class Retention(Protocol):
    """What prunes, inside one transaction."""

    def readings(self) -> Mapping[Subject, Readings]:
        """Return the readings of every subject that was read."""
        ...

    def write(self, subject: Subject, readings: Readings) -> None:
        """Write the readings of a subject."""
        ...

    def begin_round(self, every: timedelta, stale: timedelta) -> bool:
        """Begin a round of pruning, or take over one that nobody went on with.

        Args:
            every: from the beginning of one round to that of the next.
            stale: how long a round may rest before it is anybody's.

        Returns:
            False when no round is due, or another process is at it.
        """
        ...

    def keep_round(self) -> None:
        """Say that the round goes on."""
        ...

    def end_round(self) -> None:
        """Close the round, so that the next one begins in its time."""
        ...

    def prune(self, subject: Subject, before: datetime, place: Place | None, limit: int) -> Step:
        """Remove one page of what is older, beginning behind `place`.

        With an event goes what was owed of it to targets, and the attempts at that.

        Of mails the body alone goes; its digest, the facts and the send ledger stay for ever.

        On PostgreSQL a page of records is a whole month, once all of it is older.

        Crash: the page is gone whole, or still there whole.

        Raises:
            DatabaseBusy: somebody reads what is to go; a repeat later helps.
            RuleRefused: the role may not remove it.
        """
        ...

    def count(self, subject: Subject, before: datetime, at_most: int) -> int:
        """Count what `prune` would remove now, and stop counting about `at_most`."""
        ...

    def forgotten_before(self, rule: str) -> datetime | None:
        """Return the instant before which records of the rule may be gone; None: none are."""
        ...
