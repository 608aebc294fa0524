"""The answer to COMMIT lost, a time limit met, the server killed: released once all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from freehold.domain.errors import DatabaseAway
from freehold.domain.rules import Mode
from freehold.ports.system import Boundary
from freehold.testing.crash import CRASHED, WaitAt
from freehold.testing.pipeline import Pipeline
from freehold.testing.tables import Refusal
from tests.crash.acts import NOTHING, Acts, released
from tests.crash.conftest import prepare
from tests.proxy import CuttingProxy
from tests.servers import PostgresServer

Arm = Callable[[CuttingProxy], None]
LOSSES = pytest.mark.parametrize(
    "arm",
    [CuttingProxy.lose_commit, CuttingProxy.lose_commit_answer],
    ids=["commit lost", "answer lost"],
)


def through_proxy(acts: Acts, arm: Arm, at: float = 0) -> None:
    """Work in this process, since the proxy is threads; the armed cut must happen."""
    with CuttingProxy.for_url(acts.url) as proxy:
        pipeline = Acts(proxy.url(acts.url), acts.changes).pipeline(at)
        arm(proxy)
        pipeline.work()
        proxy.wait_until_cut()
        pipeline.close()
    acts.wait_until_alone()


@LOSSES
def test_a_lost_commit_of_a_release(postgres_shop: str, arm: Arm) -> None:
    acts = Acts(postgres_shop)
    for number in (1, 2, 3):
        acts.hold(number, quantity=number)
    acts.do(Pipeline.fire)
    through_proxy(acts, arm)
    assert [acts.status(number) for number in (1, 2, 3)] == ["expired"] * 3
    acts.drained(at=40)
    assert acts.host(lambda table: table.free()) == {1: 6, 2: 0}


@LOSSES
def test_a_lost_commit_of_a_lease(postgres_shop: str, arm: Arm) -> None:
    acts = Acts(postgres_shop)
    acts.hold()
    acts.lease_always()
    acts.do(Pipeline.fire)
    through_proxy(acts, arm)
    acts.drained(at=31)
    assert acts.expired_count() == 1


@LOSSES
def test_a_lost_commit_of_a_scan(postgres_shop: str, arm: Arm) -> None:
    acts = Acts(postgres_shop)
    acts.hold()
    with CuttingProxy.for_url(acts.url) as proxy:
        pipeline = Acts(proxy.url(acts.url)).pipeline()
        arm(proxy)
        with pytest.raises(DatabaseAway):
            pipeline.fire()
        proxy.wait_until_cut()
        pipeline.close()
    acts.wait_until_alone()
    acts.drained(at=40)
    assert acts.expired_count() == 1


@LOSSES
def test_a_lost_commit_of_a_straight_page(postgres_shop: str, arm: Arm) -> None:
    changes = {"mode": Mode.DIRECT}
    acts = Acts(postgres_shop, changes)
    acts.hold(quantity=3)
    with CuttingProxy.for_url(acts.url) as proxy:
        pipeline = Acts(proxy.url(acts.url), changes).pipeline()
        arm(proxy)
        with pytest.raises(DatabaseAway):
            pipeline.scan()
        proxy.wait_until_cut()
        pipeline.close()
    acts.wait_until_alone()
    assert acts.one("select leased from {s}rule_state")
    acts.drained(at=40)
    assert acts.expired_count() == 1
    assert acts.host(lambda table: table.free()) == {1: 3, 2: 0}


def test_a_killed_process_whose_commit_was_done(shop: str) -> None:
    """The other way to lose the answer, on every database: nobody is left to hear it."""
    acts = Acts(shop)
    acts.hold(quantity=5)
    acts.do(Pipeline.fire)
    acts.kill(Pipeline.work, Boundary.COMMITTED)
    assert acts.do(Pipeline.work) == NOTHING
    acts.drained(at=40)
    assert acts.expired_count() == 1
    assert acts.host(lambda table: table.free()) == {1: 5, 2: 0}


def test_a_time_limit_met_on_attempts_1_and_2_then_success(postgres_shop: str) -> None:
    acts = Acts(postgres_shop, limits={"statement_limit": timedelta(milliseconds=400)})
    acts.hold(refusal=Refusal.SLEEP)
    acts.do(Pipeline.fire)
    acts.do(Pipeline.work)
    acts.do(Pipeline.work, at=10)
    attempts = acts.rows("select attempt, failure_class from {s}attempt order by attempt")
    assert attempts == [(1, "transient"), (2, "transient")]
    acts.host(lambda table: table.mend("t1"))
    assert acts.do(Pipeline.work, at=40) == released(1)
    acts.drained(at=40)
    assert acts.expired_count() == 1


@pytest.fixture
def own_shop(postgres: PostgresServer) -> Iterator[str]:
    """A shop on a server that its test may kill."""
    url = prepare(postgres.create_database())
    yield url
    postgres.start()
    postgres.drop_database(url)


@pytest.mark.parametrize("boundary", [Boundary.RELEASED, Boundary.BEFORE_COMMIT])
def test_the_server_is_killed_in_the_middle_of_a_batch(
    postgres: PostgresServer, own_shop: str, boundary: Boundary
) -> None:
    acts = Acts(own_shop)
    for number in range(1, 31):
        acts.hold(number, tenant="abc"[number % 3])
    acts.do(Pipeline.fire)
    with acts.start(
        Pipeline.work, lambda wire: WaitAt(1, boundary, wire.tell, go=wire.wait)
    ) as worker:
        worker.go_on()
        worker.wait_for(CRASHED)
        postgres.kill9()
        postgres.start()
        worker.go_on()
        worker.end()
    acts.drained(at=40)
    assert {acts.status(number) for number in range(1, 31)} == {"expired"}
    assert acts.host(lambda table: table.free()) == {1: 30, 2: 0}
