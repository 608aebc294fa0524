"""The customer's rows under one rule, released without an operation row, inside one transaction.

*Invariants*: as of `ports.holds`; a record written here says `STRAIGHT`, so that one operation of the
same identity may still end beside it, as skipped or closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from freehold.domain.expiry import RowAbsence
from freehold.domain.operations import Claim
from freehold.ports.holds import FoundHold, ScanCursor

STRAIGHT = "straight"  # the reason that a record of such a release carries


@dataclass(frozen=True, slots=True)
class LockedFound:
    """What the lock read found for one found row.

    Attributes:
        operation_id: the id under which it is released; None where it cannot be.
        absence: there is no locked row; None for a row that holds something else by now.
    """

    found: FoundHold
    operation_id: int | None = None
    absence: RowAbsence | None = None


@dataclass(frozen=True, slots=True)
class ChosenFound:
    """A found row to be released, its name, and the tally that counts it."""

    found: FoundHold
    operation_id: int
    digest: UUID
    due_at: datetime
    tally_id: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of due rows: the next ones behind a place, in the order (due, key).

    Attributes:
        limit: rows at most.
        later_than: only rows due later than this instant may be taken.
        until: only rows due by this instant may be taken.
    """

    after: ScanCursor
    limit: int
    later_than: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Bulk:
    """What one statement took of a stretch.

    Attributes:
        released: what was released, as claims that ended.
        after: the last row of the stretch, where all `limit` rows were taken; None where some were
            left, or no more are there.
    """

    released: Sequence[Claim]
    after: ScanCursor | None


class StraightHolds(Protocol):
    """One rule's rows. Every method belongs to the transaction that it was taken from."""

    def find_named(self, hold_keys: Sequence[str]) -> Sequence[FoundHold]:
        """Read those of the named rows that are held and due, open ones included and marked.

        Of a due that cannot be compared bare all held rows are read, and the caller parses.
        """
        ...

    def lock_found(self, found: Sequence[FoundHold]) -> Sequence[LockedFound]:
        """Lock found rows in key order, passing over what the host holds, and draw their ids.

        Returns:
            One entry for each, in any order.

        Raises:
            RuleRefused: table, column or privilege is missing; helps after the mend.
        """
        ...

    def release_found(self, chosen: Sequence[ChosenFound], tick_id: int | None) -> None:
        """Change the rows, and write event and record as generation 1.

        All of `chosen` must have matched under this transaction's lock, and no record of their
        identity may be there.

        Raises:
            ChangeLost: fewer rows changed than were chosen, or some did not stay changed.
            RowRefused: the database refused some row; the transaction is lost.
        Crash: nothing remains before the commit, everything after it.
        """
        ...

    @property
    def takes_bulk(self) -> bool:
        """Tell whether `release_bulk` can serve the rule's table and due here."""
        ...

    def release_bulk(self, stretch: Stretch, tick_id: int | None) -> Bulk:
        """Find, lock, compare, change and write down as many rows of a stretch as are plain.

        Left as they are: rows that the host holds, that changed meanwhile, that have an open
        operation or any record of their identity, and keys too long to be written down. Rows due
        at or before `later_than` are left, so only younger records are looked for. The caller
        makes sure that the rule has neither companions nor a handler.

        Raises:
            ChangeLost: some did not stay changed.
            RowRefused: the database refused some row; the transaction is lost.
        Crash: nothing remains before the commit, everything after it.
        """
        ...

    def run_companions_of(self, chosen: Sequence[ChosenFound], *, before: bool) -> None:
        """Run the rule's companions of that side, once for each row, in `lock_by` order.

        Call it with `before` ahead of `release_found`: there the parameters of both are read.

        Raises:
            RowRefused: a companion changed more or fewer rows than it may.
        """
        ...
