"""Statements that run with a release: each counts once, or the release does not happen."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.session import Limits
from freehold.application.release import BUSY_MOST
from freehold.domain.errors import DatabaseBusy
from freehold.domain.rules import Companion, DeleteRow, Rule
from tests.behaviour.till import Till, cart, dead, open_table, put_holds, status, statuses

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.behaviour.place import Place

GIVE_BACK = Companion(
    "update stock set free = free + :qty where id = :stock_id", 1, 1, lock_by="stock_id"
)
PATIENT = Limits(lock_timeout_ms=5_000)


def _open(place: Place, stock: int = 1) -> None:
    open_table(place)
    place.host.run(
        "create table stock (id int primary key, free int not null, check (free < 1000))"
    )
    place.host.insert("stock", [{"id": number, "free": 0} for number in range(1, stock + 1)])


def _free(place: Place) -> list[int]:
    return [row[0] for row in place.host.run("select free from stock order by id")]


def test_two_holds_of_one_stock_row_in_one_batch_both_count(place: Place) -> None:
    _open(place)
    put_holds(place, [1, 2], stock_id=1, qty=3)
    put_holds(place, [3], stock_id=1, qty=4)
    till = Till.open(place, cart(place, companions=(GIVE_BACK,)))
    assert till.run().released_count == 3
    assert _free(place) == [10]


def test_a_companion_that_changes_no_row_rolls_its_release_back(place: Place) -> None:
    _open(place)
    put_holds(place, range(1, 11), stock_id=1)
    put_holds(place, [11], stock_id=404)
    till = Till.open(place, cart(place, companions=(GIVE_BACK,)))

    assert till.run().released_count == 10
    assert (status(place, 11), _free(place)) == ("held", [10])
    till.run_again(5)
    letter = dead(place)["11"]
    assert (letter.attempt, letter.failure_class) == (6, "broken")
    assert letter.message == "a companion changed 0 rows, expected 1 to 1"
    assert (status(place, 11), _free(place)) == ("held", [10])


def test_a_companion_that_a_constraint_refuses(place: Place) -> None:
    """Scenario B49: a counter that must not pass its bound stops its own hold only."""
    _open(place)
    put_holds(place, range(1, 11), stock_id=1)
    put_holds(place, [11], stock_id=1, qty=5_000)
    till = Till.open(place, cart(place, companions=(GIVE_BACK,)))
    assert till.run().released_count == 10
    assert _free(place) == [10]
    assert place.table("operation", "hold_key, state, attempt") == [("11", "retrying", 1)]


def test_children_go_first_and_with_what_the_row_held_before(place: Place) -> None:
    _open(place)
    place.host.run(
        "create table seat (hold_id int not null references hold (id), place int primary key)"
    )
    place.host.run("create table told (hold_id text, was text, operation_key text, tenant text)")
    put_holds(place, [1, 2], stock_id=1)
    place.host.insert("seat", [{"hold_id": n % 2 + 1, "place": n} for n in range(6)])
    companions = (
        Companion("delete from seat where hold_id = :id", 1, None, before=True),
        Companion("insert into told values (:id, :status, :operation_key, :tenant)", 1, 1),
        GIVE_BACK,
    )
    till = Till.open(place, cart(place, companions=companions, action=DeleteRow()))

    assert till.run().released_count == 2
    assert place.host.run("select count(*) from hold") == [(0,)]
    assert place.host.run("select count(*) from seat") == [(0,)]
    told = place.host.run("select hold_id, was, tenant from told order by hold_id")
    assert told == [("1", "held", "t1"), ("2", "held", "t1")]
    keys = place.host.run("select operation_key from told")
    assert all(key.startswith("cart:") and len(key) == len("cart:") + 36 for (key,) in keys)
    assert _free(place) == [2]


def test_now_is_the_instant_of_the_release(place: Place) -> None:
    _open(place)
    column = "timestamptz" if place.dialect == "postgres" else "text"
    place.host.run(f"alter table stock add column freed_at {column}")
    put_holds(place, [1], stock_id=1)
    stamp = Companion("update stock set freed_at = :now where id = :stock_id", 1, 1)
    till = Till.open(place, cart(place, companions=(stamp,)))
    assert till.run().released_count == 1
    freed = place.host.run("select freed_at from stock")[0][0]
    assert str(freed)[:19].replace("T", " ") == "2026-03-10 12:00:00"


def _in_threads(*steps: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def guarded(step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException as error:  # noqa: BLE001  # the test's thread raises it again
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def _drain(till: Till) -> Callable[[], None]:
    """Work until two passes in a row found nothing, whatever others hold meanwhile."""

    def step() -> None:
        idle = 0
        while idle < 2:
            try:
                idle = 0 if till.worker.work(till.rule).batch.total else idle + 1
            except DatabaseBusy:
                idle = 0

    return step


@pytest.mark.parametrize("lock_by", ["stock_id", None])
def test_two_workers_on_crossing_counters_count_exactly(place: Place, lock_by: str | None) -> None:
    """Holds of one batch touch the counters in the order opposite to those of the other."""
    _open(place, stock=20)
    put_holds(place, range(1, 21), stock_id=1)
    place.host.run("update hold set stock_id = case when id <= 10 then id else 31 - id end")
    put_holds(place, range(101, 301), stock_id=7)
    companion = Companion(GIVE_BACK.sql, 1, 1, lock_by=lock_by)
    rule: Rule = cart(place, companions=(companion,), batch_size=10)
    tills = [Till.open(place, rule, limits=PATIENT) for _ in range(2)]
    tills[0].scanner.scan(rule)

    _in_threads(*(_drain(till) for till in tills))
    place.advance(BUSY_MOST)
    tills[0].run()
    assert statuses(place) == {"expired": 220}
    assert sum(_free(place)) == 220
    assert place.table("attempt", "attempt") == []


def test_expired_and_cancelled_at_once_and_thrice_each(place: Place) -> None:
    """Scenario N8: 50 holds; whichever side wins a hold, its one unit comes back once."""
    _open(place)
    put_holds(place, range(1, 51), stock_id=1)
    rule = cart(place, companions=(GIVE_BACK,), batch_size=7)
    tills = [Till.open(place, rule, limits=PATIENT) for _ in range(2)]
    tills[0].scanner.scan(rule)
    door = place.door()

    def cancel() -> None:
        for number in [n for n in range(50, 0, -1) for _ in range(3)]:
            door.run("begin" if place.dialect == "postgres" else "begin immediate")
            won = door.run(
                f"update hold set status = 'cancelled' where id = {number} and status = 'held' "
                "returning id"
            )
            if won:
                door.run("update stock set free = free + 1 where id = 1")
            door.run("commit")

    _in_threads(cancel, *(_drain(till) for till in tills))
    tills[0].run_again(3)
    assert _free(place) == [50]
    found = statuses(place)
    assert found["expired"] + found["cancelled"] == 50
    assert place.ends()["expired"] == found["expired"]
    assert sum(place.ends().values()) == 50
    assert len(place.events()) == found["expired"]
