"""The crash matrix, case by case: a real process dies at the named point, the next one finishes."""

from __future__ import annotations

import pytest

from freehold.domain.schedule import Precise
from freehold.ports.system import Boundary
from freehold.testing.crash import WaitAt
from freehold.testing.pipeline import Pipeline
from freehold.testing.tables import Refusal
from tests.crash.acts import NOTHING, SOON, Acts, released

OPEN = "select count(*) from {s}operation"
RECORDS = "select outcome, reason from {s}record order by finished_at, operation_id"


@pytest.fixture
def acts(shop: str) -> Acts:
    return Acts(shop)


def test_killed_after_the_due_query(acts: Acts) -> None:
    acts.hold()
    acts.kill(Pipeline.fire, Boundary.DUE_READ)
    assert acts.one(OPEN) == 0
    assert acts.do(Pipeline.scan) == 1
    acts.drained(at=40)
    assert acts.expired_count() == 1


def test_killed_after_enqueueing_with_the_tick_still_open(acts: Acts) -> None:
    acts.hold()
    acts.kill(Pipeline.fire, Boundary.OPERATIONS_COMMITTED)
    assert acts.one(OPEN) == 1
    assert acts.one("select finished_at from {s}tick") is None
    assert acts.do(Pipeline.work) == released(1)
    acts.drained(at=40)
    assert acts.expired_count() == 1


@pytest.mark.parametrize("boundary", [Boundary.TICK_STARTED, Boundary.OPERATIONS_COMMITTED])
def test_another_scheduler_takes_the_same_logical_time_over(acts: Acts, boundary: Boundary) -> None:
    acts.hold()
    acts.kill(Pipeline.fire, boundary)
    ((logical_time,),) = acts.rows("select logical_time from {s}tick")
    acts.do(Pipeline.fire, at=29, runner="two")
    assert acts.one("select runner from {s}tick") == "killed"
    acts.do(Pipeline.fire, at=31, runner="two")
    ((again, runner, run_count, finished_at),) = acts.rows(
        "select logical_time, runner, run_count, finished_at from {s}tick"
    )
    assert (again, runner, run_count) == (logical_time, "two", 2)
    assert finished_at is not None
    acts.drained(at=31)
    assert acts.expired_count() == 1


def test_a_later_tick_that_finished_does_not_hide_one_that_did_not(acts: Acts) -> None:
    acts.kill(Pipeline.fire, Boundary.TICK_STARTED, at=40)
    acts.do(Pipeline.fire, at=56)
    assert acts.one("select count(*) from {s}tick where finished_at is not null") == 1
    acts.hold(due=100)
    for minute in (2, 3):
        acts.do(Pipeline.fire, at=60 * minute)
    assert acts.one("select count(*) from {s}tick where finished_at is null") == 0
    acts.drained(at=200)
    assert acts.expired_count() == 1


def test_a_minute_of_a_precise_schedule_that_nobody_finished_is_closed(shop: str) -> None:
    acts = Acts(shop, {"schedule": Precise()})
    acts.kill(Pipeline.fire_once, Boundary.TICK_STARTED)
    acts.do(Pipeline.fire_once, at=90)
    ((runner, finished_at),) = acts.rows("select runner, finished_at from {s}tick")
    assert (runner, finished_at is None) == ("one", False)


def test_published_twice_is_one_operation(acts: Acts) -> None:
    acts.hold()
    assert acts.do(Pipeline.scan) == 1
    assert acts.do(Pipeline.scan, runner="two") == 0
    assert acts.one(OPEN) == 1
    assert acts.do(Pipeline.work) == released(1)
    acts.drained(at=0)
    assert acts.expired_count() == 1


def test_renewed_between_discovery_and_handling(acts: Acts) -> None:
    acts.hold()
    acts.kill(Pipeline.fire, Boundary.OPERATIONS_COMMITTED)
    assert acts.host(lambda table: table.renew(1, SOON))
    assert acts.do(Pipeline.work) == {**NOTHING, "renewed": 1}
    acts.drained(at=40)
    assert acts.status() == "held"
    assert acts.rows(RECORDS) == [("skipped", "renewed")]


def test_renewed_while_the_worker_is_killed_with_it_in_hand(acts: Acts) -> None:
    acts.hold()
    acts.do(Pipeline.fire)
    acts.kill(Pipeline.work, Boundary.RELEASED)
    assert acts.host(lambda table: table.renew(1, SOON))
    acts.drained(at=40)
    assert acts.status() == "held"
    assert acts.expired_count() == 0


def test_killed_after_the_status_update_before_the_commit(acts: Acts) -> None:
    acts.hold(quantity=3)
    acts.do(Pipeline.fire)
    acts.kill(Pipeline.work, Boundary.COMPANIONS_AFTER)
    assert acts.status() == "held"
    assert acts.host(lambda table: table.free()) == {1: 0, 2: 0}
    assert acts.rows("select state, attempt from {s}operation") == [("ready", 0)]
    for table in ("record", "outbox", "tally"):
        assert acts.one(f"select count(*) from {{s}}{table}") == 0
    acts.drained(at=0)
    assert acts.expired_count() == 1
    assert acts.host(lambda table: table.free()) == {1: 3, 2: 0}


def test_killed_after_the_commit_before_the_acknowledgement(acts: Acts) -> None:
    acts.hold(quantity=3)
    acts.do(Pipeline.fire)
    acts.kill(Pipeline.work, Boundary.COMMITTED)
    assert acts.status() == "expired"
    assert acts.one(OPEN) == 0
    assert acts.do(Pipeline.work) == NOTHING
    acts.drained(at=40)
    assert acts.expired_count() == 1
    assert acts.host(lambda table: table.free()) == {1: 3, 2: 0}


def test_a_message_delivered_again_after_the_commit_changes_nothing(acts: Acts) -> None:
    acts.hold()
    acts.do(Pipeline.fire)

    def deliver_twice(pipeline: Pipeline) -> list[int]:
        message = pipeline.peek()
        return [pipeline.deliver(message).total for _ in range(2)]

    assert acts.do(deliver_twice) == [1, 0]
    acts.drained(at=0)
    assert acts.expired_count() == 1


def test_two_workers_on_one_message(acts: Acts) -> None:
    """Both have the message in hand before either begins its transaction."""
    acts.hold()
    acts.do(Pipeline.fire)

    def handle(pipeline: Pipeline) -> object:
        return pipeline.deliver(message)

    message = acts.message()
    with acts.start(handle) as first, acts.start(handle) as second:
        for worker in (first, second):
            worker.wait_for("started")
        for worker in (first, second):
            worker.go_on()
        results = [worker.end().value["released"] for worker in (first, second)]
    assert sorted(results) == [0, 1]
    acts.drained(at=0)
    assert acts.expired_count() == 1


def test_a_second_worker_while_the_first_stands_before_its_commit(acts: Acts) -> None:
    acts.hold()
    acts.do(Pipeline.fire)
    message = acts.message()
    with (
        acts.start(
            Pipeline.work, lambda wire: WaitAt(1, Boundary.RELEASED, wire.tell, go=wire.wait)
        ) as first,
        acts.start(lambda pipeline: pipeline.deliver(message)) as second,
    ):
        first.go_on()
        first.wait_for("crashed")
        second.wait_for("started")
        second.go_on()
        if not acts.url.startswith("sqlite"):  # there it waits for the one write lock
            assert second.end().value == NOTHING
        first.go_on()
        assert first.end().value == released(1)
        if acts.url.startswith("sqlite"):
            assert second.end().value == NOTHING
    acts.drained(at=0)
    assert acts.expired_count() == 1


def test_due_at_exactly_now_is_due_and_a_microsecond_later_is_not(acts: Acts) -> None:
    acts.hold(1, due=0)
    acts.hold(2, due=0.000001)
    acts.do(Pipeline.fire)
    assert acts.do(Pipeline.work) == released(1)
    assert (acts.status(1), acts.status(2)) == ("expired", "held")
    assert acts.do(Pipeline.scan, at=0.000001) == 1
    assert acts.do(Pipeline.work, at=0.000001) == released(1)
    acts.drained(at=1)


def test_a_changed_token_is_another_hold(acts: Acts) -> None:
    acts.hold()
    acts.do(Pipeline.fire)
    acts.kill(Pipeline.work, Boundary.RELEASED)
    assert acts.host(lambda table: table.take_over(1, "another", SOON))
    assert acts.do(Pipeline.work) == {**NOTHING, "taken over": 1}
    acts.drained(at=40)
    assert acts.status() == "held"
    assert acts.rows(RECORDS) == [("skipped", "taken over")]


def test_a_hold_already_cancelled_is_an_acknowledged_no_op(acts: Acts) -> None:
    acts.hold()
    acts.do(Pipeline.fire)
    assert acts.host(lambda table: table.set_status(1, "cancelled"))
    acts.kill(Pipeline.work, Boundary.SKIPS_WRITTEN)
    assert acts.one(OPEN) == 1
    assert acts.do(Pipeline.work) == {**NOTHING, "cancelled": 1}
    assert acts.do(Pipeline.work) == NOTHING
    assert acts.rows(RECORDS) == [("skipped", "cancelled")]
    assert acts.one("select expired_count from {s}tally") == 0
    acts.drained(at=40)
    assert acts.status() == "cancelled"


def test_an_error_on_attempts_1_and_2_then_success(acts: Acts) -> None:
    acts.hold(refusal=Refusal.RAISE)
    acts.do(Pipeline.fire)
    attempts = "select attempt, failure_message from {s}attempt order by attempt"
    acts.do(Pipeline.work)
    assert [row[0] for row in acts.rows(attempts)] == [1]
    assert acts.do(Pipeline.work, at=9.999) == NOTHING
    acts.kill(Pipeline.work, Boundary.FAILURE_CLASSIFIED, at=10)
    assert [row[0] for row in acts.rows(attempts)] == [1]
    acts.do(Pipeline.work, at=10)
    assert acts.rows(attempts) == [(1, "this row is poison"), (2, "this row is poison")]
    acts.host(lambda table: table.mend("t1"))
    assert acts.do(Pipeline.work, at=39.999) == NOTHING
    assert acts.do(Pipeline.work, at=40) == released(1)
    assert acts.one("select attempt from {s}record") == 3
    acts.drained(at=40)
    assert acts.expired_count() == 1


def test_killed_while_a_person_requeues(acts: Acts) -> None:
    acts.hold(1, refusal=Refusal.RAISE)
    acts.hold(2, refusal=Refusal.RAISE)
    acts.do(Pipeline.fire)
    for at in (0, 10, 40):
        acts.do(Pipeline.work, at=at)
    states = "select state, attempt from {s}operation"
    assert acts.rows(states) == [("dead", 3)] * 2
    acts.host(lambda table: [table.mend(token) for token in ("t1", "t2")])
    acts.kill(Pipeline.requeue, Boundary.BEFORE_COMMIT, nth=2, at=50)
    assert acts.rows(states) == [("dead", 3)] * 2
    assert acts.one("select count(*) from {s}action") == 0
    acts.kill(Pipeline.requeue, Boundary.REVIEWED, at=50)
    assert acts.rows(states) == [("ready", 0)] * 2
    assert acts.one("select count(*) from {s}action") == 2
    assert acts.do(Pipeline.requeue, at=50) == 0
    acts.drained(at=50)
    assert (acts.expired_count(1), acts.expired_count(2)) == (1, 1)
