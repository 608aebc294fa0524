"""Reports for people, out of one snapshot; implements `ports.report_insight.ReportsInSight`."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

from freehold.adapters.sql.inventory import SqlTenants
from freehold.adapters.sql.session import Row, Runner
from freehold.domain.facts_text import read_facts
from freehold.domain.reports import ReportReason, ReportState, Window
from freehold.domain.sending import AttemptKind, SendOutcome, SendState
from freehold.ports.report_insight import (
    CountedBy,
    Listed,
    OpenDay,
    ReportFigures,
    ReportLine,
    SeenAct,
    SeenAttempt,
    SeenMail,
    SeenReport,
    SeenSend,
    SeenSummary,
    report_subject,
    send_subject,
)

PAGE = 500  # reports looked at in one statement
LOOKED_MOST = 10_000  # in search of a state; then the person may go on
ACTS_MOST = 100
DAY = timedelta(days=1)


class SqlReportsInSight:
    """Reports in one reading."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now
        self._instant = runner.session.instant
        self._at = runner.session.sure_instant

    # ---------------------------------------------------------------------------------- lists

    def find(
        self,
        tenant: str | None,
        report_date: date | None,
        state: ReportState | None,
        after: tuple[date, str] | None,
        limit: int,
    ) -> Listed:
        """Return reports, the newest date first."""
        least = report_date or date.min
        place: tuple[date, str] | None = after or _behind(report_date)
        lines: list[ReportLine] = []
        looked = 0
        while place is not None and len(lines) < limit and looked < LOOKED_MOST:
            asked = limit - len(lines) if state is None else PAGE
            page = self._page(tenant, least, place, asked)
            looked += len(page)
            matching = [one for one in page if state in (None, one.state)][: limit - len(lines)]
            lines += matching
            full = len(lines) == limit
            last = lines[-1] if full else page[-1] if page else None
            place = (
                (last.report_date, last.tenant) if last and (full or len(page) == asked) else None
            )
        return Listed(lines, place)

    def _page(
        self, tenant: str | None, least: date, place: tuple[date, str], limit: int
    ) -> list[ReportLine]:
        dates = {"least": least.isoformat(), "report_date": place[0].isoformat(), "limit": limit}
        if tenant is None:
            rows = self._sql.rows("list_reports", **dates, tenant=place[1])
        else:
            rows = self._sql.rows("list_reports_of_tenant", **dates, tenant=tenant)
        return [self._line(row) for row in rows]

    def _line(self, row: Row) -> ReportLine:
        return ReportLine(
            tenant=row[0],
            report_date=_date(row[1]),
            state=ReportState(row[2]),
            reason=_reason(row[3]),
            due_at=self._at(row[4]),
            released_count=row[5],
            send_count=row[6],
            accepted_count=row[7],
        )

    # --------------------------------------------------------------------------- one report

    def look(self, tenant: str, report_date: date) -> SeenReport | None:
        """Return one report with its trail."""
        named = {"tenant": tenant, "report_date": report_date.isoformat()}
        rows = self._sql.rows("look_at_report", **named)
        return self._report(tenant, report_date, rows[0]) if rows else None

    def _report(self, tenant: str, report_date: date, row: Row) -> SeenReport:
        tenants = SqlTenants(self._sql.session, self._now).read([tenant])
        sends = self._sends(row[0])
        subjects = [
            report_subject(tenant, report_date),
            *(send_subject(tenant, report_date, one.recipient) for one in sends),
        ]
        return SeenReport(
            id=row[0],
            window=Window(report_date, self._at(row[1]), self._at(row[2]), row[3], row[4]),
            tenant_id=tenant,
            state=ReportState(row[5]),
            reason=_reason(row[6]),
            due_at=self._at(row[7]),
            watermark_at=self._at(row[8]),
            assigned_at=self._at(row[9]),
            frozen_at=self._instant(row[10]),
            ended_at=self._instant(row[11]),
            facts=None if row[12] is None else read_facts(row[12]),
            facts_digest=row[13],
            tenant=tenants[0] if tenants else None,
            mail=self._mail(row[0]),
            sends=sends,
            summaries=self._summaries(row[0]),
            acts=self._acts(subjects),
        )

    def _mail(self, report_id: int) -> SeenMail | None:
        rows = self._sql.rows("look_at_mail", report_id=report_id)
        if not rows:
            return None
        locale, subject, digest, byte_count, frozen_at, kept, summary_id = rows[0]
        at = self._at(frozen_at)
        return SeenMail(locale, subject, digest, byte_count, at, bool(kept), summary_id)

    def _sends(self, report_id: int) -> Sequence[SeenSend]:
        rows = self._sql.rows("look_at_sends", report_id=report_id)
        return [
            SeenSend(
                id=row[0],
                recipient=row[1],
                message_key=row[2],
                mail_digest=row[3],
                state=SendState(row[4]),
                reason=row[5],
                available_at=self._at(row[6]),
                transport=row[7],
                reference=row[8],
                changed_at=self._at(row[9]),
                attempts=self._attempts(row[0]),
            )
            for row in rows
        ]

    def _attempts(self, send_id: int) -> Sequence[SeenAttempt]:
        return [
            SeenAttempt(
                attempt=row[0],
                kind=AttemptKind(row[1]),
                transport=row[2],
                started_at=self._at(row[3]),
                ended_at=self._instant(row[4]),
                outcome=None if row[5] is None else SendOutcome(row[5]),
                reference=row[6],
                code=row[7] or "",
                answer=row[8] or "",
            )
            for row in self._sql.rows("look_at_attempts", id=send_id)
        ]

    def _summaries(self, report_id: int) -> Sequence[SeenSummary]:
        rows = self._sql.rows("look_at_summaries", report_id=report_id)
        return [
            SeenSummary(
                attempt=row[0],
                host=row[1],
                model=row[2],
                started_at=self._at(row[3]),
                outcome=row[4],
                reason=row[5],
                input_tokens=row[6],
                output_tokens=row[7],
                cost_micros=row[8],
                currency=row[9],
            )
            for row in rows
        ]

    def _acts(self, subjects: Sequence[str]) -> Sequence[SeenAct]:
        """Return the newest acts on these mails, oldest first."""
        found = [
            SeenAct(self._at(row[0]), subject, row[1], row[2], row[3])
            for subject in subjects
            for row in self._sql.rows("acts_on", subject=subject, limit=ACTS_MOST)
        ]
        return sorted(found, key=lambda one: one.at)[-ACTS_MOST:]

    def mail_body(self, report_id: int) -> bytes | None:
        """Return the frozen body."""
        rows = self._sql.rows("mail_body", report_id=report_id)
        return zlib.decompress(rows[0][0]) if rows and rows[0][0] is not None else None

    def head(self, send_id: int) -> str:
        """Return the frozen head of one recipient's copy."""
        return str(self._sql.rows("look_at_head", id=send_id)[0][0])

    # ------------------------------------------------------------------------------- figures

    def figures(self, since: date, at_most: int) -> ReportFigures:
        """Return how reports stand."""
        bounds = {"now": self._now, "limit": at_most}
        newest = self._sql.rows("newest_reports", since=since.isoformat(), limit=at_most)
        opened = {row[0]: row[1:] for row in self._sql.rows("open_reports", limit=at_most)}
        owed = [
            *self._sql.rows("owed_reports", **bounds),
            *self._sql.rows("unfrozen_reports", **bounds),
            opened.get("sending", (0, None)),
        ]
        dues = [self._instant(row[1]) for row in owed]
        review = opened.get("in review")
        return ReportFigures(
            states={ReportState(row[0]): row[1] for row in newest},
            owed_count=min(at_most, sum(row[0] for row in owed)),
            oldest_owed_at=min((at for at in dues if at is not None), default=None),
            review_count=review[0] if review else 0,
            oldest_review=self._named(review[2]) if review else None,
            unknown_count=self._sql.rows("unknown_sends", limit=at_most)[0][0],
            next_day=self._next_day(),
            never_began=bool(self._sql.rows("nobody_enrolled")[0][0]),
        )

    def _named(self, report_id: int) -> tuple[date, str]:
        report_date, tenant = self._sql.rows("report_by_id", id=report_id)[0]
        return _date(report_date), tenant

    def _next_day(self) -> OpenDay | None:
        rows = self._sql.rows("next_day")
        if not rows:
            return None
        (row,) = rows
        window = Window(_date(row[1]), self._at(row[2]), self._at(row[3]), row[4], row[5])
        return OpenDay(row[0], window, row[6])

    def next_due(self) -> datetime | None:
        """Return when the next mail is due."""
        return self._instant(self._sql.rows("next_due_report")[0][0])

    def counted_by(self, rule: str, hold_key: str, operation_id: int) -> CountedBy | None:
        """Return the report that counts an ended operation."""
        named = {"rule": rule, "hold_key": hold_key, "operation_id": operation_id}
        rows = self._sql.rows("counted_by_report", **named)
        if not rows:
            return None
        tenant, report_date, state = rows[0]
        return CountedBy(tenant, _date(report_date), ReportState(state))


def _behind(report_date: date | None) -> tuple[date, str]:
    """Return the place just behind a date, or behind all."""
    return date.max if report_date is None else report_date + DAY, ""


def _date(value: Any) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)


def _reason(value: str | None) -> ReportReason | None:
    return None if value is None else ReportReason(value)
