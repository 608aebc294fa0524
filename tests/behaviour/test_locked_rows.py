"""Rows that somebody else holds: nobody waits for them, nobody pays for them, none is forgotten."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.session import Limits
from freehold.application.release import BUSY_FIRST, BUSY_MOST
from freehold.domain.errors import DatabaseBusy
from freehold.domain.expiry import DeferReason
from freehold.domain.rules import Condition, Predicate, Test
from tests.behaviour.till import (
    Till,
    cart,
    on_change,
    open_table,
    put_holds,
    status,
    statuses,
)

if TYPE_CHECKING:
    from tests.behaviour.place import Door, Place

PAID = Predicate(((Condition("status", Test.EQUALS, ("paid",)),),))


def _locked(place: Place, number: int) -> Door:
    """Lock one row in a transaction of the host's that stays open."""
    door = place.door()
    door.run("begin")
    door.run(f"select 1 from hold where id = {number} for update")
    return door


def test_a_row_locked_for_a_minute_delays_nobody(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 101))
    host = _locked(pg, 1)
    till = Till.open(pg, cart(pg))

    assert till.run().released_count == 99
    pauses = [BUSY_FIRST * 2**n for n in range(5)] + [BUSY_MOST] * 12
    for number, pause in enumerate(pauses, start=1):
        until = pg.clock.at + pause
        row = (until, "deferred", "busy", 0, number)
        assert pg.table("operation", "available_at, state, reason, attempt, deferrals") == [row]
        pg.clock.at = until - timedelta(milliseconds=1)
        assert till.run().total == 0
        pg.clock.at = until
        assert till.run().deferred == {DeferReason.BUSY: 1}
    host.run("rollback")
    pg.advance(BUSY_MOST)
    assert till.run().released_count == 1
    assert pg.ends() == {"expired": 100}
    assert pg.table("record", "attempt") == [(1,)] * 100
    assert pg.table("attempt", "attempt") == []


@pytest.mark.parametrize("host_ends_with", ["commit", "rollback"])
def test_paid_at_the_same_instant(pg: Place, host_ends_with: str) -> None:
    """Scenario N3."""
    open_table(pg)
    put_holds(pg, [1, 2])
    till = Till.open(pg, cart(pg, confirmed=PAID))
    till.scanner.scan(till.rule)
    host = _locked(pg, 1)
    host.run("update hold set status = 'paid' where id = 1")

    assert till.run().deferred == {DeferReason.BUSY: 1}
    host.run(host_ends_with)
    for _ in range(3):
        pg.advance(BUSY_MOST)
        till.run()
    paid = host_ends_with == "commit"
    assert status(pg, 1) == ("paid" if paid else "expired")
    assert pg.ends() == ({"expired": 1, "confirmed": 1} if paid else {"expired": 2})
    assert pg.events() == (["2"] if paid else ["1", "2"])


def test_a_trigger_that_waits_for_a_locked_row_delays_nobody(pg: Place) -> None:
    """The hold is free, but its trigger writes a row that the host holds."""
    open_table(pg)
    pg.host.run("create table stock (id int primary key, free int)")
    pg.host.run("insert into stock values (1, 0), (2, 0)")
    on_change(
        pg,
        "give",
        "begin update stock set free = free + 1 where id = new.stock_id; return new; end",
    )
    put_holds(pg, range(1, 31), stock_id=1)
    put_holds(pg, [31], stock_id=2)
    host = pg.door()
    host.run("begin")
    host.run("select 1 from stock where id = 2 for update")
    till = Till.open(pg, cart(pg), limits=Limits(lock_timeout_ms=20))

    first = till.run()
    assert (first.released_count, first.deferred) == (30, {DeferReason.BUSY: 1})
    assert pg.table("operation", "hold_key, state, attempt") == [("31", "deferred", 0)]
    assert pg.table("attempt", "attempt") == []
    host.run("rollback")
    pg.advance(BUSY_MOST)
    assert till.run().released_count == 1
    assert pg.host.run("select free from stock order by id") == [(30,), (1,)]


def test_a_host_that_holds_the_write_lock(lite: Place) -> None:
    open_table(lite)
    put_holds(lite, range(1, 11))
    till = Till.open(lite, cart(lite), limits=Limits(lock_timeout_ms=1))
    till.scanner.scan(till.rule)
    host = lite.door()
    host.run("begin immediate")

    for _ in range(2):
        with pytest.raises(DatabaseBusy):
            till.worker.work(till.rule)
        with pytest.raises(DatabaseBusy):
            till.scanner.scan(till.rule)
    host.run("update hold set status = 'paid' where id = 3")
    host.run("commit")
    assert till.worker.work(till.rule).batch.released_count == 9
    assert statuses(lite) == {"expired": 9, "paid": 1}
    assert lite.table("record", "attempt") == [(1,)] * 10
    assert lite.ends() == {"expired": 9, "no longer held": 1}
