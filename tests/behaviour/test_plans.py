"""Every hot statement goes by its index, whatever the statistics say."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards, StopRequest, SystemClock, SystemDice
from freehold.application.scan import Scanner
from freehold.application.schedule import Scheduler
from freehold.application.sweep import Sweeper
from freehold.application.work import Worker
from freehold.domain.rules import Companion
from freehold.ports.holds import ScanCursor
from freehold.ports.ledger import ReadyAfter
from tests.behaviour.plans import Plans, analyse, assert_by_index, explained, fill
from tests.behaviour.till import LONGER_THAN_ANY_DELAY, Till, cart, open_table, refuse

if TYPE_CHECKING:
    from freehold.ports.ledger import Transaction
    from tests.behaviour.place import Place

HOLDS = 6_000
POSTGRES = {
    "find_due": {"hold_due", "operation_identity"},
    "next_due": {"hold_due"},
    "count_overdue": {"hold_due"},
    "enqueue": {"operation_identity"},
    "past_records": {"record_default_rule_hold_key_idx"},
    "count_ready": {"operation_claim"},
    "claim": {"operation_claim"},
    "newest": {"operation_claim"},
    "claim_these": {"operation_pkey"},
    "find_ready": {"operation_claim"},
    "still_ready": {"operation_pkey"},
    "lease_these": {"operation_pkey"},
    "lock_holds": {"hold_pkey", "operation_pkey"},
    "unlocked_holds": {"hold_pkey", "operation_pkey"},
    "companion_values": {"hold_pkey", "operation_pkey"},
    "release": {"hold_pkey", "operation_pkey"},
    "still_held": {"hold_pkey"},
    "still_due": {"hold_pkey", "operation_pkey"},
    "record_skipped": {"operation_pkey"},
    "fail": {"operation_pkey"},
    "lapsed": {"operation_leased_until"},
    "return_lapsed": {"operation_leased_until"},
    "any_leased": {"operation_leased_until"},
    "still_leased": {"operation_pkey"},
    "images": {"hold_pkey", "operation_pkey"},
    "renew": {"operation_leased_until"},
}
SQLITE = {
    "find_due": {"hold_due", "freehold_operation_identity"},
    "next_due": {"hold_due"},
    "count_overdue": {"hold_due"},
    "past_records": {"freehold_record_hold"},
    "count_ready": {"freehold_operation_claim"},
    "claim": {"freehold_operation_claim"},
    "newest": {"freehold_operation_claim"},
    "claim_these": {"rowid of o"},
    "find_ready": {"freehold_operation_claim"},
    "still_ready": {"rowid of o"},
    "lock_holds": {"rowid of h", "rowid of o"},
    "unlocked_holds": {"rowid of h", "rowid of o"},
    "companion_values": {"rowid of h", "rowid of o"},
    "note_expired": {"rowid of h", "rowid of o"},
    "tell_expired": {"rowid of h", "rowid of o"},
    "change_by_update": {"rowid of h"},
    "still_held": {"rowid of h"},
    "still_due": {"rowid of h", "rowid of o"},
    "record_skipped": {"rowid of o"},
    "remove_operations": {"rowid of freehold_operation"},
    "lapsed": {"freehold_operation_leased_until"},
    "any_leased": {"freehold_operation_leased_until"},
    "still_leased": {"rowid of o"},
    "images": {"rowid of h", "rowid of o"},
    "renew": {"freehold_operation_leased_until"},
}


def _plans(place: Place) -> Plans:
    """Do everything once over the table: release, skip, fail, cut, lease, give back, sweep."""
    session = explained(place)
    ledger = SqlLedger(session, Onwards())
    rule = cart(place, companions=(Companion("delete from spare where id = :id", 0, None),))
    scanner = Scanner(ledger, Onwards())
    worker = Worker(ledger, Onwards(), SystemDice(), StopRequest())
    scheduler = Scheduler(ledger, scanner, SystemClock(), "one", Onwards())
    scanner.scan(rule)
    place.host.run("update hold set status = 'paid' where id = 3")
    place.host.run("delete from hold where id = 4")
    worker.work(rule)
    place.host.run(f"update {place.prefix}rule_state set leased = true")
    worker.work(rule)
    with ledger.transaction() as tx:
        leased = tx.operations.lease("cart", 10, None, tx.now + timedelta(seconds=30))
        ids = [claim.id for claim in leased]
        assert tx.operations.any_leased()
        assert len(tx.operations.still_leased(ids, leased[0].lease_token or 0)) == 10
        assert len(tx.holds(rule).images(ids)) == 10
        tx.operations.renew(leased[0].lease_token or 0, tx.now + timedelta(seconds=30))
        tx.operations.newest("cart", 3)
        tx.operations.count_ready("cart", 100)
        _name(tx)
    place.advance(LONGER_THAN_ANY_DELAY)
    scheduler.sleep_seconds(rule)
    scanner.scan(rule)
    Sweeper(ledger, Onwards(), scanner).sweep([rule])
    with ledger.transaction() as tx:
        ids = [claim.id for claim in tx.operations.claim("cart", 5, None)]
        tx.holds(rule).still_due(ids)
    return session.plans


def _name(tx: Transaction) -> None:
    """Read what a dispatcher reads: a page, the next one, and what was named before."""
    page = tx.operations.find_ready("cart", None, 50)
    after = ReadyAfter(page[-1].available_at, page[-1].operation_id)
    assert len(tx.operations.find_ready("cart", after, 50)) == 50
    assert len(tx.operations.still_ready([one.operation_id for one in page])) == 50


@pytest.mark.parametrize("statistics", ["stale", "fresh"])
def test_hot_statements_go_by_their_index(place: Place, statistics: str) -> None:
    open_table(place)
    place.host.run("create table spare (id integer primary key)")
    if statistics == "stale":
        analyse(place)
    fill(place, HOLDS)
    refuse(place, "new.id = 7", "no")
    if statistics == "fresh":
        analyse(place)
    plans = _plans(place)
    wanted = POSTGRES if place.dialect == "postgres" else SQLITE
    assert_by_index(plans, wanted)
    assert "a sort" not in plans["find_ready"]
    own = ("hold", "operation", "record", "h", "o", "freehold_operation")
    read_whole = {n: p for n, p in plans.items() if any(f"all of {table}" in p for table in own)}
    assert set(read_whole) <= {"sample_due"}, read_whole  # it stops at its first row


@pytest.mark.parametrize(
    ("statistics", "joins"),
    [("none", "any"), *(("stale", joins) for joins in ("any", "nested loops", "hash", "merge"))],
)
def test_a_claim_takes_no_more_than_it_may(pg: Place, statistics: str, joins: str) -> None:
    name = pg.target.rpartition("/")[2]
    kinds = {"nested loops": "nestloop", "hash": "hashjoin", "merge": "mergejoin"}
    for kind in kinds.values() if joins != "any" else ():
        allowed = "on" if kinds[joins] == kind else "off"
        pg.host.run(f"alter database {name} set enable_{kind} = {allowed}")
    if statistics == "stale":
        pg.host.run("vacuum analyze freehold.operation")
    pg.host.run(
        "insert into freehold.operation (rule, hold_key, digest, identity, guard, due_at, "
        "generation, after_expired, state, available_at, found_at, changed_at) "
        "select 'cart', n, gen_random_uuid(), '[]', '[]', now(), 1, false, 'ready', "
        "timestamptz '2026-03-10 11:00+00', now(), now() from generate_series(1, 20000) n"
    )
    sessions = [explained(pg) for _ in range(2)]
    one, two = (SqlLedger(session, Onwards()) for session in sessions)
    with one.transaction() as first, two.transaction() as second:
        claims = [tx.operations.claim("cart", 200, None) for tx in (first, second)]
        ids = [{claim.id for claim in claim_list} for claim_list in claims]
        assert [len(claim_list) for claim_list in claims] == [200, 200]
        assert len(ids[0] | ids[1]) == 400
        leased = second.operations.lease("cart", 50, None, second.now + timedelta(seconds=30))
        assert len(leased) == 50
        assert not {claim.id for claim in leased} & ids[0]
    assert "operation_claim" in sessions[0].plans["claim"]
    assert "all of operation" not in sessions[0].plans["claim"]


def test_a_partial_index_of_an_enum_state_serves(pg: Place) -> None:
    """The state's literal must be a constant of its type by the time the statement is planned."""
    pg.host.run("create type state as enum ('held', 'expired')")
    pg.host.run("create table hold (id int primary key, status state, due timestamptz, token text)")
    pg.host.run(
        "insert into hold select n, 'held', timestamptz '2026-03-10 11:00+00', 'k' "
        "from generate_series(1, 1000) n"
    )
    pg.host.run("create index hold_due on hold (due) where status = 'held'")
    session = explained(pg)
    rule = cart(pg, tenant=cart(pg).tenant.__class__())
    Scanner(SqlLedger(session, Onwards()), Onwards()).scan(rule)
    assert "hold_due" in session.plans["find_due"]
    assert Till.open(pg, rule).run().released_count == 1_000


def test_an_index_that_goes_on_with_the_key_orders_equal_dues(pg: Place) -> None:
    """Dates fall due together; without that index each page of a scan sorts all of them."""
    open_table(pg)
    pg.host.run(
        "insert into hold (id, status, token, due) select n, 'held', 'k', "
        "timestamptz '2026-03-10 11:00+00' from generate_series(1, 20000) n"
    )
    pg.host.run("vacuum analyze hold")
    assert "a sort" in _scanned(pg)
    pg.host.run("drop index hold_due")
    pg.host.run("create index hold_due_id on hold (due, id) where status = 'held'")
    plan = _scanned(pg)
    assert "hold_due_id" in plan
    assert "a sort" not in plan


def _scanned(place: Place) -> set[str]:
    """Read two pages, the second behind a cursor; return what the plans name."""
    session = explained(place)
    holds_of = cart(place)
    with SqlLedger(session, Onwards()).transaction() as tx:
        last = tx.holds(holds_of).find_due(None, 500)[-1]
        after = ScanCursor(str(last.due), last.hold_key)
        session.plans.clear()
        assert tx.holds(holds_of).find_due(after, 500)[0].hold_key == "501"
    return session.plans["find_due"]
