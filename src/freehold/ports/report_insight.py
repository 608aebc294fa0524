"""Reading reports for people: lists, one report with its whole trail, and the figures of status.

*Invariants*: as in `ports.insight`: nothing is written, one snapshot, every count stops at a limit.
*Not here*: what moves reports on (`ports.reports`, `ports.sends`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Protocol

from freehold.domain.facts import Facts
from freehold.domain.inventory import Tenant
from freehold.domain.reports import ReportReason, ReportState, Window
from freehold.domain.sending import AttemptKind, SendOutcome, SendState


def report_subject(tenant: str, report_date: date) -> str:
    """Name a report in the action log."""
    return f"{tenant or 'nobody'} {report_date}"


def send_subject(tenant: str, report_date: date, recipient: str) -> str:
    """Name the mail to one recipient in the action log."""
    return f"{report_subject(tenant, report_date)} {recipient}"


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One report in a list.

    Attributes:
        released_count: holds released within its window; None until it is closed in full.
        send_count: recipients of its mail; 0 while there is none.
        accepted_count: those whose mail was accepted.
    """

    tenant: str
    report_date: date
    state: ReportState
    reason: ReportReason | None
    due_at: datetime
    released_count: int | None
    send_count: int
    accepted_count: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of a list.

    Attributes:
        after: where to go on: date and tenant of the last report that was looked at; None at the
            end of the list.
    """

    lines: Sequence[ReportLine]
    after: tuple[date, str] | None


@dataclass(frozen=True, slots=True)
class SeenMail:
    """The frozen mail of a report; its bytes are read with `mail_body`."""

    locale: str
    subject: str
    digest: str
    byte_count: int
    frozen_at: datetime
    kept: bool
    summary_id: int | None


@dataclass(frozen=True, slots=True)
class SeenAttempt:
    """One attempt of a send, to send, to look up, or by a person."""

    attempt: int
    kind: AttemptKind
    transport: str
    started_at: datetime
    ended_at: datetime | None
    outcome: SendOutcome | None
    reference: str | None
    code: str
    answer: str


@dataclass(frozen=True, slots=True)
class SeenSend:
    """One recipient's send with all its attempts."""

    id: int
    recipient: str
    message_key: str
    mail_digest: str
    state: SendState
    reason: str | None
    available_at: datetime
    transport: str | None
    reference: str | None
    changed_at: datetime
    attempts: Sequence[SeenAttempt] = ()


@dataclass(frozen=True, slots=True)
class SeenSummary:
    """One attempt to get a paragraph from a language model."""

    attempt: int
    host: str
    model: str
    started_at: datetime
    outcome: str | None
    reason: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_micros: int | None
    currency: str | None


@dataclass(frozen=True, slots=True)
class SeenAct:
    """What a person did to the mail of a report to one recipient."""

    at: datetime
    subject: str
    actor: str
    action: str
    reason: str


@dataclass(frozen=True, slots=True)
class SeenReport:
    """Everything about one report.

    Attributes:
        facts: None until they are frozen.
        tenant: as it is now; None for one that is known from the data alone.
    """

    id: int
    window: Window
    tenant_id: str
    state: ReportState
    reason: ReportReason | None
    due_at: datetime
    watermark_at: datetime
    assigned_at: datetime
    frozen_at: datetime | None
    ended_at: datetime | None
    facts: Facts | None
    facts_digest: str | None
    tenant: Tenant | None
    mail: SeenMail | None = None
    sends: Sequence[SeenSend] = ()
    summaries: Sequence[SeenSummary] = ()
    acts: Sequence[SeenAct] = ()


@dataclass(frozen=True, slots=True)
class OpenDay:
    """The day that is closed next.

    Attributes:
        hour: the tenant's own report hour; None for the installation's.
    """

    tenant: str
    window: Window
    hour: int | None


@dataclass(frozen=True, slots=True)
class ReportFigures:
    """How reports stand; every count stops at the limit that was asked for.

    Attributes:
        states: the newest reports by state, back to the date that was asked for.
        owed_count: reports that are due and have no end yet.
        oldest_owed_at: since when the oldest of them is due.
        review_count: reports that wait for a person.
        oldest_review: date and tenant of the oldest of them.
        unknown_count: sends of which nobody knows the end and that are not in review.
        next_day: the day whose window ends first; None where nobody gets reports.
        never_began: whether nobody's days are known though somebody could get reports.
    """

    states: Mapping[ReportState, int] = field(default_factory=dict)
    owed_count: int = 0
    oldest_owed_at: datetime | None = None
    review_count: int = 0
    oldest_review: tuple[date, str] | None = None
    unknown_count: int = 0
    next_day: OpenDay | None = None
    never_began: bool = False


@dataclass(frozen=True, slots=True)
class CountedBy:
    """The report that counts a released hold."""

    tenant: str
    report_date: date
    state: ReportState


class ReportsInSight(Protocol):
    """Reports, for looking only."""

    def find(
        self,
        tenant: str | None,
        report_date: date | None,
        state: ReportState | None,
        after: tuple[date, str] | None,
        limit: int,
    ) -> Listed:
        """Return reports, the newest date first, tenants of one date from Z to A.

        Looks at a bounded number of reports in search of a state; `Listed.after` tells how far.
        """
        ...

    def look(self, tenant: str, report_date: date) -> SeenReport | None:
        """Return one report with its trail; None where there is none."""
        ...

    def mail_body(self, report_id: int) -> bytes | None:
        """Return the frozen body that all recipients share; None where it was pruned."""
        ...

    def head(self, send_id: int) -> str:
        """Return the frozen head of one recipient's copy."""
        ...

    def figures(self, since: date, at_most: int) -> ReportFigures:
        """Return how reports stand; counts stop at `at_most`."""
        ...

    def next_due(self) -> datetime | None:
        """Return when the next mail is due that is not written yet; None where none waits."""
        ...

    def counted_by(self, rule: str, hold_key: str, operation_id: int) -> CountedBy | None:
        """Return the report that counts an ended operation; None while none does."""
        ...
