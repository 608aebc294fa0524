"""Facts are counted by index, whatever the statistics say: from a page's own tallies and records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards
from freehold.application.reporting.freezing import Freezer
from freehold.domain.reports import ReportPolicy, ReportState
from freehold.ports.reports import RuleNote
from tests.behaviour.plans import analyse, assert_by_index, explained
from tests.reports.ledgers import DAY, FIRST, day_window

if TYPE_CHECKING:
    from tests.behaviour.place import Place
    from tests.behaviour.plans import Plans

TENANTS, DAYS, A_DAY = 100, 50, 20  # 100,000 tallies with a record each
POSTGRES = {
    "facts_waiting": {"report_assigned"},
    "facts_assigned": {"report_pkey"},
    "facts_counts": {"tally_reported"},
    "facts_skips": {"tally_reported"},
    "facts_late": {"tally_reported", "report_start"},
    "facts_units": {"tally_reported", "record_default_tally_id_idx"},
    "facts_items": {"tally_reported", "record_default_tally_id_idx"},
    "freeze_facts": {"report_pkey"},
    "frozen_reports": {"report_due"},
}
SQLITE = {
    "facts_waiting": {"freehold_report_assigned"},
    "facts_assigned": {"rowid of p"},
    "facts_counts": {"rowid of p", "freehold_tally_reported"},
    "facts_skips": {"rowid of p", "freehold_tally_reported"},
    "facts_late": {"freehold_tally_reported", "sqlite_autoindex_freehold_report_2"},
    "facts_units": {"freehold_tally_reported", "freehold_record_tally"},
    "facts_items": {"freehold_tally_reported", "freehold_record_tally", "rowid of u"},
    "freeze_facts": {"rowid of freehold_report"},
    "frozen_reports": {"freehold_report_due"},
}
BEFORE = ("", "freehold_", "sqlite_autoindex_freehold_")
ENDS = ("_once", "_by_date", "_1")  # by tenant and date, whichever comes first
_SERIES = {
    "postgres": "generate_series(0, {last}) as s (n)",
    "sqlite": "(with recursive c (n) as (select 0 union all select n + 1 from c where n < {last})"
    " select n from c) s",
}


def _fill(place: Place) -> None:
    """Write reports, all but the last day's frozen, and the ends that they count."""
    postgres = place.dialect == "postgres"
    first = day_window(FIRST).start_at
    begins = first - (DAYS - 1) * DAY

    def after(days: str, seconds: str = "0") -> str:
        if postgres:
            text = f"timestamptz '{begins.isoformat()}' + ({days}) * interval '1 day'"
            return f"{text} + ({seconds}) * interval '1 s'"
        start = begins.strftime("%Y-%m-%d")
        days, seconds = f"({days}) || ' days'", f"({seconds}) || ' seconds'"
        return f"strftime('%Y-%m-%dT%H:%M:%S.000000Z', '{start}', {days}, {seconds})"

    day = f"({after(f'n / {TENANTS}')})" + ("::date" if postgres else "")
    day = day if postgres else f"date({day})"
    text = f"case when n / {TENANTS} < {DAYS - 1} then '%s' end"
    place.host.run(
        f"insert into {place.prefix}report (tenant, report_date, start_at, end_at, zone, tz_version, "
        "watermark_at, due_at, state, facts, facts_digest, expired_count, assigned_at) "
        f"select 't' || (n % {TENANTS}), {day}, {after(f'n / {TENANTS}')}, "
        f"{after(f'n / {TENANTS} + 1')}, 'UTC', 'test', {after('0')}, {after('0')}, "
        f"case when n / {TENANTS} < {DAYS - 1} then 'sent' else 'assigned' end, "
        f"{text % '{}'}, {text % 'd'}, {A_DAY}, {after('0')} "
        f"from {_SERIES[place.dialect].format(last=TENANTS * DAYS - 1)} order by n"
    )
    number = f"n / {A_DAY} / {TENANTS}"
    late = f"case when n % {A_DAY} = 0 then -1 else n % {A_DAY} end"
    zeros = "[" + ", ".join(["1", *["0"] * 15]) + "]"
    ends = f"from {_SERIES[place.dialect].format(last=TENANTS * DAYS * A_DAY - 1)} order by n"
    place.host.run(
        f"insert into {place.prefix}tally (rule, tenant, at, expired_count, skipped, lag_counts, "
        f"lag_max_seconds, report_id) select 'cart', 't' || (n / {A_DAY} % {TENANTS}), "
        f"{after(number, late)}, 1, '{{\"gone\": 1}}', '{zeros}', 0, n / {A_DAY} + 1 {ends}"
    )
    digest = "gen_random_uuid()" if postgres else "hex(randomblob(16))"
    place.host.run(
        f"insert into {place.prefix}record (operation_id, rule, tenant, hold_key, digest, generation,"
        " due_at, outcome, attempt, before_image, tally_id, found_at, finished_at) "
        f"select n, 'cart', 't' || (n / {A_DAY} % {TENANTS}), 'k' || n, {digest}, 1, "
        f"{after(number, late)}, 'expired', 1, '{{\"room\": \"1\"}}', n + 1, "
        f"{after(number, late)}, {after(number, late)} {ends}"
    )


def _plans(place: Place) -> Plans:
    """Freeze the last day's reports, and do what is done with frozen ones."""
    session = explained(place)
    ledger = SqlLedger(session, Onwards())
    notes = {"cart": RuleNote(60.0, "room", own_units=True)}
    policy = ReportPolicy("reports@example.org", items_max=5)
    assert Freezer(ledger, policy, notes, Onwards()).freeze() == TENANTS
    with ledger.transaction() as tx:
        found = tx.reports.frozen(place.clock.at, 10)
        assert len(found) == 10
        facts = found[0].facts
        assert (facts.released_count, facts.late[0].released_count) == (A_DAY - 1, 1)
        assert len(facts.items) == 5
        assert tx.reports.read("t3", FIRST) is not None
        tx.reports.end([found[0].id], ReportState.SKIPPED, None)
    return session.plans


@pytest.mark.parametrize("statistics", ["stale", "fresh"])
def test_facts_are_counted_by_index(place: Place, statistics: str) -> None:
    place.clock.at = day_window(FIRST + DAY).start_at
    if statistics == "stale":
        analyse(place)
    _fill(place)
    if statistics == "fresh":
        analyse(place)
    plans = _plans(place)
    assert_by_index(plans, POSTGRES if place.dialect == "postgres" else SQLITE)
    assert plans["read_frozen"] & {f"{one}report{end}" for one in BEFORE for end in ENDS}
    tables = ("report", "tally", "record_default", "p", "o", "b", "q", "freehold_report")
    whole = {
        name: plan for name, plan in plans.items() if any(f"all of {t}" in plan for t in tables)
    }
    assert set(whole) <= {"facts_open_work"}, whole  # reads what is open, once for many pages
