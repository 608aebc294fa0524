"""Group one: it stops running, or runs late."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards, StopRequest, SystemClock
from freehold.application.relaying.forwarding import Forwarder
from freehold.application.relaying.relayer import Lane, Relayer
from freehold.application.status import status
from freehold.domain.forwards import TargetKind, TargetPolicy
from freehold.domain.pauses import Role
from freehold.entrypoints.service import Service
from freehold.ports.ledger import RuleCondition
from freehold.ports.system import Boundary
from freehold.ports.telemetry import BatchFinished, DatabaseTrouble
from freehold.testing.clock import SteadyDice
from freehold.testing.postbox import Postbox, accepting
from tests.scenarios.shop import (
    CART,
    GIVE_BACK,
    At,
    Killed,
    add,
    die,
    free,
    held,
    open_shop,
    statuses,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehold.ports.target import Answer, Parcel
    from freehold.ports.telemetry import Event
    from tests.stage import Stage

EVERY_MINUTE = CART.replace("[[rules]]", '[[rules]]\nwhen = "1m"')
EVERY_TEN_SECONDS = CART.replace("[[rules]]", '[[rules]]\nwhen = "10s"')


@pytest.mark.parametrize(
    "boundary",
    [
        Boundary.TICK_STARTED,
        Boundary.DUE_READ,
        Boundary.OPERATIONS_WRITTEN,
        Boundary.OPERATIONS_COMMITTED,
    ],
)
def test_b1_a_pass_that_dies_does_not_end_the_schedule(stage: Stage, boundary: Boundary) -> None:
    rule = open_shop(stage, EVERY_MINUTE)
    add(stage, held(1))
    with pytest.raises(Killed):
        stage.scheduler(checkpoint=At(boundary, die)).fire(rule)
    for _ in range(3):
        stage.advance(seconds=31)
        stage.scheduler("after the restart").fire(rule)
        stage.work()
    assert stage.ended() == ["1"]
    unfinished = f"select count(*) from {stage.prefix}tick where finished_at is null"
    assert stage.host.run(unfinished) == [(0,)]


@pytest.mark.parametrize("window", [timedelta(minutes=1), timedelta(hours=1)])
def test_b3_the_lag_depends_on_the_interval_and_not_on_the_window(
    stage: Stage, window: timedelta
) -> None:
    rule = open_shop(stage, EVERY_TEN_SECONDS)
    scheduler, worker = stage.scheduler(), stage.worker()
    scheduler.fire(rule)
    add(stage, held(1, window + timedelta(seconds=1)))
    stage.clock.instant += window
    while not stage.ended():
        scheduler.fire(rule)
        worker.work(rule)
        stage.clock.instant += timedelta(seconds=scheduler.sleep_seconds(rule))
    lag = stage.host.run(f"select finished_at, due_at from {stage.prefix}record")
    assert lag_seconds(*lag[0]) <= 10
    counts = stage.host.run(f"select lag_counts from {stage.prefix}tally")[0][0]
    assert sum(counts if isinstance(counts, list) else map(int, counts.strip("[]").split(","))) == 1


def lag_seconds(finished_at: object, due_at: object) -> float:
    ends = [
        value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        for value in (finished_at, due_at)
    ]
    return (ends[0] - ends[1]).total_seconds()


def test_b4_a_quiet_site_still_expires_on_time(stage: Stage) -> None:
    """Nobody touches the host for two hours; the schedule alone brings the release."""
    rule = open_shop(stage)
    add(stage, held(1, timedelta(hours=2)))
    scheduler, worker = stage.scheduler(), stage.worker()
    scheduler.fire(rule)
    assert not status(stage.own(), stage.rules, SystemClock()).rules[0].tick_late
    stage.clock.instant += timedelta(hours=2, seconds=-0.4)
    assert status(stage.own(), stage.rules, SystemClock()).rules[0].tick_late
    assert scheduler.sleep_seconds(rule) == pytest.approx(0.4, abs=0.001)
    scheduler.fire(rule)
    worker.work(rule)
    assert statuses(stage) == {1: "held"}
    stage.clock.instant += timedelta(seconds=0.4)
    scheduler.fire(rule)
    worker.work(rule)
    assert statuses(stage) == {1: "expired"}


def test_b6_a_tick_of_a_killed_scheduler_is_taken_over_once(stage: Stage) -> None:
    rule = open_shop(stage, EVERY_MINUTE)
    add(stage, held(1))
    with pytest.raises(Killed):
        stage.scheduler("killed", At(Boundary.TICK_STARTED, die)).fire(rule)
    other = stage.scheduler("other")
    assert other.fire(rule).scan is None
    stage.advance(seconds=31)
    taken = other.fire(rule).scan
    assert taken is not None
    assert taken.new_count == 1
    assert other.fire(rule).scan is None
    runs = stage.host.run(f"select run_count, runner from {stage.prefix}tick")
    assert len(runs) == 1


def test_b6_a_lease_of_a_killed_worker_returns_and_is_bounded(stage: Stage) -> None:
    """A lease that is never finished comes back, and counts, until a person is asked."""
    open_shop(stage)
    add(stage, held(1))
    stage.scan()
    for _ in range(6):
        with stage.ledger().transaction() as tx:
            assert len(tx.operations.lease("cart", 10, None, tx.now + timedelta(seconds=30))) == 1
        stage.advance(seconds=31)
        stage.sweep()
    assert stage.open() == {"dead": 1}
    assert statuses(stage) == {1: "held"}


def test_b7_a_scheduler_that_came_too_early_tries_again(stage: Stage) -> None:
    rule = open_shop(stage, EVERY_MINUTE)
    add(stage, held(1))
    with pytest.raises(Killed):
        stage.scheduler("old", At(Boundary.TICK_STARTED, die)).fire(rule)
    new = stage.scheduler("new")
    answers = []
    for _ in range(4):
        answers.append(new.fire(rule).scan is not None)
        stage.advance(seconds=10.5)
    assert answers == [False, False, False, True]


class Listener:
    """A listener that lets a test wait for what a loop says."""

    def __init__(self) -> None:
        self.troubled = {name: threading.Event() for name in ("heartbeat", "scan")}
        self.released = threading.Event()

    def tell(self, event: Event) -> None:
        match event:
            case DatabaseTrouble(loop=loop) if loop in self.troubled:
                self.troubled[loop].set()
            case BatchFinished(released_count=count) if count:
                self.released.set()


def test_b9_a_locked_database_does_not_end_the_loops(stage: Stage) -> None:
    open_shop(stage)
    add(stage, held(1, timedelta(days=-250)))
    door, listener = stage.door(), Listener()
    # The whole file is locked for the first of all loops, which the others wait for; two tables
    # are for the scan.
    lock, first = "begin; lock table hold, freehold.tick", "scan"
    if stage.dialect == "sqlite":
        lock, first = "begin immediate", "heartbeat"
    door.connection.execute(lock)
    service = Service(stage.settings, Onwards(), listener, StopRequest())
    thread = threading.Thread(target=service.run, args=([Role.SCAN, Role.WORK],))
    thread.start()
    try:
        assert listener.troubled[first].wait(30)
        door.connection.execute("rollback")
        assert listener.released.wait(30)
    finally:
        service.ask_to_stop()
        thread.join(30)
    assert not thread.is_alive()
    assert statuses(stage) == {1: "expired"}


def test_b10_customer_code_that_raises_leaves_no_hold_between_two_states(stage: Stage) -> None:
    """The only foreign code inside a release is a companion; its failure ends in review."""
    toml = CART + '[[rules.also]]\nsql = "update stock set free = free - 1 where id = :stock_id"\n'
    open_shop(stage, toml)
    stage.host.insert("stock", [{"id": 2, "free": 9}])
    add(stage, held(1), held(2, stock_id=2))
    for _ in range(7):
        stage.drain()
        stage.advance(hours=1)
    assert statuses(stage) == {1: "held", 2: "expired"}
    assert stage.events() == ["2"]
    message = stage.host.run(f"select state, failure_message from {stage.prefix}operation")
    assert message[0][0] == "dead"
    assert "stock_sane" in message[0][1]


def test_b10_a_publisher_that_raises_leaves_the_hold_done_and_the_event_to_be_sent(
    stage: Stage,
) -> None:
    """The release is committed before anyone is told, and whoever raises is asked again."""
    open_shop(stage)
    ledger, policy = stage.ledger(), TargetPolicy("crm", TargetKind.WEBHOOK)
    with ledger.transaction() as tx:
        tx.relay.follow_targets([(policy.name, policy.kind)])
    add(stage, held(1))
    stage.drain()

    def raising(_: Sequence[Parcel]) -> Sequence[Answer]:
        assert statuses(stage) == {1: "expired"}
        raise ZeroDivisionError

    box = Postbox(stage.folder / "crm.txt", raising)
    forwarder = Forwarder(ledger, box, policy, Onwards(), SteadyDice())
    relayer = Relayer(ledger, [Lane(forwarder)], Onwards())
    assert relayer.run_until_idle().failed_count == 1
    box.answers = accepting
    stage.advance(hours=1)
    relayer.run_until_idle()
    assert [*box.arrived().values()] == [1]
    assert stage.ends() == {"expired": 1}
    assert stage.audit() == {}


def test_b11_a_table_full_of_old_rows_waits_for_a_person(stage: Stage) -> None:
    open_shop(stage, CART.replace("[[rules]]", "[[rules]]\nattach_limit = 20"))
    add(stage, *[held(n, timedelta(days=-365)) for n in range(1, 31)])
    before = stage.host.run("select * from hold order by id")
    stage.drain()
    assert stage.host.run("select * from hold order by id") == before
    with stage.ledger().transaction() as tx:
        state = tx.rules.read("cart")
    assert state is not None
    assert state.condition is RuleCondition.WAITING
    assert "20" in (state.reason or "")
    assert stage.open() == {}
    stage.confirm(30)
    stage.drain()
    assert stage.ends() == {"expired": 30}


def test_b12_leaked_reservations_give_their_quota_back_after_the_attach(stage: Stage) -> None:
    toml = CART.replace("[[rules]]", "[[rules]]\nattach_limit = 5") + GIVE_BACK
    open_shop(stage, toml)
    add(stage, *[held(n, timedelta(days=-30), qty=n) for n in range(1, 11)])
    stage.drain()
    assert free(stage) == 0
    stage.confirm(10)
    stage.drain()
    assert free(stage) == sum(range(1, 11))
