"""The facts of reports in SQL; implements `ports.reports.Reports`.

*Invariants*: only sums, and as many released holds as a report lists, leave the database.
*Not here*: which tallies are whose (`report_calendar`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from math import isfinite
from typing import Any, TypeVar

from freehold.adapters.sql.inventory import tenant_of
from freehold.adapters.sql.session import Row, Runner
from freehold.domain.facts import Facts, LateFacts, ReleasedItem, RuleFacts
from freehold.domain.facts_text import canonical, facts_digest, read_facts, to_microseconds
from freehold.domain.reports import ReportReason, ReportState
from freehold.domain.tallies import lags, within_count
from freehold.ports.audit import Violation
from freehold.ports.reports import (
    Draft,
    FrozenReport,
    OpenWork,
    Overview,
    RuleNote,
    Waiting,
    Work,
)

T = TypeVar("T")
AUDIT_PAGE = 200  # reports, of 30 kB at most


class SqlReports:
    """Reports inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def overview(self, reports_max: int) -> Overview:
        """Name the first reports that wait, and read the open operations once for them."""
        return self._overview(self._sql.rows("facts_waiting", limit=reports_max))

    def overview_of(self, tenant: str, report_date: date) -> Overview:
        """Say as much of one report alone."""
        day = report_date.isoformat()
        return self._overview(self._sql.rows("fact_waiting", tenant=tenant, report_date=day))

    def _overview(self, reports: Sequence[Row]) -> Overview:
        waiting = [Waiting(row[0], row[1] or 0) for row in reports]
        if not waiting:
            return Overview()
        rows = self._sql.rows("facts_open_work", ids=[one.report_id for one in waiting])
        instant = self._sql.session.instant
        work: dict[str, dict[str, OpenWork]] = defaultdict(dict)
        for tenant, rule, dead_count, oldest_due in rows:
            work[tenant][rule] = OpenWork(dead_count, instant(oldest_due))
        return Overview(waiting, work)

    def draft(
        self, report_ids: Sequence[int], notes: Mapping[str, RuleNote], work: Work, items_max: int
    ) -> Sequence[Draft]:
        """Count the facts of those of the reports that have none yet."""
        rows = self._sql.rows("facts_assigned", ids=list(report_ids)) if report_ids else []
        if not rows:
            return []
        page = _Page(self._sql, rows, notes, items_max)
        return [page.draft(row, work, self._now) for row in rows]

    def freeze(self, drafts: Sequence[Draft]) -> int:
        """Write the facts of reports that have none yet."""
        rows = []
        for one in drafts:
            body = canonical(one.facts)
            rows.append((one.report_id, body.decode(), facts_digest(body)))
        return self._sql.many("freeze_facts", rows, now=self._now)

    def frozen(self, until: datetime, limit: int) -> Sequence[FrozenReport]:
        """Lock and return frozen reports that are due until an instant."""
        return self._read(self._sql.rows("frozen_reports", until=until, limit=limit))

    def read(self, tenant: str, report_date: date) -> FrozenReport | None:
        """Return one report with its facts."""
        day = report_date.isoformat()
        found = self._read(self._sql.rows("read_frozen", tenant=tenant, report_date=day))
        return found[0] if found else None

    def _read(self, rows: Sequence[Row]) -> list[FrozenReport]:
        tenants = list({row[5] for row in rows if row[6] is not None})
        unsubscribed: dict[str, set[str]] = defaultdict(set)
        for tenant, recipient, *_ in self._unsubscribed(tenants):
            unsubscribed[tenant].add(recipient)
        due_at = self._sql.session.sure_instant
        return [
            FrozenReport(
                id=row[0],
                facts=read_facts(row[1]),
                facts_digest=row[2],
                due_at=due_at(row[3]),
                reason=_reason(row[4]),
                tenant=None if row[6] is None else tenant_of(row[6:]),
                unsubscribed=frozenset(unsubscribed[row[5]]),
            )
            for row in rows
        ]

    def _unsubscribed(self, tenants: list[str]) -> list[Row]:
        return self._sql.rows("unsubscribed_of", tenants=tenants) if tenants else []

    def end(self, ids: Sequence[int], state: ReportState, reason: ReportReason | None) -> int:
        """End frozen reports that get no mail."""
        if not ids:
            return 0
        why = None if reason is None else reason.value
        return self._sql.count(
            "end_reports", ids=list(ids), state=state.value, reason=why, now=self._now
        )

    def reopen(self, tenant: str, report_date: date) -> bool:
        """Let a report that was not sent, and has no mail, be frozen again."""
        day = report_date.isoformat()
        return bool(self._sql.count("reopen_report", tenant=tenant, report_date=day))


def changed_facts(runner: Runner, since: datetime) -> Iterator[Violation]:
    """Find reports, frozen since an instant, whose facts are not those of their digest or count."""
    after_id = 0
    while page := runner.rows("facts_kept", after_id=after_id, since=since, limit=AUDIT_PAGE):
        for report_id, tenant, report_date, facts, kept_digest, count in page:
            after_id = report_id
            if why := _what_changed(facts, kept_digest, count or 0):
                detail = f'the facts of the report of {report_date} of tenant "{tenant}" {why}'
                yield Violation(None, None, None, detail)


def _what_changed(facts: str, kept_digest: str, released_count: int) -> str | None:
    if facts_digest(facts.encode()) != kept_digest:
        return "are not those that were frozen"
    try:
        told = read_facts(facts).released_count
    except ValueError:
        return "cannot be read by this release"
    if told != released_count:
        return f"tell {told} released holds, it counts {released_count}"
    return None


@dataclass(slots=True)
class _Sums:
    """What the tallies of one rule in one report add up to."""

    released_count: int = 0
    retried_count: int = 0
    lag_counts: Sequence[int] = ()
    lag_max_seconds: float | None = None
    unit_count: int = 0
    skipped: dict[str, int] = field(default_factory=dict)


class _Page:
    """What the database counted for a page of reports."""

    def __init__(
        self, runner: Runner, rows: Sequence[Row], notes: Mapping[str, RuleNote], items_max: int
    ) -> None:
        self._sql = runner
        self._notes = notes
        self._ids = [row[0] for row in rows]
        asked = {**_asked(notes), **self._window(rows)}
        self._sums = self._added_up()
        for report_id, rule, count in self._rows("facts_units", **asked):
            self._sums[report_id][rule].unit_count = count
        self._items = _grouped(
            (row[0], self._item(row))
            for row in self._rows("facts_items", **asked, items_max=items_max)
        )
        self._late = _grouped(
            (row[0], LateFacts(_date(row[1]), int(row[2]), int(row[3])))
            for row in self._rows("facts_late")
            if row[2] or row[3]
        )

    def _rows(self, name: str, /, **asked: Any) -> list[Row]:
        return self._sql.rows(name, ids=self._ids, **asked)

    def _window(self, rows: Sequence[Row]) -> dict[str, datetime]:
        """Return the span of all the windows, outside of which no partition need be looked into."""
        instant = self._sql.session.sure_instant
        return {
            "from_at": min(instant(row[4]) for row in rows),
            "until_at": max(instant(row[5]) for row in rows),
        }

    def _added_up(self) -> dict[int, dict[str, _Sums]]:
        found: dict[int, dict[str, _Sums]] = defaultdict(lambda: defaultdict(_Sums))
        for report_id, rule, released, retried, longest, unknown, lag_counts in self._rows(
            "facts_counts"
        ):
            lag_max = None if unknown else to_microseconds(longest)
            counts = json.loads(lag_counts)
            found[report_id][rule] = _Sums(int(released), int(retried), counts, lag_max)
        for report_id, rule, reason, count in self._rows("facts_skips"):
            found[report_id][rule].skipped[reason] = int(count)
        return found

    def _item(self, row: Row) -> ReleasedItem:
        instant = self._sql.session.sure_instant
        released_at = instant(row[5])
        due_at = released_at if row[4] is None else instant(row[4])
        lag_seconds = (released_at - due_at).total_seconds()
        return ReleasedItem(row[1], row[2], row[3], due_at, released_at, lag_seconds)

    def draft(self, row: Row, work: Work, now: datetime) -> Draft:
        """Put one report's facts together; see the column list of `facts_assigned`."""
        instant = self._sql.session.sure_instant
        report_id, tenant = row[:2]
        late = self._late.get(report_id, [])
        facts = Facts(
            tenant=tenant,
            tenant_name=row[2],
            report_date=_sure_date(row[3]),
            start_at=instant(row[4]),
            end_at=instant(row[5]),
            zone=row[6],
            tz_version=row[7],
            watermark_at=instant(row[8]),
            frozen_at=now,
            rules=tuple(self._rules(report_id, work.get(tenant, {}))),
            late=tuple(sorted(late, key=lambda one: one.report_date or date.min)),
            items=tuple(self._items.get(report_id, [])),
            day_before_count=row[10],
            week_before_count=row[11],
        )
        return Draft(report_id, facts, _reason(row[9]))

    def _rules(self, report_id: int, work: Mapping[str, OpenWork]) -> Iterator[RuleFacts]:
        """Say of each rule, by name, what it did and what it has open, if anything."""
        sums = self._sums.get(report_id, {})
        for rule in sorted({*sums, *work}):
            counted, left = sums.get(rule, _Sums()), work.get(rule, OpenWork())
            if counted != _Sums(lag_counts=counted.lag_counts) or left != OpenWork():
                yield _rule_facts(rule, counted, left, self._notes.get(rule))


def _rule_facts(rule: str, sums: _Sums, left: OpenWork, note: RuleNote | None) -> RuleFacts:
    lag = (
        {
            name: to_microseconds(at) if at is not None and isfinite(at) else None
            for name, at in lags(sums.lag_counts, sums.lag_max_seconds).items()
        }
        if sums.released_count
        else {}
    )
    promise = None if note is None else note.promise_seconds
    return RuleFacts(
        rule=rule,
        released_count=sums.released_count,
        unit_count=sums.unit_count,
        skipped=sums.skipped,
        retried_count=sums.retried_count,
        dead_count=left.dead_count,
        oldest_due_at=left.oldest_due_at,
        lag_p50_seconds=lag.get("p50"),
        lag_p95_seconds=lag.get("p95"),
        lag_max_seconds=sums.lag_max_seconds,
        promise_seconds=promise,
        within_promise_count=None
        if promise is None
        else within_count(sums.lag_counts, sums.lag_max_seconds, promise),
    )


def _asked(notes: Mapping[str, RuleNote]) -> dict[str, Any]:
    """Bind what is known of rules: an array a column, and what SQLite takes instead."""
    with_unit = {name: one for name, one in notes.items() if one.unit_column is not None}
    columns = {name: one.unit_column for name, one in with_unit.items()}
    return {
        "rules": list(columns),
        "unit_columns": list(columns.values()),
        "own_units": [one.own_units for one in with_unit.values()],
        "column_by_rule": json.dumps(columns),
        "own_rules": [name for name, one in with_unit.items() if one.own_units],
    }


def _grouped(pairs: Iterable[tuple[int, T]]) -> dict[int, list[T]]:
    found: dict[int, list[T]] = defaultdict(list)
    for report_id, one in pairs:
        found[report_id].append(one)
    return found


def _date(value: Any) -> date | None:
    return None if value is None else _sure_date(value)


def _sure_date(value: Any) -> date:
    """Read a date as the driver returned it."""
    return date.fromisoformat(value) if isinstance(value, str) else value


def _reason(value: str | None) -> ReportReason | None:
    return None if value is None else ReportReason(value)
