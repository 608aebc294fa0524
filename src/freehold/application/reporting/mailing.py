"""Mailing: frozen reports that are due become frozen mails, or end with a reason.

*Invariants*: a mail is written once, with all its recipients, in one transaction; whom it goes to is
read in that transaction; one report that cannot be written stops none of the others.
*Not here*: how a mail looks (`adapters/rendering`), sending it (`sending`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial

from freehold.domain.addresses import sort_out
from freehold.domain.reports import ReportPolicy, ReportReason, ReportState
from freehold.domain.unsubscribing import token
from freehold.ports.ledger import Ledger, Transaction
from freehold.ports.rendering import Rendered, Renderer
from freehold.ports.reports import FrozenReport
from freehold.ports.sends import NewMail, NewSend
from freehold.ports.system import Boundary, Checkpoint
from freehold.ports.telemetry import UNHEARD, MailsFrozen, MailUnwritable, Telemetry
from freehold.ports.unsubscribed import Link

PAGE = 50
SMALL_PAGE = 4  # where writing keeps the host application waiting: some 20 ms of compressing
NO_ADDRESS = "it is no plain mail address, or one too many; set the tenant's recipients"

Summary = tuple[int, str]  # the attempt that was accepted, and its text
Fate = tuple[ReportState, ReportReason]
Find = Callable[[Transaction], Sequence[FrozenReport]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A report that gets a mail, with all that the mail is made from."""

    report: FrozenReport
    locale: str
    summary: Summary | None
    recipients: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """What was made of a report: a mail, or the kind of trouble."""

    wanted: Wanted
    mail: NewMail | None
    error: str = ""


@dataclass(slots=True)
class _Step:
    """What one transaction wrote, to be told once it is committed."""

    written_count: int = 0
    ended: Counter[ReportReason] = field(default_factory=Counter)
    unwritable: list[Made] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.written_count + sum(self.ended.values())


class Mailer:
    """Writes mails on one ledger connection."""

    def __init__(
        self,
        ledger: Ledger,
        renderer: Renderer,
        policy: ReportPolicy,
        checkpoint: Checkpoint,
        telemetry: Telemetry = UNHEARD,
    ) -> None:
        self._ledger = ledger
        self._renderer = renderer
        self._policy = policy
        self._checkpoint = checkpoint
        self._telemetry = telemetry
        self._page = SMALL_PAGE if ledger.one_writer else PAGE

    def prepare(self, limit: int) -> int:
        """Write the mails of reports that are due, at most `limit`; return how many moved on.

        Again: leaves those that have their mail. Crash: mails are written whole, or not at all.
        """
        moved_count = 0
        while moved_count < limit:
            page = min(self._page, limit - moved_count)
            count = self._move_on(partial(_due, limit=page))
            moved_count += count
            if not count:
                break
        return moved_count

    def prepare_one(self, tenant: str, report_date: date) -> bool:
        """Write the mail of one frozen report now, due or not; False where it is not frozen."""

        def find(tx: Transaction) -> Sequence[FrozenReport]:
            report = tx.reports.read(tenant, report_date)
            return [] if report is None else [report]

        return bool(self._move_on(find))

    # ---------------------------------------------------------------------------------- one page

    def _move_on(self, find: Find) -> int:
        """Write a page; made ahead of the write where writing keeps all others waiting."""
        ahead: dict[int, Made] = {}
        if self._ledger.one_writer:
            with self._ledger.glance() as tx:
                wanted, fates = self._sort(tx, find(tx))
            if not wanted and not fates:
                return 0
            ahead = {one.report.id: self._made(one) for one in wanted}
        with self._ledger.transaction() as tx:
            step = self._write(tx, find, ahead)
            self._checkpoint.reach(Boundary.MAILS_FROZEN)
        self._tell(step)
        return step.count

    def _write(self, tx: Transaction, find: Find, ahead: Mapping[int, Made]) -> _Step:
        """Write what is to be written; what is not as it was when it was made, is made anew."""
        wanted, fates = self._sort(tx, find(tx))
        made = [self._known(one, ahead) or self._made(one) for one in wanted]
        step = _Step(unwritable=[one for one in made if one.mail is None])
        mails = [one.mail for one in made if one.mail is not None]
        step.written_count = tx.sends.write(mails) if mails else 0
        self._keep_links(tx, made)
        for one in step.unwritable:
            fates[one.wanted.report.id] = (ReportState.NOT_SENT, ReportReason.UNWRITABLE)
        for fate in sorted(set(fates.values())):
            ids = [report_id for report_id, other in fates.items() if other == fate]
            step.ended[fate[1]] = tx.reports.end(ids, *fate)
        return step

    def _known(self, wanted: Wanted, ahead: Mapping[int, Made]) -> Made | None:
        made = ahead.get(wanted.report.id)
        return made if made is not None and made.wanted == wanted else None

    def _keep_links(self, tx: Transaction, made: Sequence[Made]) -> None:
        """Write what the tokens of unsubscribe links name."""
        if "{token}" not in (self._policy.unsubscribe or ""):
            return
        links = [
            Link(token(tenant, send.recipient), tenant, send.recipient)
            for one in made
            for tenant in [one.wanted.report.facts.tenant]
            for send in (one.mail.sends if one.mail else ())
            if send.refused is None
        ]
        if links:
            tx.unsubscribed.keep_links(links)

    def _tell(self, step: _Step) -> None:
        for one in step.unwritable:
            self._telemetry.tell(MailUnwritable(one.wanted.report.id, one.error))
        if step.count:
            ended = {reason.value: count for reason, count in step.ended.items()}
            self._telemetry.tell(MailsFrozen(step.written_count, ended))

    # ---------------------------------------------------------------------------------- deciding

    def _sort(
        self, tx: Transaction, reports: Sequence[FrozenReport]
    ) -> tuple[list[Wanted], dict[int, Fate]]:
        """Part reports into those that get a mail, and those that end without one."""
        fates = {one.id: fate for one in reports if (fate := fate_of(one, self._policy))}
        left = [one for one in reports if one.id not in fates]
        summaries = tx.summaries.accepted([one.id for one in left]) if left else {}
        return [self._wanted(one, summaries.get(one.id)) for one in left], fates

    def _wanted(self, report: FrozenReport, summary: Summary | None) -> Wanted:
        tenant = report.tenant
        assert tenant is not None
        return Wanted(report, tenant.locale or self._policy.locale, summary, tenant.recipients)

    # ------------------------------------------------------------------------------------ making

    def _made(self, wanted: Wanted) -> Made:
        """Make one mail; whatever goes wrong with it is its own affair."""
        try:
            return Made(wanted, self._mail(wanted))
        except Exception as error:  # noqa: BLE001 - a bug that one report shows must not stop the others
            return Made(wanted, None, type(error).__name__)

    def _mail(self, wanted: Wanted) -> NewMail:
        report, summary = wanted.report, wanted.summary
        text = summary[1] if summary else None
        rendered = self._renderer.render(report.facts, wanted.locale, text)
        good, bad = sort_out(wanted.recipients)
        return NewMail(
            report_id=report.id,
            locale=rendered.locale,
            subject=rendered.subject,
            body=rendered.body,
            sends=(*self._sends(report, rendered, good), *_refused(report, bad)),
            summary_id=summary[0] if summary else None,
        )

    def _sends(
        self, report: FrozenReport, rendered: Rendered, recipients: Sequence[str]
    ) -> Sequence[NewSend]:
        """Return the sends of recipients that a mail can be addressed to.

        A mail is dated when it was due, or when its facts were frozen where that was later: a day
        that is caught up with arrives as a mail of today.
        """
        dated_at = max(report.due_at, report.facts.frozen_at)
        heads = self._renderer.heads(report.facts, rendered, recipients, dated_at)
        return [
            NewSend(
                recipient=recipient,
                message_key=key,
                head=head,
                mail_digest=hashlib.sha256(head.encode() + rendered.body).hexdigest(),
                unsubscribed=recipient in report.unsubscribed,
            )
            for recipient, (key, head) in zip(recipients, heads, strict=True)
        ]


def _due(tx: Transaction, limit: int) -> Sequence[FrozenReport]:
    return tx.reports.frozen(tx.now, limit)


def _refused(report: FrozenReport, recipients: Sequence[str]) -> Sequence[NewSend]:
    """Return the sends of recipients that no mail can be addressed to; they are refused at once."""
    facts = report.facts
    whose = [f"{facts.tenant}\0{facts.report_date}\0{recipient}" for recipient in recipients]
    return [
        NewSend(
            recipient=recipient,
            message_key=f"refused.{hashlib.sha256(text.encode()).hexdigest()}",
            head="",
            mail_digest=hashlib.sha256(b"").hexdigest(),
            refused=NO_ADDRESS,
        )
        for recipient, text in zip(recipients, whose, strict=True)
    ]


def fate_of(report: FrozenReport, policy: ReportPolicy) -> Fate | None:
    """Return how a report ends without a mail, or None where it gets one."""
    if report.reason is not None:
        return ReportState.SKIPPED, report.reason
    tenant = report.tenant
    if tenant is not None and not tenant.active:
        return ReportState.SKIPPED, ReportReason.INACTIVE
    if tenant is None or not tenant.recipients:
        return ReportState.NOT_SENT, ReportReason.NO_RECIPIENT
    good, bad = sort_out(tenant.recipients)
    if not bad and report.unsubscribed.issuperset(good):
        return ReportState.NOT_SENT, ReportReason.UNSUBSCRIBED
    if policy.empty == "skip" and report.facts.is_empty:
        return ReportState.SKIPPED, ReportReason.EMPTY
    return None
