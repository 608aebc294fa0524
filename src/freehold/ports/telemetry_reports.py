"""The events of reports: what telemetry tells of days, facts, texts, mails and tenants.

*Not here*: the whole vocabulary, and who listens (`ports.telemetry`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from freehold.ports.telemetry_event import Event, Level


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
