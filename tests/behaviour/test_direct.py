"""Mode `direct`: the scan releases what it finds, and only what it cannot becomes operations."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.session import Limits
from freehold.application.audit import audit
from freehold.application.rulestate import CAREFUL_BATCH, admit, pause
from freehold.application.straight import release_straight
from freehold.domain.due import DueKind, DueSpec, EmptyDue, read_due
from freehold.domain.errors import DatabaseAway
from freehold.domain.expiry import DeferReason, SkipReason
from freehold.domain.rules import Again, Companion, DeleteRow, Mode, Rule
from freehold.ports.system import Boundary
from tests.behaviour.till import (
    EXPIRE,
    Till,
    cart,
    dead,
    on_change,
    open_table,
    put_holds,
    refuse,
    status,
    statuses,
)

if TYPE_CHECKING:
    from typing import Any

    from tests.behaviour.place import Place


def direct(place: Place, **changes: Any) -> Rule:
    return cart(place, mode=Mode.DIRECT, **changes)


def operations(place: Place) -> list[tuple[Any, ...]]:
    return place.table("operation", "hold_key, state, generation")


def assert_clean(till: Till) -> None:
    found = audit(till.ledger, (till.rule,))
    assert not [one for one in found if not one.clean]


def test_a_scan_releases_without_operations(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 1_201))
    till = Till.open(place, direct(place))
    scan = till.scanner.scan(till.rule)
    assert (scan.found_count, scan.new_count) == (1_200, 0)
    assert scan.released.released_count == 1_200
    assert statuses(place) == {"expired": 1_200}
    assert place.ends() == {"straight": 1_200}
    assert operations(place) == []
    assert not till.scanner.something_due(till.rule)
    assert_clean(till)


def test_a_poison_row_becomes_an_operation_of_its_own(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 31))
    refuse(place, "new.id = 7", "no")
    till = Till.open(place, direct(place))
    assert till.run().released_count == 29
    till.run_again(6)
    assert list(dead(place)) == ["7"]
    put_holds(place, range(31, 41), due=place.clock.at - timedelta(seconds=1))
    assert till.scanner.scan(till.rule).released.released_count == 10
    assert statuses(place) == {"expired": 39, "held": 1}
    assert_clean(till)


def test_a_row_that_the_host_holds_becomes_an_operation(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 11))
    host = pg.door()
    host.run("begin")
    host.run("select 1 from hold where id = 3 for update")
    till = Till.open(pg, direct(pg))
    scan = till.scanner.scan(till.rule)
    assert (scan.released.released_count, scan.new_count) == (9, 1)
    assert till.run().deferred == {DeferReason.BUSY: 1}
    host.run("rollback")
    assert till.run_again(1).released_count == 1
    assert_clean(till)


def test_rows_that_changed_since_are_nobodys(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 5))
    till = Till.open(place, direct(place))
    with till.ledger.transaction() as tx:
        found = [
            (row, read_due(till.rule.due, row.due)) for row in tx.holds(till.rule).find_due(None, 9)
        ]
    place.host.run("update hold set status = 'paid' where id = 1")
    place.host.run("update hold set token = 'other' where id = 2")
    place.host.run("delete from hold where id = 3")
    with till.ledger.transaction() as tx:
        done = release_straight(tx, till.rule, found, till.straight.tools.checkpoint)
    assert (done.result.released_count, done.left) == (1, [])
    assert [status(place, number) for number in (1, 2, 4)] == ["paid", "held", "expired"]
    assert till.run().released_count == 1


def test_what_is_due_again_goes_by_the_rule(place: Place) -> None:
    open_table(place)
    put_holds(place, (1, 2))
    till = Till.open(place, direct(place))
    till.run()
    place.host.run("update hold set status = 'held' where id = 1")
    till.run_again(1)
    assert operations(place) == [("1", "dead", 2)]
    place.host.run("update hold set status = 'held' where id = 2")
    again = Till.open(place, replace(till.rule, again=Again.RELEASE))
    again.run_again(1)
    assert status(place, 2) == "expired"
    assert place.ends() == {"straight": 2, "expired": 1}
    assert_clean(till)


def test_an_open_operation_of_a_row_released_straight_ends_as_skipped(place: Place) -> None:
    open_table(place)
    put_holds(place, (1,))
    till = Till.open(place, cart(place))
    till.scanner.scan(till.rule)
    with till.ledger.transaction() as tx:
        (found,) = tx.straight(till.rule).find_named(["1"])
        assert found.is_open
        rows = [(found, read_due(till.rule.due, found.due))]
        assert release_straight(
            tx, till.rule, rows, till.straight.tools.checkpoint
        ).result.released_count
    assert_clean(till)
    assert till.run().skipped == {SkipReason.ALREADY_EXPIRED: 1}
    assert place.ends() == {"straight": 1, "already expired": 1}
    assert_clean(till)


@pytest.mark.parametrize("removes", [False, True], ids=["update", "delete"])
def test_companions_run_once_for_each_row(place: Place, removes: bool) -> None:
    open_table(place)
    place.host.run("create table stock (id integer primary key, free integer not null)")
    place.host.run("insert into stock values (1, 0), (2, 0)")
    for number in range(1, 9):
        put_holds(place, (number,), stock_id=1 + number % 2, qty=number)
    restock = Companion(
        "update stock set free = free + cast(:qty as integer) where id = cast(:stock_id as integer)",
        1,
        1,
        lock_by="stock_id",
    )
    action = DeleteRow() if removes else EXPIRE
    till = Till.open(place, direct(place, companions=(restock,), action=action))
    assert till.run().released_count == 8
    assert place.host.run("select free from stock order by id") == [(20,), (16,)]
    assert statuses(place) == ({} if removes else {"expired": 8})


def test_text_that_cannot_be_compared_is_released_when_it_is_due(place: Place) -> None:
    place.host.run("create table hold (id integer primary key, status text, token text, due text)")
    for number, due in enumerate(
        ("2026-03-10T11:00:00Z", "2026-03-10T13:00:00+02:00", "2026-03-10T12:30:00Z", "tomorrow"), 1
    ):
        place.host.run(f"insert into hold values ({number}, 'held', 'k', '{due}')")
    plain = direct(place, due=DueSpec("due", DueKind.ISO, on_empty=EmptyDue.REVIEW))
    till = Till.open(place, replace(plain, tenant=plain.tenant.__class__()))
    assert till.run().released_count == 2
    assert [status(place, number) for number in (1, 2, 3, 4)] == ["expired"] * 2 + ["held"] * 2
    assert operations(place) == [("4", "dead", 1)]


def test_two_scanners_release_each_hold_once(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 1_001))
    one, two = Till.open(pg, direct(pg)), Till.open(pg, direct(pg))
    with one.ledger.transaction() as tx:
        assert tx.rules.alone("cart")
        scan = two.scanner.scan(two.rule)
        assert (scan.found_count, scan.finished) == (0, False)
    assert two.run().released_count + one.run().released_count == 1_000
    assert pg.ends() == {"straight": 1_000}
    assert_clean(one)


def test_two_straight_releases_of_one_row_at_once(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, (1,))
    one, two = Till.open(pg, direct(pg)), Till.open(pg, direct(pg))
    with one.ledger.transaction() as first:
        rows = [
            (row, read_due(one.rule.due, row.due))
            for row in first.holds(one.rule).find_due(None, 9)
        ]
        checkpoint = one.straight.tools.checkpoint
        assert release_straight(first, one.rule, rows, checkpoint).result.released_count == 1
        with two.ledger.transaction() as second:
            done = release_straight(second, two.rule, rows, checkpoint)
            assert [row.hold_key for row in done.left] == ["1"]
    with two.ledger.transaction() as second:
        done = release_straight(second, two.rule, rows, checkpoint)
        assert (done.result.released_count, done.left) == (0, [])


def test_a_rule_in_trouble_writes_operations(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 4))
    till = Till.open(place, direct(place))
    with till.ledger.transaction() as tx:
        admit(tx, till.rule)
        pause(tx, till.rule, "broken")
    scan = till.scanner.scan(till.rule)
    assert (scan.released.released_count, scan.new_count) == (0, 3)


def test_a_row_that_breaks_the_connection_makes_the_rule_careful(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 31))
    on_change(
        pg,
        "end_it",
        "begin perform pg_terminate_backend(pg_backend_pid()); return new; end",
        "new.id = 9",
    )
    till = Till.open(pg, direct(pg))
    with pytest.raises(DatabaseAway):
        till.scanner.scan(till.rule)
    assert pg.table("rule_state", "batch_limit, leased") == [(CAREFUL_BATCH, True)]
    till.run_again(8)
    assert statuses(pg) == {"expired": 29, "held": 1}
    assert list(dead(pg)) == ["9"]


def test_a_straight_page_is_named_to_the_heartbeat(place: Place) -> None:
    open_table(place)
    put_holds(place, (1,))
    seen: list[str | None] = []

    class Look:
        def reach(self, boundary: Boundary) -> None:
            if boundary is Boundary.RELEASED:
                seen.append(till.straight.in_hand)

    till = Till.open(place, direct(place, batch_size=50), Look())
    till.scanner.scan(till.rule)
    assert seen == ["cart: up to 50 holds"]
    assert till.straight.in_hand is None


def test_a_page_that_is_too_slow_is_halved(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 9))
    on_change(pg, "slow", "begin perform pg_sleep(0.02); return new; end")
    till = Till.open(pg, direct(pg), limits=Limits(statement_timeout_ms=110))
    scan = till.scanner.scan(till.rule)
    assert (scan.released.released_count, scan.new_count) == (8, 0)


def test_a_scan_ends_where_it_is_told(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 101))
    till = Till.open(place, direct(place, batch_size=20))
    till.straight.halt = lambda: till.straight.running.released_count >= 30
    assert not till.scanner.scan(till.rule).finished
    assert statuses(place) == {"expired": 40, "held": 60}


def test_a_rule_that_fails_as_a_whole_is_paused(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 31))
    refuse(place, "true", "no")
    till = Till.open(place, direct(place))
    till.run()
    assert place.table("rule_state", "condition") == [("paused",)]
    assert place.table("attempt", "attempt") == []
