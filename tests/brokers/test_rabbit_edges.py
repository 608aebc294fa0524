"""Both edges of the queue over RabbitMQ: from the publisher to the broker, and on to the consumer."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.rabbitmq import RabbitQueue, link, topology
from freehold.domain.errors import QueueAway, QueueUnfit
from freehold.domain.messages import Message
from freehold.ports.queue import Delivery, Disposition
from freehold.testing.contracts.queue import NOTHING_SECONDS, WAIT_SECONDS, message, take
from tests.brokers.rabbit_door import RabbitDoor
from tests.brokers.rabbit_server import FULL_AT, USER_OF
from tests.proxy import Cut, CuttingProxy, contains

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.brokers.rabbit_server import RabbitServer

PUBLISHED = contains(b"ExpireHold")
ACKED = contains(b"\x00\x3c\x00\x50")  # basic.ack
CONSUMED = contains(b"\x00\x3c\x00\x14")  # basic.consume


class Scene:
    """One queue behind a proxy."""

    def __init__(self, server: RabbitServer, name: str, stack: ExitStack) -> None:
        self.server, self.name = server, name
        self.door = RabbitDoor(server.url)
        self.proxy = stack.enter_context(CuttingProxy.for_url(server.url))
        self._stack = stack

    def queue(self, name: str | None = None, **how: float) -> RabbitQueue:
        queue = RabbitQueue(
            url=self.proxy.url(self.server.url),
            name=name or self.name,
            **how,  # type: ignore[arg-type]
        )
        self._stack.callback(queue.close)
        return queue

    def dead(self, count: int) -> list[bytes]:
        """Return the dead letters once there are so many."""
        idle, found = self.queue(f"{self.name}-idle"), list[bytes]()
        for _ in range(round(WAIT_SECONDS / NOTHING_SECONDS)):
            found = [one.body for one in self.door.take(topology.dead_name(self.name))]
            if len(found) >= count:
                return found
            idle.receive(1, NOTHING_SECONDS)
        raise AssertionError(f"{count} dead letters were to come, {len(found)} did")


@pytest.fixture
def scene(rabbit_server: RabbitServer, queue_name: str) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(rabbit_server, queue_name, stack)


def numbers(deliveries: Sequence[Delivery]) -> list[int]:
    return [one.message.operation_id for one in deliveries if isinstance(one.message, Message)]


# --------------------------------------------------------------------------- publisher and broker


@pytest.mark.parametrize(("cut", "stored"), [(Cut.BEFORE_FORWARD, {3}), (Cut.AFTER_REPLY, {4, 5})])
def test_what_a_lost_connection_kept_back_is_sent_again(
    scene: Scene, cut: Cut, stored: set[int]
) -> None:
    """RabbitMQ knows no repeats: what it had already it then has twice."""
    queue = scene.queue()
    assert queue.publish([message(1)]) == [True]
    scene.proxy.cut_at(PUBLISHED, cut)
    assert queue.publish([message(2), message(3)]) == [True, True]
    scene.proxy.wait_until_cut()
    assert queue.depth() in stored


def test_a_broker_that_is_gone_confirms_nothing(scene: Scene) -> None:
    queue = scene.queue()
    queue.publish([message(1)])
    scene.proxy.go_down()
    for act in (lambda: queue.publish([message(2)]), lambda: queue.receive(1, WAIT_SECONDS)):
        with pytest.raises(QueueAway, match="cannot be reached"):
            act()
    scene.proxy.come_up()
    assert queue.depth() == 1


def test_a_confirm_that_never_comes_is_false(scene: Scene) -> None:
    queue = scene.queue(confirm_seconds=0.3)
    queue.publish([message(1)])
    scene.proxy.cut_at(PUBLISHED, Cut.AFTER_REPLY, reply=lambda _: False)
    assert queue.publish([message(2), message(3)]) == [False, False]
    assert queue.publish([message(4)]) == [True]


def test_a_full_queue_refuses(scene: Scene) -> None:
    """RabbitMQ bounds a quorum queue roughly: some more than the bound get in."""
    queue = scene.queue(f"full.{scene.name}")
    flags = [queue.publish([message(number)])[0] for number in range(1, 20)]
    assert flags[:FULL_AT] == [True] * FULL_AT
    assert not flags[-1]
    assert queue.depth() == sum(flags)


def test_a_batch_beyond_one_pipeline_is_confirmed_whole(scene: Scene) -> None:
    queue = scene.queue()
    assert all(queue.publish([message(number) for number in range(1, 1_502)]))
    assert queue.depth() == 1_501


def test_a_queue_that_is_deleted_under_us_is_made_again(scene: Scene) -> None:
    queue = scene.queue()
    queue.publish([message(1)])
    for act, expected in (
        (lambda: queue.publish([message(2)]), [True]),
        (queue.depth, 0),
        (lambda: list(queue.receive(1, NOTHING_SECONDS)), []),
        (lambda: list(queue.receive(1, NOTHING_SECONDS)), []),  # now while it consumes
    ):
        scene.door.delete(scene.name)
        assert act() == expected
    queue.publish([message(3)])
    assert numbers(take(queue, 1)) == [3]


def test_a_message_without_a_way_is_not_confirmed(scene: Scene) -> None:
    scene.queue().depth()
    queue = RabbitQueue(url=scene.server.url_of(USER_OF), name=scene.name)
    assert queue.publish([message(1)]) == [True]  # who may make nothing uses what is there
    scene.door.delete(scene.name)
    with pytest.raises(QueueUnfit, match=r"does not let us: ACCESS_REFUSED"):
        queue.publish([message(2)])
    queue.close()


@pytest.mark.parametrize("is_wiped", [False, pytest.param(True, marks=pytest.mark.proof)])
def test_what_was_confirmed_outlives_a_kill(scene: Scene, *, is_wiped: bool) -> None:
    queue, other = scene.queue(), scene.queue()
    assert all(queue.publish([message(number) for number in range(1, 51)]))
    old = take(other, 5)
    scene.server.wait_until_kept(scene.name)
    scene.server.kill9()
    try:
        for act in (lambda: queue.publish([message(60)]), lambda: other.receive(1, WAIT_SECONDS)):
            with pytest.raises(QueueAway):
                act()
        other.settle(old, Disposition.ACK)
    finally:
        scene.server.restart(wiped=is_wiped)
    kept = [] if is_wiped else list(range(1, 51))
    assert sorted(numbers(take(other, len(kept)))) == kept
    assert queue.publish([message(61)]) == [True]


@pytest.mark.proof
def test_a_broker_short_of_memory_takes_nothing_and_says_so(scene: Scene) -> None:
    queue = scene.queue(confirm_seconds=1.0)
    queue.publish([message(1)])
    scene.server.command("set_vm_memory_high_watermark", "0")
    try:
        assert queue.publish([message(2)]) == [False]
        with pytest.raises(QueueAway, match="short of memory or disk"):
            queue.publish([message(3)])
    finally:
        scene.server.command("set_vm_memory_high_watermark", "absolute", "2GB")
    assert numbers(take(scene.queue(), 2)) == [1, 2]
    assert queue.publish([message(4)]) == [True]


# ---------------------------------------------------------------------------- broker and consumer


def test_a_lost_ack_brings_the_message_again_marked(scene: Scene) -> None:
    queue = scene.queue()
    queue.publish([message(1)])
    deliveries = take(queue, 1)
    assert not deliveries[0].redelivered
    scene.proxy.cut_at(ACKED, Cut.BEFORE_FORWARD)
    queue.settle(deliveries, Disposition.ACK)
    scene.proxy.wait_until_cut()
    (again,) = take(queue, 1)
    assert (again.message, again.redelivered) == (message(1), True)


def test_no_more_is_held_unsettled_than_prefetch(scene: Scene) -> None:
    queue, other = scene.queue(prefetch=3), scene.queue()
    queue.publish([message(number) for number in range(1, 11)])
    mine = take(queue, 3)
    assert list(queue.receive(1, NOTHING_SECONDS)) == []
    assert len(take(other, 7)) == 7
    other.close()  # what it had goes to whoever has room
    queue.settle(mine[:2], Disposition.ACK)
    assert len(take(queue, 2)) == 2


def test_a_batch_is_settled_in_parts_of_any_order(scene: Scene) -> None:
    queue = scene.queue()
    queue.publish([message(number) for number in range(1, 9)])
    by_number = {numbers([one])[0]: one for one in take(queue, 8)}
    queue.settle([by_number[one] for one in (6, 1, 2, 4)], Disposition.ACK)
    queue.settle([by_number[one] for one in (5,)], Disposition.DEAD_LETTER)
    queue.settle([by_number[one] for one in (3,)], Disposition.RETRY)
    queue.close()
    left = take(scene.queue(), 3)
    assert sorted(numbers(left)) == [3, 7, 8]
    assert all(one.redelivered for one in left)
    assert [b'"operation_id":5,' in one for one in scene.dead(1)] == [True]


def test_what_comes_back_too_often_is_kept_aside(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "DELIVERY_LIMIT", 2)
    queue = scene.queue()
    queue.publish([message(1)])
    for _ in range(3):
        queue.settle(take(queue, 1), Disposition.RETRY)
    assert len(scene.dead(1)) == 1
    assert queue.depth() == 0


def test_a_queue_that_is_made_otherwise_is_unfit(scene: Scene) -> None:
    scene.door.make(scene.name)
    queue = scene.queue()
    for act in (lambda: queue.publish([message(1)]), lambda: queue.receive(1, 0), queue.depth):
        with pytest.raises(QueueUnfit, match=r"exists and is made otherwise.*x-.*delete it"):
            act()


def test_a_queue_without_a_leader_is_away_and_not_for_ever(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server answers nothing to a consumer then; the client closes the channel that was late."""
    queue = scene.queue()
    queue.publish([message(1)])
    monkeypatch.setattr(link, "REQUEST_SECONDS", 0.3)
    scene.proxy.cut_at(CONSUMED, Cut.AFTER_REPLY, reply=lambda _: False)
    assert numbers(take(queue, 1)) == [1]  # over the second connection
