"""The errors that cross layers, each with what it means for the hold in hand.

Not here: skips and dead letters, which are outcomes and not errors.
"""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum


class ExitCode(IntEnum):
    """What a command tells its caller; the table in docs/reference/cli.md is the promise."""

    DONE = 0
    UNEXPECTED = 1
    USAGE = 2
    CHECK_FAILED = 3
    WORK_LEFT = 4
    UNREACHABLE = 5
    REFUSED = 6
    INTERRUPTED = 130


class FreeholdError(Exception):
    """Base of all errors that Freehold raises on purpose; the message is one sentence for a person."""

    exit_code = ExitCode.UNEXPECTED


class UsageError(FreeholdError):
    """The configuration or an argument is wrong; repeating the call cannot help."""

    exit_code = ExitCode.USAGE


class CheckFailed(FreeholdError):
    """A check ran to its end and found something wrong."""

    exit_code = ExitCode.CHECK_FAILED


class WorkLeft(FreeholdError):
    """A bounded run used up its bound before the work was done."""

    exit_code = ExitCode.WORK_LEFT


class RefusedByState(FreeholdError):
    """The request is well formed, but the state of things forbids it now."""

    exit_code = ExitCode.REFUSED


class HoldTaken(RefusedByState):
    """Something else is in the way of a hold that was asked for.

    Attributes:
        hold_id: the hold in the way, or None where it is gone again.
        hold_until: until when it is held; None while it is confirmed.
    """

    def __init__(
        self, message: str, *, hold_id: int | None = None, hold_until: datetime | None = None
    ) -> None:
        super().__init__(message)
        self.hold_id = hold_id
        self.hold_until = hold_until


class HoldLapsed(RefusedByState):
    """The hold is not held any more: its time is over, or it was cancelled or confirmed."""


class UnknownHold(UsageError):
    """No hold has this token or id: it was renewed under another token, or never granted."""


class UnknownUnit(UsageError):
    """The tenant has no such unit."""


class DatabaseError(FreeholdError):
    """A database said no; the transaction in hand is rolled back and nothing of it remains.

    Attributes:
        code: SQLSTATE on PostgreSQL, the symbolic result code (SQLITE_BUSY ...) on SQLite.
    """

    exit_code = ExitCode.UNREACHABLE

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code

    @property
    def likeness(self) -> str:
        """Return what two errors share when they have one cause; it quotes no value of a row."""
        return self.code


class DatabaseAway(DatabaseError):
    """The connection is lost or cannot be made; whether a COMMIT in flight took effect is unknown.

    Again: helps once the server is back. Every step of ours may be repeated safely.
    """


class DatabaseBusy(DatabaseError):
    """A deadlock, a serialization failure or a lock time-out: repeat the whole transaction."""


class StatementTimedOut(DatabaseError):
    """The statement ran into its time limit; a smaller batch may fit."""


class RowRefused(DatabaseError):
    """A constraint, a trigger or a value of some row made the database refuse the transaction.

    Again: helps only when the data or the trigger changes.
    """

    exit_code = ExitCode.UNEXPECTED


class RuleRefused(DatabaseError):
    """A missing table or column, or a missing privilege: no row of the rule can be released.

    Again: helps after the schema or the privilege is mended.
    """

    exit_code = ExitCode.UNEXPECTED


class ChangeLost(RowRefused):
    """The row still matched everything and yet did not change, or did not stay changed."""


HANDLER = "HANDLER"  # the code of what a rule's own Python function did


class HandlerFailed(RowRefused):
    """A rule's handler raised, or left its transaction unusable.

    Again: helps when the function, or what it needs, changes.

    Attributes:
        place: the exception's type and where it was raised.
    """

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message, HANDLER)
        self.place = place

    @property
    def likeness(self) -> str:
        """Return type and place, since all handlers share one code."""
        return f"{self.code} {self.place}"


class HandlerTimedOut(StatementTimedOut):
    """A rule's handler ran into its time limit; fewer holds may fit."""

    def __init__(self, message: str) -> None:
        super().__init__(message, HANDLER)


class TransactionEnded(RuleRefused):
    """A rule's handler ended the transaction that it was lent; the release stands.

    Again: helps after the function is mended.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, HANDLER)


class QueueAway(FreeholdError):
    """The broker cannot be reached; the ledger still holds all work.

    Again: helps once the broker is back.
    """

    exit_code = ExitCode.UNREACHABLE


class QueueUnfit(QueueAway):
    """The broker is there, and is not as a queue of hints needs it, or does not let us in.

    Again: helps after a person has mended it; until then the ledger does without, as when it is
    away.
    """

    exit_code = ExitCode.REFUSED


class TargetAway(FreeholdError):
    """A target of events cannot be reached at all; the outbox still holds every event.

    Again: helps once it is back.
    """

    exit_code = ExitCode.UNREACHABLE
