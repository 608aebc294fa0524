"""Telemetry: what the application tells about its work, as a closed vocabulary of events.

*Invariants*: an event is told after the commit that it speaks of, or of a failure; no event holds
guest data or a database's own words; the vocabulary is public, see docs/reference/telemetry.md.
*Not here*: the events of reports and queues (`telemetry_reports`, `telemetry_queues`); depths and ages, which are read and not told
(`ports.insight`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Protocol

from freehold.domain.operations import Claim
from freehold.domain.retries import FailureClass
from freehold.ports.telemetry_event import Event, Level
from freehold.ports.telemetry_queues import (
    DeliveriesHandled,
    Dispatched,
    HintsMissing,
    QueueFound,
    QueueLost,
)
from freehold.ports.telemetry_relay import (
    EventsForwarded,
    TargetPaused,
    TargetResumed,
    TargetUnreachable,
)
from freehold.ports.telemetry_reports import (
    FactsFrozen,
    MailsFrozen,
    MailUnwritable,
    ReportsClosed,
    SendSettled,
    SummaryEnded,
    SummaryWithheld,
    TenantsSynced,
    TransportParked,
)

__all__ = [
    "EVENTS",
    "UNHEARD",
    "AttemptFailed",
    "BatchFinished",
    "DatabaseTrouble",
    "DeliveriesHandled",
    "Dispatched",
    "Event",
    "EventsForwarded",
    "FactsFrozen",
    "GuardReleased",
    "GuardTripped",
    "HandlerHung",
    "HintsMissing",
    "HoldsReleased",
    "Level",
    "MailUnwritable",
    "MailsFrozen",
    "OperationDied",
    "Pruned",
    "QueueFound",
    "QueueLost",
    "ReportsClosed",
    "RulePaused",
    "RuleResumed",
    "SendSettled",
    "ServiceStarted",
    "ServiceStopped",
    "SummaryEnded",
    "SummaryWithheld",
    "SweepFinished",
    "TargetPaused",
    "TargetResumed",
    "TargetUnreachable",
    "Telemetry",
    "TenantsSynced",
    "TickFinished",
    "TransportParked",
    "Unheard",
]


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
    Dispatched,
    DeliveriesHandled,
    QueueLost,
    QueueFound,
    HintsMissing,
    TenantsSynced,
    ReportsClosed,
    FactsFrozen,
    MailsFrozen,
    MailUnwritable,
    SendSettled,
    TransportParked,
    SummaryEnded,
    SummaryWithheld,
    EventsForwarded,
    TargetUnreachable,
    TargetPaused,
    TargetResumed,
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
