"""Telemetry: what the application tells about its work, as a closed vocabulary of events.

*Invariants*: an event is told after the commit that it speaks of, or of a failure; no event holds
guest data or a database's own words; the vocabulary is public, see docs/reference/telemetry.md.
*Not here*: depths and ages, which are read and not told (`ports.insight`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import ClassVar, Protocol

from freehold.domain.operations import Claim
from freehold.domain.retries import FailureClass


class Level(IntEnum):
    """How much an event matters to the person who reads along."""

    DEBUG = 10
    INFO = 20
    WARNING = 30


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        name: what it is called in logs and in the reference.
    """

    name: ClassVar[str]
    usual_level: ClassVar[Level] = Level.INFO

    @property
    def level(self) -> Level:
        """Return how much this one matters."""
        return self.usual_level


@dataclass(frozen=True, slots=True)
class ServiceStarted(Event):
    """A process began its loops."""

    name: ClassVar[str] = "started"
    roles: str
    pid: int


@dataclass(frozen=True, slots=True)
class ServiceStopped(Event):
    """A process drained and ends."""

    name: ClassVar[str] = "stopped"
    pid: int


@dataclass(frozen=True, slots=True)
class TickFinished(Event):
    """A scan of a rule ended; debug when it found nothing new.

    Attributes:
        tick: the id of the tick's row; None where another runner has the row.
        late_seconds: from the instant that the schedule names to the end of the scan.
    """

    name: ClassVar[str] = "scan"
    rule: str
    tick: int | None
    found_count: int
    new_count: int
    unreadable_count: int
    outcome: str
    late_seconds: float | None = None

    @property
    def level(self) -> Level:
        """Return debug where there was nothing to do."""
        return Level.INFO if self.new_count or self.unreadable_count else Level.DEBUG


@dataclass(frozen=True, slots=True)
class BatchFinished(Event):
    """A batch of a rule was taken as far as it went.

    Attributes:
        skipped: counts by reason.
        deferred: counts by reason.
        failed_count: rows that spent an attempt and are tried again later.
        dead_count: rows that went to review.
    """

    name: ClassVar[str] = "batch"
    rule: str
    released_count: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    deferred: Mapping[str, int] = field(default_factory=dict)
    failed_count: int = 0
    dead_count: int = 0


@dataclass(frozen=True, slots=True)
class HoldsReleased(Event):
    """Holds were released by one commit; one line for each at level debug.

    Attributes:
        at: the instant of the releasing transaction; minus the due it is the lag.
    """

    name: ClassVar[str] = "released"
    usual_level: ClassVar[Level] = Level.DEBUG
    claims: Sequence[Claim]
    at: datetime


@dataclass(frozen=True, slots=True)
class AttemptFailed(Event):
    """An attempt at one operation failed; it is tried again.

    Attributes:
        attempt: its number, from 1.
        code: the database's code, never its words.
        retry_at: when it can be claimed again.
    """

    name: ClassVar[str] = "attempt failed"
    usual_level: ClassVar[Level] = Level.WARNING
    claim: Claim
    attempt: int
    classification: FailureClass
    code: str
    retry_at: datetime


@dataclass(frozen=True, slots=True)
class OperationDied(Event):
    """An operation went to review."""

    name: ClassVar[str] = "dead"
    usual_level: ClassVar[Level] = Level.WARNING
    claim: Claim
    attempt: int
    classification: FailureClass
    code: str = ""


@dataclass(frozen=True, slots=True)
class SweepFinished(Event):
    """A sweep ended; debug when it had nothing to do.

    Attributes:
        returned_count: leases that had ended; their operations can be claimed again.
        dead_count: operations whose attempts a killed worker used up.
        closed_count: operations in review whose hold needs nothing any more.
    """

    name: ClassVar[str] = "sweep"
    returned_count: int
    dead_count: int
    closed_count: int

    @property
    def level(self) -> Level:
        """Return debug where there was nothing to do."""
        busy = self.returned_count or self.dead_count or self.closed_count
        return Level.INFO if busy else Level.DEBUG


@dataclass(frozen=True, slots=True)
class RulePaused(Event):
    """A rule was paused, as it fails as a whole or a person said so; `freehold status` has the reason."""

    name: ClassVar[str] = "paused"
    usual_level: ClassVar[Level] = Level.WARNING
    rule: str


@dataclass(frozen=True, slots=True)
class RuleResumed(Event):
    """A paused rule works again."""

    name: ClassVar[str] = "resumed"
    rule: str


@dataclass(frozen=True, slots=True)
class HandlerHung(Event):
    """A handler could not be stopped, and this process ends for it; its holds are tried again."""

    name: ClassVar[str] = "handler hung"
    usual_level: ClassVar[Level] = Level.WARNING
    rule: str
    limit_seconds: float


@dataclass(frozen=True, slots=True)
class GuardTripped(Event):
    """A guard froze releases; `freehold guard show` has the figures.

    Attributes:
        guard: which one.
        rule: the rule that it holds; None: all of them.
    """

    name: ClassVar[str] = "guard tripped"
    usual_level: ClassVar[Level] = Level.WARNING
    guard: str
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class GuardReleased(Event):
    """A guard lets releases go on."""

    name: ClassVar[str] = "guard released"
    guard: str
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class DatabaseTrouble(Event):
    """A loop waits for the database.

    Attributes:
        error: the kind of trouble.
        code: the database's code, never its words.
    """

    name: ClassVar[str] = "database"
    usual_level: ClassVar[Level] = Level.WARNING
    loop: str
    error: str
    code: str
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Pruned(Event):
    """A round of pruning ended.

    Attributes:
        counts: rows removed, by table.
        left: something could not be removed now, and is tried again later.
    """

    name: ClassVar[str] = "pruned"
    counts: Mapping[str, int]
    left: bool = False


@dataclass(frozen=True, slots=True)
class SendSettled(Event):
    """An attempt to send a report ended; a warning where it was not accepted for good.

    Attributes:
        report: the report's id.
        kind: send, replay or look-up; none where the decision needed nobody.
        state: where it leaves the sending to this recipient.
        attempt: its number, from 1.
        code: the provider's code, never its words.
    """

    name: ClassVar[str] = "send"
    report: int
    kind: str
    state: str
    attempt: int
    transport: str
    code: str = ""

    @property
    def level(self) -> Level:
        """Return info for a mail that was accepted."""
        return Level.INFO if self.state == "accepted" else Level.WARNING


@dataclass(frozen=True, slots=True)
class TransportParked(Event):
    """A transport takes no mail of anybody; mails wait until then, and spend no attempt."""

    name: ClassVar[str] = "transport parked"
    usual_level: ClassVar[Level] = Level.WARNING
    transport: str
    code: str
    retry_at: datetime


@dataclass(frozen=True, slots=True)
class SummaryEnded(Event):
    """A language model was asked about a report; `freehold report show` has why a text was rejected.

    Attributes:
        outcome: accepted, rejected, failed, or abandoned where another process gave it up.
        cost_micros: in millionths of the currency's unit; None where nobody knows.
    """

    name: ClassVar[str] = "summary"
    tenant: str
    report_date: str
    attempt: int
    outcome: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_micros: int | None = None


@dataclass(frozen=True, slots=True)
class SummaryWithheld(Event):
    """A language model is not asked about a report, whose mail goes out without its text.

    Attributes:
        reason: `budget`: the tenant's tokens of the day are used up.
    """

    name: ClassVar[str] = "summary withheld"
    usual_level: ClassVar[Level] = Level.WARNING
    tenant: str
    report_date: str
    reason: str


@dataclass(frozen=True, slots=True)
class FactsFrozen(Event):
    """The facts of a page of reports were frozen."""

    name: ClassVar[str] = "frozen"
    frozen_count: int


@dataclass(frozen=True, slots=True)
class ReportsClosed(Event):
    """Days were over: their reports have their holds, and no other ones ever.

    Attributes:
        report_date: the local day.
        assigned_count: how many reports there are of that day, in that zone, by this step.
        reason: why they are only recorded; None where mails will be sent.
    """

    name: ClassVar[str] = "reports closed"
    report_date: str
    zone: str
    assigned_count: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class MailsFrozen(Event):
    """Reports were due: their mails are written, byte for byte, or they ended without one.

    Attributes:
        ended: reports that get no mail, by reason.
    """

    name: ClassVar[str] = "mails frozen"
    written_count: int
    ended: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MailUnwritable(Event):
    """A report's mail could not be made, which is a mistake of ours; the report ends with a reason.

    Attributes:
        error: the kind of trouble.
    """

    name: ClassVar[str] = "mail unwritable"
    usual_level: ClassVar[Level] = Level.WARNING
    report: int
    error: str


@dataclass(frozen=True, slots=True)
class TenantsSynced(Event):
    """The customer's table of tenants was read from end to end.

    Attributes:
        retired_count: tenants that became inactive because their row is gone.
        rejected_count: rows that cannot be used; `freehold tenant sync --dry-run` names them.
        refused: more than half of the tenants were gone, so that nothing was changed.
    """

    name: ClassVar[str] = "tenants"
    seen_count: int
    new_count: int
    changed_count: int
    retired_count: int
    rejected_count: int
    refused: bool = False

    @property
    def level(self) -> Level:
        """Return debug where all was as before, and a warning where a person should look."""
        if self.refused or self.rejected_count:
            return Level.WARNING
        busy = self.new_count or self.changed_count or self.retired_count
        return Level.INFO if busy else Level.DEBUG


EVENTS: tuple[type[Event], ...] = (
    ServiceStarted,
    ServiceStopped,
    TickFinished,
    BatchFinished,
    HoldsReleased,
    AttemptFailed,
    OperationDied,
    SweepFinished,
    RulePaused,
    RuleResumed,
    HandlerHung,
    GuardTripped,
    GuardReleased,
    DatabaseTrouble,
    Pruned,
    TenantsSynced,
    ReportsClosed,
    FactsFrozen,
    MailsFrozen,
    MailUnwritable,
    SendSettled,
    TransportParked,
    SummaryEnded,
    SummaryWithheld,
)


class Telemetry(Protocol):
    """Somebody who listens."""

    def tell(self, event: Event) -> None:
        """Take an event.

        Never raises for what its own output does, and never keeps the work waiting for long: work
        goes on whether or not anybody hears of it. May be called from several threads at once.
        """
        ...


class Unheard:
    """Nobody listens; implements `Telemetry`."""

    def tell(self, event: Event) -> None:
        """Do nothing."""


UNHEARD = Unheard()
