"""Leases: a worker that dies or stands still under one loses it, and its late writes change nothing."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest

from freehold.application.release import BatchResult
from freehold.ports.system import Boundary
from freehold.testing.backdoor import BackDoor
from freehold.testing.crash import CRASHED, StopAt, WaitAt
from freehold.testing.pipeline import Pipeline
from freehold.testing.tables import Refusal
from tests.crash.acts import NOTHING, Acts, released

LEASE_SECONDS = 30
OPERATION = "select state, attempt, lease_token from {s}operation"


@pytest.fixture
def acts(shop: str) -> Acts:
    """A shop with one due hold, found already, under a rule that takes leases."""
    acts = Acts(shop)
    acts.hold(quantity=2)
    acts.lease_always()
    acts.do(Pipeline.fire)
    return acts


def sweep_and_work(pipeline: Pipeline) -> BatchResult:
    pipeline.sweep()
    return pipeline.work()


def test_a_worker_killed_under_a_lease_costs_one_attempt(acts: Acts) -> None:
    acts.kill(Pipeline.work, Boundary.LEASE_COMMITTED)
    ((state, attempt, _),) = acts.rows(OPERATION)
    assert (state, attempt) == ("leased", 1)
    assert acts.do(sweep_and_work, at=LEASE_SECONDS) == NOTHING
    assert acts.do(sweep_and_work, at=LEASE_SECONDS + 1) == released(1)
    assert acts.one("select attempt from {s}record") == 2
    acts.drained(at=40)
    assert acts.expired_count() == 1


@pytest.mark.parametrize("boundary", [Boundary.HOLDS_LOCKED, Boundary.RELEASED])
def test_a_worker_killed_while_releasing_under_a_lease(acts: Acts, boundary: Boundary) -> None:
    acts.kill(Pipeline.work, boundary)
    assert acts.status() == "held"
    acts.drained(at=LEASE_SECONDS + 1)
    assert acts.expired_count() == 1
    assert acts.host(lambda table: table.free()) == {1: 2, 2: 0}


def test_a_hold_that_kills_every_worker_is_buried(acts: Acts) -> None:
    most = acts.rule.retry.attempts_max
    for attempt in range(most):
        at = attempt * (LEASE_SECONDS + 1)
        acts.do(Pipeline.sweep, at)
        acts.kill(Pipeline.work, Boundary.HOLDS_LOCKED, at=at)
    assert acts.do(sweep_and_work, at=most * (LEASE_SECONDS + 1)) == NOTHING
    ((state, attempt, reason),) = acts.rows("select state, attempt, reason from {s}operation")
    assert (state, attempt) == ("dead", most)
    assert "killed" in reason
    acts.drained(at=200)
    assert acts.status() == "held"


def test_a_worker_stopped_for_two_leases_finds_its_work_done(acts: Acts) -> None:
    with acts.start(
        Pipeline.work, lambda wire: StopAt(1, Boundary.LEASE_COMMITTED, wire.tell)
    ) as stopped:
        stopped.go_on()
        stopped.wait_until_stopped()
        assert acts.do(sweep_and_work, at=2 * LEASE_SECONDS + 1) == released(1)
        stopped.resume()
        assert stopped.end().value == NOTHING
    acts.drained(at=70)
    assert acts.expired_count() == 1


def test_a_worker_stopped_for_two_leases_cannot_release_under_the_next_lease(acts: Acts) -> None:
    with (
        acts.start(
            Pipeline.work, lambda wire: StopAt(1, Boundary.LEASE_COMMITTED, wire.tell)
        ) as stopped,
        acts.start(
            sweep_and_work,
            lambda wire: WaitAt(1, Boundary.LEASE_COMMITTED, wire.tell, go=wire.wait),
            at=2 * LEASE_SECONDS + 1,
        ) as second,
    ):
        stopped.go_on()
        stopped.wait_until_stopped()
        second.go_on()
        second.wait_for(CRASHED)
        stopped.resume()
        assert stopped.end().value == NOTHING
        assert acts.status() == "held"
        second.go_on()
        assert second.end().value == released(1)
    acts.drained(at=70)
    assert acts.expired_count() == 1


def test_a_failure_of_a_lost_lease_is_not_written(acts: Acts) -> None:
    acts.host(lambda table: table.refuse("t1", Refusal.RAISE))
    with acts.start(
        Pipeline.work, lambda wire: StopAt(1, Boundary.FAILURE_CLASSIFIED, wire.tell)
    ) as stopped:
        stopped.go_on()
        stopped.wait_until_stopped()
        acts.do(Pipeline.sweep, at=LEASE_SECONDS + 1)
        acts.kill(Pipeline.work, Boundary.LEASE_COMMITTED, at=LEASE_SECONDS + 1)
        before = acts.rows(OPERATION)
        stopped.resume()
        stopped.end()
    assert acts.rows(OPERATION) == before
    assert acts.one("select count(*) from {s}attempt") == 0
    acts.host(lambda table: table.mend("t1"))
    acts.drained(at=2 * LEASE_SECONDS + 2)
    assert acts.expired_count() == 1


def test_a_worker_stopped_inside_its_transaction_does_not_keep_the_row(postgres_shop: str) -> None:
    acts = Acts(postgres_shop, limits={"idle_limit": timedelta(milliseconds=300)})
    acts.hold()
    acts.do(Pipeline.fire)
    with acts.start(Pipeline.work, lambda wire: StopAt(1, Boundary.RELEASED, wire.tell)) as stopped:
        stopped.go_on()
        stopped.wait_until_stopped()
        with BackDoor(acts.url) as door:  # waits for the row's lock
            assert door.rows("select status from reservation where id = 1 for update") == [
                ("held",)
            ]
        assert acts.do(Pipeline.work) == released(1)
        stopped.resume()
        assert stopped.end().value == NOTHING
    acts.drained(at=40)
    assert acts.expired_count() == 1


def test_a_killed_child_is_reported_as_killed(acts: Acts) -> None:
    """The tool itself: SIGKILL shows as such, and a child that raises fails its test."""
    with acts.start(Pipeline.work) as child:
        child.wait_for("started")
        child.kill()
        ending = child.end()
    assert ending.was_killed
    assert ending.killed_by == signal.SIGKILL
    assert ending.value is None
