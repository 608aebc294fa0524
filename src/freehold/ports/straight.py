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
from freehold.ports.holds import FoundHold

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

    def run_companions_of(self, chosen: Sequence[ChosenFound], *, before: bool) -> None:
        """Run the rule's companions of that side, once for each row, in `lock_by` order.

        Call it with `before` ahead of `release_found`: there the parameters of both are read.

        Raises:
            RowRefused: a companion changed more or fewer rows than it may.
        """
        ...
