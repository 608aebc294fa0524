"""Closing costs what it closes: no statement reads a table that grows from end to end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards
from freehold.application.reporting.closing import Closer
from freehold.domain.days import tz_version
from freehold.domain.inventory import Tenant
from tests.behaviour.plans import analyse, explained
from tests.reports.book import POLICY

if TYPE_CHECKING:
    from tests.behaviour.place import Place
    from tests.behaviour.plans import Plans

OLD, TENANTS, DUE = 40_000, 4_000, 300  # tallies in reports; in the calendar; whose day is over
GIANT, MOST = 500, 200  # tallies of one tenant, and of one transaction
START = datetime(2026, 3, 10, tzinfo=UTC)
POSTGRES = {
    "walk_tenants": {"tenant_pkey", "report_calendar_pkey"},
    "walk_owners": {"tally_unreported", "report_calendar_pkey"},
    "read_newcomers": {"tally_unreported", "report_start", "report_calendar_pkey"},
    "moved_tenants": {"tenant_changed", "report_calendar_pkey"},
    "next_report_end": {"report_calendar_end"},
    "due_windows": {"report_calendar_end"},
    "take_group": {"report_calendar_end"},
    "assign_tallies": {"tally_unreported", "report_in_parts"},
    "weigh_page": {"tally_unreported"},
    "any_in_parts": {"report_in_parts"},
    "take_report_in_parts": {"report_in_parts"},
    "count_reports": {"tally_reported", "report_pkey"},
    "move_calendar": {"report_calendar_pkey"},
    "window_of_tenant": {"report_calendar_pkey"},
}
SQLITE = {
    "walk_owners": {"freehold_tally_unreported"},
    "read_newcomers": {"freehold_tally_unreported"},
    "moved_tenants": {"freehold_tenant_changed"},
    "next_report_end": {"freehold_report_calendar_end"},
    "due_windows": {"freehold_report_calendar_end"},
    "take_group": {"freehold_report_calendar_end"},
    "assign_tallies": {"freehold_tally_unreported"},
    "weigh_page": {"freehold_tally_unreported"},
    "any_in_parts": {"freehold_report_in_parts"},
    "take_report_in_parts": {"freehold_report_in_parts"},
    "count_reports": {"freehold_tally_reported"},
}
# What reads a table on purpose: every tenant once in a while, the calendar once a process.
WHOLE = {"outdated_windows"}
SORTED = {
    "due_windows",
    "walk_tenants",
    "walk_owners",
}  # no more than it was asked for; others stop at the end of their page


@pytest.mark.parametrize("statistics", ["stale", "fresh"])
def test_statements_go_by_their_index(place: Place, statistics: str) -> None:
    if statistics == "stale":
        analyse(place)
    _fill(place)
    if statistics == "fresh":
        analyse(place)
    session = explained(place)
    ledger = SqlLedger(session, Onwards())
    place.clock.at = START.replace(day=11, minute=2)
    closer = Closer(ledger, POLICY, Onwards())
    closer._calendar._followed_since = place.clock.at
    closer._calendar.tallies_max = MOST
    with ledger.transaction() as tx:
        tx.tenants.set([Tenant("t17", "T17", zone="Europe/Berlin"), Tenant("x1", "X1")])
    assert closer.close().report_count == DUE + 1  # and a newcomer from before
    assert closer.next_end() is not None
    with ledger.transaction() as tx:
        assert tx.report_calendar.group_of("t5") is not None
    _assert_by_index(place, session.plans)


def _assert_by_index(place: Place, plans: Plans) -> None:
    wanted = POSTGRES if place.dialect == "postgres" else SQLITE
    missing = {n: (want, plans[n]) for n, want in wanted.items() if not want <= plans[n]}
    assert not missing
    assert {n for n, p in plans.items() if "a sort" in p} <= SORTED
    grown = {f"all of {name}" for name in _grown(place)}
    whole = {n: p & grown for n, p in plans.items() if p & grown and n not in WHOLE}
    assert not whole


def _grown(place: Place) -> list[str]:
    """Name the tables that grow, and their short names in statements."""
    names = [f"{place.prefix}{name}" for name in ("tally", "report", "report_calendar", "tenant")]
    bare = [name.rpartition(".")[2] for name in names]
    return [*bare, *(f"{name}_pkey" for name in bare), "t", "c", "r", "x", "y"]


def _fill(place: Place) -> None:
    """Write tallies in reports, a calendar whose first tenants are due, and some that are not."""
    series = {
        "postgres": "generate_series(1, {count}) s(n)",
        "sqlite": "(with recursive s(n) as (select 1 union all select n + 1 from s"
        " where n < {count}) select n from s) s",
    }[place.dialect]
    p, version = place.prefix, tz_version()
    at = "'2026-03-10T12:00:00.000000Z'"
    begin, end = "'2026-03-10T00:00:00.000000Z'", "'2026-03-11T00:00:00.000000Z'"
    later = "'2026-03-12T00:00:00.000000Z'"
    run = place.host.run
    many = series.format(count=TENANTS)
    run(
        f"insert into {p}report (tenant, report_date, start_at, end_at, zone, tz_version,"
        " watermark_at, due_at, state, expired_count, assigned_at) select 't' || n, '2026-03-09',"
        f" '2026-03-09T00:00:00.000000Z', {begin}, 'UTC', '{version}', {begin}, {begin},"
        f" 'assigned', 0, {begin} from {many} where n % 2 = 0"
    )
    for count, report, owner in (
        (OLD, f"n % {TENANTS}", f"n % {TENANTS}"),
        (2 * DUE, "null", f"n % {DUE}"),
        (GIANT, "null", "7"),
    ):
        run(
            f"insert into {p}tally (rule, tenant, at, expired_count, skipped, lag_counts, report_id)"
            f" select 'r', 't' || ({owner}), {at}, 1, '{{}}', '[]',"
            f" {report} from {series.format(count=count)}"
        )
    run(
        f"insert into {p}tenant (id, name, created_at, changed_at) select 't' || n, 'T', '2026-01-01"
        f" 00:00:00.000000', '2026-01-01 00:00:00.000000' from {many}"
    )
    run(
        f"insert into {p}report_calendar (tenant, next_date, start_at, end_at, zone, tz_version)"
        f" select 't' || (n - 1), '2026-03-10', {begin}, case when n <= {DUE} then {end} else {later}"
        + (" end::timestamptz" if place.dialect == "postgres" else " end")
        + f", 'UTC', '{version}' from {many}"
    )
