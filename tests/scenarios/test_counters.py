"""Group four: released twice, or never."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.application.work import PassEnd
from freehold.domain.errors import DatabaseBusy
from freehold.ports.system import Boundary
from tests.scenarios.shop import (
    CART,
    GIVE_BACK,
    At,
    add,
    free,
    held,
    killed_at,
    open_shop,
    statuses,
)
from tests.stage import NOON, wall

if TYPE_CHECKING:
    from tests.stage import Door, Stage

CLAMPED = GIVE_BACK.replace(
    "free = free + :qty", "free = case when free > :qty then free - :qty else 0 end"
)
TAKEN_BACK = GIVE_BACK.replace("free = free + :qty", "free = free - :qty").replace(
    "id = :stock_id", "id = :stock_id and free >= :qty"
)


def cancel(door: Door, number: int) -> bool:
    """Cancel a hold as the host does: a conditional update, and the counter with it."""
    door.connection.execute("begin" if door.dialect == "postgres" else "begin immediate")
    done = door.count(
        "update hold set status = 'cancelled' where id = :id and status = 'held'", id=number
    )
    if done:
        door.run("update stock set free = free + 1 where id = 1")
    door.connection.execute("commit")
    return done == 1


def test_b44_expiring_twice_moves_the_counter_once(stage: Stage) -> None:
    rule = open_shop(stage, CART + GIVE_BACK)
    add(stage, held(1), held(2), held(3))
    stage.scan()
    assert cancel(stage.host, 2)
    worker = stage.worker()
    for _ in range(3):
        worker.work(rule)
        stage.drain()
    assert free(stage) == 3
    assert stage.ends() == {"expired": 2, "cancelled": 1}


def test_n8_expiry_against_cancellation_counts_every_hold_once(stage: Stage) -> None:
    """Two workers and a host, at the same holds at the same time."""
    rule = open_shop(stage, CART.replace("[[rules]]", "[[rules]]\nbatch = 7") + GIVE_BACK)
    numbers = range(1, 51)
    add(stage, *[held(n) for n in numbers])
    stage.scan()
    door, cancelled = stage.door(), list[int]()
    workers = [stage.worker(), stage.worker()]

    def host() -> None:
        for number in reversed(numbers):
            if cancel(door, number):
                cancelled.append(number)

    def work(which: int) -> None:
        for _ in range(60):
            with suppress(DatabaseBusy):
                workers[which].work(rule)

    threads = [threading.Thread(target=host)]
    threads += [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    stage.advance(minutes=1)
    stage.drain()
    assert free(stage) == 50
    assert len(stage.ended()) == len(set(stage.ended())) == 50 - len(cancelled)
    assert stage.ends().total() == 50
    assert stage.audit() == {}


def test_b45_two_listeners_on_one_message_give_back_once(stage: Stage) -> None:
    rule = open_shop(stage, CART + GIVE_BACK)
    add(stage, held(1))
    stage.scan()
    stage.scan()
    ends = [worker.work(rule).end for worker in (stage.worker(), stage.worker())]
    assert ends == [PassEnd.WORKED, PassEnd.IDLE]
    assert free(stage) == 1


WRITES = [
    Boundary.HOLDS_LOCKED,
    Boundary.COMPANIONS_BEFORE,
    Boundary.RELEASED,
    Boundary.COMPANIONS_AFTER,
    Boundary.BEFORE_COMMIT,
]
AFTER = [Boundary.COMMITTED]
BETWEEN = [Boundary.RELEASED, Boundary.BEFORE_COMMIT]


@pytest.mark.parametrize("boundary", BETWEEN)
@pytest.mark.parametrize("first", ["counter", "status"])
def test_b47_a_crash_between_status_and_counter_leaves_neither(
    stage: Stage, boundary: Boundary, first: str
) -> None:
    companion = GIVE_BACK + ("before = true\n" if first == "counter" else "")
    open_shop(stage, CART + companion)
    add(stage, held(1, qty=3))
    assert killed_at(stage, boundary)
    assert (statuses(stage), free(stage)) == ({1: "held"}, 0)
    stage.drain()
    assert (statuses(stage), free(stage)) == ({1: "expired"}, 3)


@pytest.mark.parametrize("boundary", [*WRITES, *AFTER])
def test_n7_a_kill_anywhere_counts_once(stage: Stage, boundary: Boundary) -> None:
    open_shop(stage, CART + GIVE_BACK)
    stage.host.run("update stock set free = 10")
    add(stage, held(1, qty=3))
    stage.scan()
    assert killed_at(stage, boundary)
    for _ in range(2):
        stage.drain()
    assert free(stage) == 13
    assert stage.ended() == ["1"]
    assert stage.events() == ["1"]
    assert stage.audit() == {}


def test_b48_two_workers_at_one_row_release_it_once(postgres_stage: Stage) -> None:
    """The second comes while the first holds the row, after its read and before its write."""
    stage = postgres_stage
    rule = open_shop(stage, CART + GIVE_BACK)
    add(stage, held(1))
    stage.scan()
    ends: list[PassEnd] = []
    second = stage.worker()
    first = stage.worker(At(Boundary.HOLDS_LOCKED, lambda: ends.append(second.work(rule).end)))
    ends.append(first.work(rule).end)
    assert ends == [PassEnd.IDLE, PassEnd.WORKED]
    assert (free(stage), stage.ended()) == (1, ["1"])


def test_b48_two_scanners_at_one_row_write_one_operation(postgres_stage: Stage) -> None:
    """Both have read the row as due before either has written."""
    stage = postgres_stage
    rule = open_shop(stage)
    stage.scan()
    add(stage, held(1))
    second = stage.scanner()
    counts: list[int] = []
    first = stage.scanner(At(Boundary.DUE_READ, lambda: counts.append(second.scan(rule).new_count)))
    counts.append(first.scan(rule).new_count)
    assert counts == [1, 0]
    assert stage.open() == {"ready": 1}


def test_b49_a_counter_at_zero_is_clamped_where_the_statement_says_so(stage: Stage) -> None:
    open_shop(stage, CART + CLAMPED)
    add(stage, held(1, qty=2), held(2, qty=1))
    stage.drain()
    assert (statuses(stage), free(stage)) == ({1: "expired", 2: "expired"}, 0)


def test_b49_a_counter_that_is_too_low_asks_a_person_and_stops_nobody(stage: Stage) -> None:
    open_shop(stage, CART + TAKEN_BACK)
    stage.host.insert("stock", [{"id": 2, "free": 5}])
    add(stage, held(1, qty=2), held(2, qty=2, stock_id=2), held(3, qty=2, stock_id=2))
    stage.drain()
    assert statuses(stage) == {1: "held", 2: "expired", 3: "expired"}
    for _ in range(6):
        stage.advance(hours=1)
        stage.drain()
    assert stage.open() == {"dead": 1}
    assert stage.host.run("select free from stock order by id") == [(0,), (1,)]


@pytest.mark.parametrize("action", ["delete", "set"])
def test_b50_hard_and_soft_delete_move_the_counter_alike(stage: Stage, action: str) -> None:
    toml = CART + GIVE_BACK
    if action == "delete":
        toml = toml.replace('{ set = { status = "expired" } }', "{ delete = true }")
    open_shop(stage, toml)
    add(stage, *[held(n, qty=n) for n in range(1, 5)], held(5, timedelta(hours=1), qty=100))
    stage.drain()
    kept = stage.host.run("select coalesce(sum(qty), 0) from hold where status = 'held'")
    assert (free(stage), int(kept[0][0])) == (10, 100)


@pytest.mark.parametrize("boundary", [Boundary.RELEASED, Boundary.COMPANIONS_AFTER])
def test_b51_a_reader_sees_one_change(stage: Stage, boundary: Boundary) -> None:
    open_shop(stage, CART + GIVE_BACK)
    add(stage, held(1, qty=3))
    reader = stage.door()
    question = "select (select free from stock), (select status from hold)"
    seen: list[object] = []
    stage.checkpoint = At(boundary, lambda: seen.extend(reader.run(question)))
    stage.drain()
    assert seen == [(0, "held")]
    assert reader.run(question) == [(3, "expired")]


def test_b53_every_configured_column_is_reset_with_the_status(stage: Stage) -> None:
    """The next buyer may use the code again, and finds no due left over."""
    reset = 'status = "expired", code = { null = true }, due_at = { null = true }, token = ""'
    open_shop(stage, CART.replace('status = "expired"', reset))
    add(stage, held(1, code="SPRING"))
    stage.drain()
    row = stage.host.run("select status, code, due_at, token from hold")
    assert row == [("expired", None, None, "")]
    add(stage, held(2, timedelta(hours=1), code="SPRING"))
    again = wall(NOON + timedelta(minutes=1))
    stage.host.run(f"update hold set status = 'held', token = 'n', due_at = '{again}' where id = 1")
    stage.clock.instant = NOON + timedelta(minutes=2)
    stage.drain()
    assert stage.ended() == ["1", "1"]


@pytest.mark.parametrize("boundary", BETWEEN)
def test_b54_a_parent_never_expires_without_its_children(stage: Stage, boundary: Boundary) -> None:
    also = (
        "[[rules.also]]\nsql = \"update seat set state = 'free', hold_id = null "
        'where hold_id = :id"\nrows = "3"\n'
    )
    open_shop(stage, CART + also)
    stage.host.script(
        "create table seat (id integer primary key, state varchar(9), hold_id integer);"
    )
    add(stage, held(1))
    stage.host.insert("seat", [{"id": n, "state": "sold", "hold_id": 1} for n in range(3)])
    assert killed_at(stage, boundary)
    assert stage.host.run("select state, count(*) from seat group by 1") == [("sold", 3)]
    assert statuses(stage) == {1: "held"}
    stage.drain()
    assert stage.host.run("select state, count(*) from seat group by 1") == [("free", 3)]
    assert statuses(stage) == {1: "expired"}
    assert stage.audit() == {}
