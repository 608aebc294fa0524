"""Mode `window`: one operation releases all that is due, and is worked on as any operation is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards
from freehold.application.audit import audit
from freehold.application.rulestate import admit
from freehold.application.sweep import Sweeper
from freehold.application.why import why
from freehold.domain.expiry import DeferReason
from freehold.domain.retries import RetryPolicy
from freehold.domain.rules import Mode, Rule
from freehold.ports.system import Boundary
from tests.behaviour.place import NOON
from tests.behaviour.till import Till, cart, dead, open_table, put_holds, refuse, statuses

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from freehold.ports.system import Checkpoint
    from tests.behaviour.place import Place

LEASE_OVER = timedelta(seconds=31)
HOUR = timedelta(hours=1)


def windowed(place: Place, **changes: Any) -> Rule:
    return cart(place, mode=Mode.WINDOW, **changes)


def windows(place: Place) -> list[tuple[Any, ...]]:
    return place.host.run(
        f"select state, attempt, reason from {place.prefix}operation where window_until is not null"
    )


def closed(place: Place) -> list[tuple[Any, ...]]:
    return place.host.run(
        f"select reason, attempt from {place.prefix}record where outcome = 'closed'"
    )


def assert_clean(till: Till) -> None:
    found = audit(till.ledger, (till.rule,))
    assert not [one for one in found if not one.clean]


def sweep(till: Till) -> None:
    Sweeper(till.ledger, Onwards(), till.scanner).sweep([till.rule])


class Stop(Exception):
    """Stands for a kill: the process does nothing more."""


class StopAt:
    """Stops at the n-th reach of a boundary."""

    def __init__(self, boundary: Boundary, nth: int) -> None:
        self.boundary = boundary
        self.left = nth

    def reach(self, boundary: Boundary) -> None:
        self.left -= boundary is self.boundary
        if self.left == 0 and boundary is self.boundary:
            raise Stop


def stopped_at(place: Place, rule: Rule, boundary: Boundary, nth: int) -> None:
    """Work until the process is stopped there."""
    checkpoint: Checkpoint = StopAt(boundary, nth)
    with pytest.raises(Stop):
        Till.open(place, rule, checkpoint).worker.work(rule)


def test_a_window_releases_all_that_is_due(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 601))
    put_holds(place, range(601, 606), due=NOON + HOUR)
    till = Till.open(place, windowed(place))
    scan = till.scanner.scan(till.rule)
    assert (scan.new_count, scan.finished, scan.windowed) == (1, True, True)
    assert windows(place) == [("ready", 0, None)]
    assert till.worker.work(till.rule).batch.released_count == 600
    assert closed(place) == [("window: 600 released, 0 handed on", 1)]
    assert place.table("operation", "id") == []
    assert statuses(place) == {"expired": 600, "held": 5}
    assert_clean(till)
    assert till.run().released_count == 0
    place.advance(2 * HOUR)
    assert till.run().released_count == 5
    assert len(closed(place)) == 2


def test_why_names_the_window_and_how_it_ended(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 4))
    till = Till.open(place, windowed(place))
    till.scanner.scan(till.rule)
    (before,) = why(till.ledger, (till.rule,), "2")
    assert "the open window of its rule releases it (now ready, after attempt 0)" in before.answer
    till.worker.work(till.rule)
    (after,) = why(till.ledger, (till.rule,), "2")
    assert after.answer.startswith("It was released on 2026-03-10 12:00:00 UTC")
    assert "expired at once, without an open operation" in [one.what for one in after.happened]


def test_one_window_of_a_rule_is_open_at_a_time(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 11))
    till, other = (Till.open(place, windowed(place)) for _ in range(2))
    till.scanner.scan(till.rule)
    place.advance(timedelta(minutes=1))
    put_holds(place, range(11, 16), due=place.clock.at - timedelta(seconds=1))
    assert other.scanner.scan(till.rule).new_count == 0
    assert till.worker.work(till.rule).batch.released_count == 10
    assert other.run().released_count == 5
    assert [row[0] for row in closed(place)] == [
        "window: 10 released, 0 handed on",
        "window: 5 released, 0 handed on",
    ]


def test_poison_rows_of_a_window_become_operations(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 31))
    refuse(place, "new.id = 7", "no")
    till = Till.open(place, windowed(place))
    assert till.run().released_count == 29
    till.run_again(6)
    assert list(dead(place)) == ["7"]
    assert windows(place) == []
    put_holds(place, range(31, 41), due=place.clock.at - timedelta(seconds=1))
    assert till.run().released_count == 10
    assert windows(place) == []
    assert_clean(till)


class OnReach:
    """Does something at the n-th reach of a boundary."""

    def __init__(self, boundary: Boundary, nth: int, step: Callable[[], object]) -> None:
        self.boundary = boundary
        self.left = nth
        self.step = step

    def reach(self, boundary: Boundary) -> None:
        self.left -= boundary is self.boundary
        if self.left == 0 and boundary is self.boundary:
            self.step()


def test_a_refused_row_that_goes_meanwhile_is_nobodys(pg: Place) -> None:
    """Refused released and written down; gone when it is to be noted as malformed."""
    open_table(pg)
    put_holds(pg, [7])
    refuse(pg, "true", "no")
    Till.open(pg, windowed(pg)).scanner.scan(windowed(pg))
    pg.host.run(
        "create function no() returns trigger language plpgsql as "
        "$$ begin raise exception 'no'; end $$"
    )
    pg.host.run(
        "create trigger no before insert on freehold.operation for each row execute function no()"
    )
    gone = OnReach(Boundary.DUE_READ, 2, lambda: pg.door().run("delete from hold"))
    till = Till.open(pg, windowed(pg, batch_size=1), gone)
    assert till.worker.work(till.rule).batch.released_count == 0
    assert closed(pg) == [("window: 0 released, 0 handed on", 1)]
    assert dead(pg) == {}


def test_a_row_that_the_host_holds_is_handed_on(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 11))
    host = pg.door()
    host.run("begin")
    host.run("select 1 from hold where id = 3 for update")
    till = Till.open(pg, windowed(pg))
    done = till.run()
    assert (done.released_count, done.deferred) == (9, {DeferReason.BUSY: 1})
    assert closed(pg) == [("window: 9 released, 1 handed on", 1)]
    host.run("rollback")
    assert till.run_again(1).released_count == 1


def test_a_retry_does_only_what_is_still_due(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 61))
    till = Till.open(place, windowed(place, batch_size=20))
    till.scanner.scan(till.rule)
    stopped_at(place, till.rule, Boundary.RELEASED, 3)
    assert statuses(place) == {"expired": 40, "held": 20}
    assert till.worker.work(till.rule).batch.released_count == 0
    place.advance(LEASE_OVER)
    sweep(till)
    assert till.worker.work(till.rule).batch.released_count == 20
    assert closed(place) == [("window: 20 released, 0 handed on", 2)]
    assert_clean(till)


def test_a_dead_window_stops_no_later_one(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 4))
    till = Till.open(place, windowed(place, retry=RetryPolicy(())))
    till.scanner.scan(till.rule)
    stopped_at(place, till.rule, Boundary.DUE_READ, 1)
    place.advance(LEASE_OVER)
    sweep(till)
    assert [row[0] for row in windows(place)] == ["dead"]
    sweep(till)
    assert [row[0] for row in windows(place)] == ["dead"]
    assert till.run().released_count == 3
    assert closed(place) == [("window: 3 released, 0 handed on", 1)]


def test_a_rule_handled_with_care_goes_by_single_operations(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 11))
    till = Till.open(place, windowed(place))
    till.scanner.scan(till.rule)
    with till.ledger.transaction() as tx:
        tx.rules.write(replace(admit(tx, till.rule), leased=True, batch_limit=22))
    assert till.run().released_count == 10
    (end,) = closed(place)
    assert end[0] == "window: 0 released, 0 handed on; the rest is left to single operations"
    assert place.ends()["expired"] == 10


def test_a_window_stops_where_it_is_told(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 101))
    till = Till.open(place, windowed(place, batch_size=20))
    till.scanner.scan(till.rule)
    till.straight.halt = lambda: till.straight.running.released_count >= 30
    assert till.worker.work(till.rule).batch.released_count == 40
    assert windows(place)[0][:2] == ("deferred", 0)
    till.straight.halt = lambda: False
    assert till.run().released_count == 60


def test_a_lost_lease_ends_a_window_without_a_word(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 61))
    rule = windowed(place, batch_size=20)
    till, other = (Till.open(place, rule) for _ in range(2))
    till.scanner.scan(rule)

    def taken_over() -> bool:
        if till.straight.running.released_count == 20:
            place.advance(LEASE_OVER)
            sweep(other)
            other.worker.work(rule)
        return False

    till.straight.halt = taken_over
    assert till.worker.work(rule).batch.released_count == 20
    assert statuses(place) == {"expired": 60}
    assert closed(place) == [("window: 40 released, 0 handed on", 2)]
    assert_clean(till)


def test_a_broken_rule_is_paused_and_its_window_waits(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 11))
    till = Till.open(place, windowed(place))
    till.scanner.scan(till.rule)
    place.host.run("alter table hold rename column token to other")
    till.worker.work(till.rule)
    assert place.table("rule_state", "condition") == [("paused",)]
    assert windows(place)[0][:2] == ("deferred", 0)
    place.host.run("alter table hold rename column other to token")
    assert till.run_again(2).released_count == 10
    assert place.table("attempt", "attempt") == []
