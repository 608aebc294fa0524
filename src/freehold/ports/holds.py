"""The customer's table under one rule, inside one transaction.

*Invariants*: no method waits for a lock of the host; nothing is changed that does not match the
whole fence at that moment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from freehold.domain.expiry import ExpireHold, HoldRow, RowAbsence


@dataclass(frozen=True, slots=True)
class ScanCursor:
    """The place (due, key) after which a scan goes on; both as the database wrote them."""

    due: str
    hold_key: str


@dataclass(frozen=True, slots=True)
class FoundHold:
    """One row of a scan.

    Attributes:
        due: the due column's text, None for NULL.
        identity: packed due and token texts.
        guard: packed texts of the other predicate columns.
        is_open: an operation of this identity is open already.
    """

    hold_key: str
    due: str | None
    identity: str
    guard: str
    tenant: str | None
    is_open: bool


@dataclass(frozen=True, slots=True)
class Weighing:
    """Which overdue rows are to be weighed, and how closely.

    Attributes:
        upto: those that were due at that instant.
        at_most: rows looked at, on each side; the cost stops growing there.
        beyond: the share is looked for only when more than so many were counted.
        without: tenants whose rows do not count as overdue.
    """

    upto: datetime
    at_most: int
    beyond: int = 0
    without: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Weight:
    """How much turned up overdue.

    Attributes:
        count: held rows overdue without an open operation, among those looked at.
        share: of the rule's held rows; right about being more than a half while all overdue rows
            were looked at, else taken from a sample. Zero where it was not asked for.
    """

    count: int
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class LockedHold:
    """What the lock read found for one claimed operation.

    Attributes:
        matches: the row is held and equals the whole fence; then `command` and `row` are None.
        due: the due column's text of a row that matches; the mapping of today reads it.
        command: what the operation asks for.
        row: what the table holds.
    """

    operation_id: int
    matches: bool
    due: str | None = None
    command: ExpireHold | None = None
    row: HoldRow | RowAbsence | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """An operation to be released, and the tally that counts it."""

    operation_id: int
    hold_key: str
    tally_id: int


class Holds(Protocol):
    """One rule's rows. Every method belongs to the transaction that it was taken from."""

    def find_due(
        self, after: ScanCursor | None, limit: int, since: datetime | None = None
    ) -> Sequence[FoundHold]:
        """Read due rows in the order (due, key), open ones included and marked.

        Args:
            after: where the last page of this pass ended.
            since: leave out what was due at that instant already; None reads from the beginning.

        Reads bare values only: a due that cannot be compared bare (ISO text) yields held rows in
        key order, due or not, and the caller parses.

        Returns:
            At most `limit` rows; fewer mean that the end is reached.
        """
        ...

    def find_empty_due(self, after: ScanCursor | None, limit: int) -> Sequence[FoundHold]:
        """Read held rows whose due is NULL or at or before 1970, in key order."""
        ...

    def next_due(self, until: datetime) -> datetime | None:
        """Return the first instant after now, at or before `until`, at which a hold falls due."""
        ...

    def count_overdue(self, at_most: int) -> int:
        """Count due rows, open ones included, and stop counting at `at_most`.

        Rows without a usable due count where the rule takes them for due now.
        """
        ...

    def weigh(self, after: ScanCursor | None, wanted: Weighing) -> Weight:
        """Weigh the rows that were due at an instant and have no open operation.

        Args:
            after: looks at the rows on both sides of that place, nearest first, each up to the
                limit; text that cannot be compared is read from there on.
        """
        ...

    def lock(self, operation_ids: Sequence[int]) -> Sequence[LockedHold]:
        """Lock the rows of claimed operations in key order, passing over what the host holds.

        Returns:
            One entry for each id, in any order.

        Raises:
            RuleRefused: table, column or privilege is missing; helps after the mend.
        """
        ...

    def release(self, chosen: Sequence[Chosen]) -> None:
        """Change the rows, write event and record, and take the operations out.

        All of `chosen` must have matched under this transaction's lock.

        Raises:
            ChangeLost: fewer rows changed than were chosen, or some did not stay changed.
            RowRefused: the database refused some row; the transaction is lost.
        Crash: nothing remains before the commit, everything after it.
        """
        ...

    def run_companions(self, operation_ids: Sequence[int], *, before: bool) -> None:
        """Run the rule's companions of that side, once for each operation, in `lock_by` order.

        Call it with `before` ahead of `release`: there the parameters of both sides are read.

        Raises:
            RowRefused: a companion changed more or fewer rows than it may.
        """
        ...

    def rehearse(self) -> None:
        """Run the statements of a release over no row; nothing is changed.

        Raises:
            RuleRefused: table, column or privilege is missing, for every row alike.
        """
        ...

    def images(self, operation_ids: Sequence[int]) -> Mapping[int, Mapping[str, str | None]]:
        """Read the mapped and carried columns of operations' rows as text, by operation id.

        Call it ahead of `release`, with operations that matched under this transaction's lock.
        """
        ...

    def read(self, hold_key: str) -> Mapping[str, str | None] | None:
        """Read one row's mapped columns as text, without a lock; None when there is none."""
        ...

    def still_due(self, operation_ids: Sequence[int]) -> set[int]:
        """Return those operations whose hold is still held and due with the same identity."""
        ...
