"""The decision about one hold under its row lock: release it, skip it, or come back later.

The SQL predicate in `adapters/sql` says the same in its own spelling; a property test holds the
two together. *Not here*: what a failure does (`retries`), what the decision writes (`adapters`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from freehold.domain.due import DueSpec, is_due, released_from
from freehold.domain.names import Text
from freehold.domain.rules import Again


class SkipReason(StrEnum):
    """Why there was nothing to release; a skip is neither success nor failure."""

    RENEWED = "renewed"
    CONFIRMED = "confirmed"
    CANCELLED = "cancelled"
    TAKEN_OVER = "taken over"
    GONE = "gone"
    ALREADY_EXPIRED = "already expired"
    NO_LONGER_HELD = "no longer held"
    MAPPING_CHANGED = "mapping changed"


class DeferReason(StrEnum):
    """Why an operation stays open and is looked at again later, without spending an attempt."""

    BUSY = "busy"
    NOT_DUE = "not due"
    GUARDED = "guarded"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class ExpireHold:
    """The command: expire this granting of this hold.

    Attributes:
        identity: due and token texts as the scan read them.
        guard: texts of the other predicate columns as the scan read them.
        due_at: the instant that made the hold due, grace not added.
        after_expired: this identity was expired before and is due again.
    """

    hold_key: str
    identity: tuple[Text, ...]
    guard: tuple[Text, ...]
    due_at: datetime
    after_expired: bool = False


@dataclass(frozen=True, slots=True)
class HoldRow:
    """The customer's row, read under its lock.

    Attributes:
        held: the rule's held predicate is true now.
        expired: the row already looks the way the rule's action leaves it.
    """

    identity: tuple[Text, ...]
    guard: tuple[Text, ...]
    held: bool
    confirmed: bool = False
    cancelled: bool = False
    expired: bool = False


class RowAbsence(StrEnum):
    """Why there is no locked row to decide about."""

    GONE = "gone"
    LOCKED_BY_HOST = "locked by host"


@dataclass(frozen=True, slots=True)
class Release:
    """Everything still matches: expire it."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Nothing to do, for this reason."""

    reason: SkipReason


@dataclass(frozen=True, slots=True)
class Defer:
    """Not now, for this reason; `until` is None where a backoff decides."""

    reason: DeferReason
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ToReview:
    """A person must decide, for this reason."""

    reason: str


Decision = Release | Skip | Defer | ToReview

DUE_AGAIN = "due again after it had expired with the same identity"


def decide_expiry(
    command: ExpireHold,
    row: HoldRow | RowAbsence,
    due: DueSpec,
    again: Again,
    now: datetime,
    *,
    one_holder: bool = False,
) -> Decision:
    """Decide what to do with one hold.

    Args:
        row: what the lock read found.
        one_holder: a new token means that the same holder renewed, see `Rule`.
        now: the transaction's one reading of the database's clock.
    """
    if isinstance(row, RowAbsence):
        return decide_absent(row)
    if not row.held:
        return Skip(_why_not_held(row))
    if row.identity != command.identity or row.guard != command.guard:
        return Skip(_what_changed(command, row, one_holder=one_holder))
    return decide_matching(command.due_at, due, now, to_review=reviewed_again(command, again))


def decide_absent(absence: RowAbsence) -> Decision:
    """Decide about a hold whose row could not be locked."""
    return Skip(SkipReason.GONE) if absence is RowAbsence.GONE else Defer(DeferReason.BUSY)


def reviewed_again(command: ExpireHold, again: Again) -> bool:
    """Tell whether a hold that expired before, with this very identity, needs a person."""
    return command.after_expired and again is Again.REVIEW


def decide_matching(
    due_at: datetime, due: DueSpec, now: datetime, *, to_review: bool = False
) -> Decision:
    """Decide about a row that still equals its whole fence and is still held."""
    if not is_due(due, due_at, now):
        return Defer(DeferReason.NOT_DUE, released_from(due, due_at))
    return ToReview(DUE_AGAIN) if to_review else Release()


def _why_not_held(row: HoldRow) -> SkipReason:
    if row.confirmed:
        return SkipReason.CONFIRMED
    if row.cancelled:
        return SkipReason.CANCELLED
    return SkipReason.ALREADY_EXPIRED if row.expired else SkipReason.NO_LONGER_HELD


def _what_changed(command: ExpireHold, row: HoldRow, *, one_holder: bool) -> SkipReason:
    """Tell another owner (a token changed) from the same owner with more time."""
    same_owner = one_holder or row.identity[1:] == command.identity[1:]
    return SkipReason.RENEWED if same_owner else SkipReason.TAKEN_OVER
