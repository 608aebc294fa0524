"""Asking for texts costs no more when reports and attempts grow: each statement goes by its index."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards
from freehold.domain.facts import Facts
from freehold.ports.summary import SummaryAttempt, SummaryWanted, Told
from tests.behaviour.place import NOON
from tests.behaviour.plans import analyse, assert_by_index, explained

if TYPE_CHECKING:
    from tests.behaviour.place import Place

REPORTS, FROZEN, OPEN = 6_000, 1_000, 20
POSTGRES = {
    "summaries_wanted": {"report_due", "report_pkey", "summary_attempt_once", "tenant_pkey"},
    "summary_tokens_spent": {"summary_spent"},
    "begin_summary_attempt": {"report_pkey"},
    "end_summary_attempt": {"summary_attempt_pkey"},
    "abandon_summary_attempts": {"summary_open"},
    "accepted_summaries": {"report_pkey", "summary_attempt_once"},
}
SQLITE = {
    "summaries_wanted": {
        *("freehold_report_due", "rowid of w", "sqlite_autoindex_freehold_summary_attempt_1"),
        "sqlite_autoindex_freehold_tenant_1",
    },
    "summary_tokens_spent": {"freehold_summary_spent"},
    "begin_summary_attempt": {"rowid of r"},
    "end_summary_attempt": {"rowid of freehold_summary_attempt"},
    "abandon_summary_attempts": {"freehold_summary_open"},
    "accepted_summaries": {"rowid of r", "sqlite_autoindex_freehold_summary_attempt_1"},
}
_SERIES = {
    "postgres": f"generate_series(0, {REPORTS - 1}) as s (n)",
    "sqlite": "(with recursive c (n) as"
    f" (select 0 union all select n + 1 from c where n < {REPORTS - 1}) select n from c) s",
}
GROWING = ("report", "summary_attempt", "tenant")
FACTS = Facts("t1", "t1", date(2026, 3, 9), NOON, NOON, "UTC", "t", NOON, NOON)


def _fill(place: Place) -> None:
    """Write reports, the last ones frozen, an attempt at each, the last of which are open."""
    postgres = place.dialect == "postgres"

    def after(seconds: str) -> str:
        if postgres:
            return f"timestamptz '{NOON.isoformat()}' + ({seconds}) * interval '1 s'"
        start = NOON.strftime("%Y-%m-%d %H:%M")
        return f"strftime('%Y-%m-%dT%H:%M:%S.000000Z', '{start}', ({seconds}) || ' seconds')"

    series = _SERIES[place.dialect]
    p = place.prefix
    empty, true = ("'[]'::json", "true") if postgres else ("'[]'", "1")
    place.host.run(
        f"insert into {p}tenant (id, name, recipients, active, created_at, changed_at)"
        f" select 't' || n, 't', {empty}, {true}, {after('0')}, {after('0')} from {series}"
    )
    day = "date '2026-03-09'" if postgres else "'2026-03-09'"
    place.host.run(
        f"insert into {p}report (tenant, report_date, start_at, end_at, zone, tz_version,"
        " watermark_at, due_at, state, facts, facts_digest, expired_count, assigned_at)"
        f" select 't' || n, {day}, {after('-9')}, {after('-1')}, 'UTC', 't', {after('0')},"
        f" {after('n + 60')}, case when n < {REPORTS - FROZEN} then 'sent' else 'frozen' end,"
        f" '{{}}', 'd', 3, {after('0')} from {series} order by n"
    )
    ended = f"case when id <= {REPORTS - OPEN}"
    place.host.run(
        f"insert into {p}summary_attempt (report_id, tenant, attempt, prompt_version, facts_digest,"
        " host, model_asked, started_at, ended_at, outcome, tokens_max)"
        f" select id, tenant, 1, '1', 'd', 'h', 'm', {after('0')}, {ended} then {after('1')} end,"
        f" {ended} then 'rejected' end, 9 from {p}report"
    )


@pytest.mark.parametrize("statistics", ["stale", "fresh"])
def test_statements_go_by_their_index(place: Place, statistics: str) -> None:
    if statistics == "stale":
        analyse(place)
    _fill(place)
    if statistics == "fresh":
        analyse(place)
    session = explained(place)
    wanted = SummaryWanted(REPORTS - OPEN, f"t{REPORTS - OPEN - 1}", FACTS, "d", None, NOON, 1)
    with SqlLedger(session, Onwards()).transaction() as tx:
        page = tx.summaries.wanted(NOON, None, 20, 2)
        assert page.place is not None
        tx.summaries.wanted(NOON, page.place, 20, 2)
        assert tx.summaries.spent("t7", NOON) == 9
        attempt = tx.summaries.begin(wanted, "1", "h", "m", 9)
        assert attempt == SummaryAttempt(REPORTS + 1, wanted.report_id, 2, "d")
        assert tx.summaries.end(attempt, Told("3"), None, None, None)
        assert tx.summaries.abandon(NOON.replace(hour=13)) == OPEN
        assert list(tx.summaries.accepted([7, wanted.report_id])) == [wanted.report_id]
    assert_by_index(session.plans, POSTGRES if place.dialect == "postgres" else SQLITE)
    whole = {f"all of {p}{name}" for name in GROWING for p in ("", "freehold_")}
    assert not {name for name, plan in session.plans.items() if plan & whole}
