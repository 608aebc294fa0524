"""Both edges of the queue over NATS: from the publisher to the broker, and on to the consumer."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.nats import NatsQueue
from freehold.adapters.nats import queue as adapter
from freehold.domain.errors import QueueAway, QueueUnfit
from freehold.domain.messages import Message
from freehold.ports.queue import Disposition
from freehold.testing.contracts.queue import NOTHING_SECONDS, WAIT_SECONDS, message, take
from tests.brokers.nats_door import NatsDoor
from tests.proxy import Cut, CuttingProxy, contains

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.brokers.nats_server import NatsServer


class Scene:
    """One stream behind a proxy."""

    def __init__(self, server: NatsServer, name: str, stack: ExitStack) -> None:
        self.server, self.name = server, name
        self.door = NatsDoor(server.url)
        self.proxy = stack.enter_context(CuttingProxy.for_url(server.url))
        self._stack = stack

    def queue(self, **how: float) -> NatsQueue:
        queue = NatsQueue(
            url=self.proxy.url(self.server.url),
            name=self.name,
            **{"ack_wait_seconds": 0.5, **how},  # type: ignore[arg-type]
        )
        self._stack.callback(queue.close)
        return queue

    def stored(self) -> list[bytes]:
        return [body for _, _, body in self.door.read(self.name)]

    def configure(self, stream: str, **changes: object) -> None:
        found = self.door.ask(f"STREAM.INFO.{stream}")["config"]
        answer = self.door.ask(f"STREAM.UPDATE.{stream}", found | changes)
        assert "error" not in answer, answer


@pytest.fixture
def scene(nats_server: NatsServer, stream: str) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(nats_server, stream, stack)


# --------------------------------------------------------------------------- publisher and broker


@pytest.mark.parametrize("cut", list(Cut))
def test_a_confirm_that_is_lost_on_the_way_is_asked_for_again(scene: Scene, cut: Cut) -> None:
    queue = scene.queue()
    assert queue.publish([message(1)]) == [True]
    scene.proxy.cut_at(contains(b"HPUB "), cut)
    assert queue.publish([message(2), message(3)]) == [True, True]
    scene.proxy.wait_until_cut()
    assert len(scene.stored()) == 3  # what JetStream had already, it did not keep twice
    assert queue.publish([message(2), message(3)]) == [True, True]
    assert len(scene.stored()) == 5  # and a repeat is none


def test_a_broker_that_dies_before_its_confirm_confirms_nothing(scene: Scene) -> None:
    queue = scene.queue()
    queue.publish([message(1)])
    scene.configure(scene.name, no_ack=True)
    scene.proxy.cut_at(contains(b"HPUB "), Cut.BEFORE_FORWARD)
    scene.proxy.go_down()
    with pytest.raises(QueueAway, match="cannot be reached"):
        queue.publish([message(2)])
    scene.proxy.come_up()


def test_a_confirm_that_never_comes_is_false(scene: Scene) -> None:
    queue = scene.queue(confirm_seconds=0.3)
    queue.publish([message(1)])
    scene.configure(scene.name, no_ack=True)
    assert queue.publish([message(2), message(3)]) == [False, False]
    assert len(scene.stored()) == 3
    scene.configure(scene.name, no_ack=False)
    assert queue.publish([message(2)]) == [True]


def test_a_full_stream_refuses(scene: Scene) -> None:
    queue = scene.queue()
    queue.publish([message(1)])
    scene.configure(scene.name, max_msgs=2, discard="new")
    assert queue.publish([message(2), message(3), message(4)]) == [True, False, False]
    assert len(scene.stored()) == 2


def test_more_messages_than_one_pipeline_are_all_confirmed(scene: Scene) -> None:
    queue = scene.queue()
    assert all(queue.publish([message(number) for number in range(1, 2_502)]))
    assert queue.depth() == 2_501


def test_a_stream_that_is_deleted_under_us_is_made_again(scene: Scene) -> None:
    queue = scene.queue()
    queue.publish([message(1)])
    acts: list[Callable[[], bool]] = [
        lambda: queue.publish([message(2)]) == [True],
        lambda: list(queue.receive(1, NOTHING_SECONDS)) == [],
        lambda: list(queue.receive(1, 0)) == [],
        lambda: queue.depth() == 0,
    ]
    for act in acts:
        scene.door.ask(f"STREAM.DELETE.{scene.name}")
        assert act()
        assert queue.publish([message(3)]) == [True]
        assert len(take(queue, 1)) == 1


def test_a_killed_broker_has_what_it_confirmed(scene: Scene) -> None:
    queue = scene.queue()
    assert queue.publish([message(1), message(2)]) == [True, True]
    scene.server.kill9()
    try:
        with pytest.raises(QueueAway):
            queue.publish([message(3)])
        with pytest.raises(QueueAway):
            queue.receive(1, WAIT_SECONDS)
    finally:
        scene.server.restart()
    assert len(take(queue, 2)) == 2


def test_a_wiped_broker_is_set_up_again(scene: Scene) -> None:
    queue = scene.queue()
    queue.publish([message(1)])
    old = take(queue, 1)
    scene.server.restart(wiped=True)
    queue.settle(old, Disposition.ACK)
    assert list(queue.receive(1, NOTHING_SECONDS)) == []
    assert queue.publish([message(2)]) == [True]
    assert [one.message for one in take(queue, 1)] == [message(2)]


@pytest.mark.proof
def test_what_was_confirmed_outlives_a_broker_killed_under_load(
    scene: Scene, nats_server: NatsServer
) -> None:
    queue = scene.queue(confirm_seconds=2.0)
    confirmed: set[int] = set()
    ended = threading.Event()

    def publish() -> None:
        for start in itertools.count(1, 100):
            if ended.is_set():
                return
            numbers = range(start, start + 100)
            with contextlib.suppress(QueueAway):
                flags = queue.publish([message(number) for number in numbers])
                confirmed.update(n for n, flag in zip(numbers, flags, strict=True) if flag)

    publishing = threading.Thread(target=publish)
    publishing.start()
    try:
        for _ in range(5):
            seen = len(confirmed)
            assert wait_until(lambda seen=seen: len(confirmed) > seen + 2_000)  # type: ignore[misc]
            nats_server.kill9()
            nats_server.start()
    finally:
        nats_server.start()
        ended.set()
        publishing.join(60)
    received: set[int] = set()
    while taken := queue.receive(500, NOTHING_SECONDS):
        received |= {one.message.operation_id for one in taken if isinstance(one.message, Message)}
        queue.settle(taken, Disposition.ACK)
    assert confirmed
    assert confirmed <= received


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    give_up_at = time.monotonic() + seconds
    while not condition() and time.monotonic() < give_up_at:
        threading.Event().wait(0.01)
    return condition()


# ---------------------------------------------------------------------------- broker and consumer


def test_an_ack_that_is_lost_brings_the_message_again(scene: Scene) -> None:
    queue = scene.queue()
    queue.publish([message(1)])
    scene.proxy.cut_at(contains(b"+ACK"), Cut.BEFORE_FORWARD)
    queue.settle(take(queue, 1), Disposition.ACK)
    scene.proxy.wait_until_cut()
    (again,) = take(queue, 1)
    assert (again.message, again.redelivered) == (message(1), True)


def test_what_a_killed_worker_held_comes_again_in_batches(scene: Scene) -> None:
    killed, other = scene.queue(), scene.queue()
    killed.publish([message(number) for number in range(1, 41)])
    take(killed, 40)
    scene.proxy.go_down()
    scene.proxy.come_up()
    sizes: list[int] = []
    while sum(sizes) < 40:
        again = other.receive(40, WAIT_SECONDS)
        assert all(one.redelivered for one in again)
        other.settle(again, Disposition.ACK)
        sizes.append(len(again))
    assert len(sizes) <= 5  # and not one by one


def test_a_connection_holds_no_more_than_its_prefetch(scene: Scene) -> None:
    queue = scene.queue(prefetch=3)
    queue.publish([message(number) for number in range(1, 6)])
    held = queue.receive(10, WAIT_SECONDS)
    assert len(held) == 3
    assert list(queue.receive(10, NOTHING_SECONDS)) == []
    queue.settle(held[:1], Disposition.ACK)
    assert len(queue.receive(10, WAIT_SECONDS)) == 1


def test_the_bound_of_all_workers_is_no_lost_connection(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JetStream leaves a request unanswered then, which must not look like a dead server."""
    monkeypatch.setattr(adapter, "BLOCKED_SECONDS", 0.1)
    first = scene.queue(ack_wait_seconds=30.0)
    first.publish([message(1), message(2)])
    found = scene.door.ask(f"CONSUMER.INFO.{scene.name}.workers")["config"]
    changed = {"stream_name": scene.name, "config": found | {"max_ack_pending": 1}}
    scene.door.ask(f"CONSUMER.DURABLE.CREATE.{scene.name}.workers", changed)
    held = first.receive(2, WAIT_SECONDS)
    assert len(held) == 1
    assert list(first.receive(1, NOTHING_SECONDS)) == []
    first.settle(held, Disposition.ACK)
    assert len(first.receive(2, WAIT_SECONDS)) == 1


def test_a_dead_letter_without_a_safe_copy_is_not_taken_out(scene: Scene) -> None:
    queue = scene.queue()
    queue.publish([message(1)])
    scene.configure(f"{scene.name}-dead", max_msgs=1, discard="new")
    scene.door.put(f"{scene.name}.dead", b"it is full")
    queue.settle(take(queue, 1), Disposition.DEAD_LETTER)
    (again,) = take(queue, 1)
    assert again.redelivered
    scene.configure(f"{scene.name}-dead", max_msgs=10_000, discard="old")
    queue.settle([again], Disposition.DEAD_LETTER)
    assert list(queue.receive(1, 0.8)) == []
    assert len(scene.door.read(f"{scene.name}-dead")) == 2


# ----------------------------------------------------------------------------------- what is unfit


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"storage": "memory"}, "storage 'memory' instead of 'file'"),
        ({"retention": "limits"}, "retention 'limits' instead of 'workqueue'"),
    ],
)
def test_a_stream_of_other_settings_is_unfit(
    scene: Scene, settings: dict[str, str], words: str
) -> None:
    made = {"name": scene.name, "subjects": [f"{scene.name}.ready"], "retention": "workqueue"}
    scene.door.ask(f"STREAM.CREATE.{scene.name}", {"storage": "file"} | made | settings)
    queue = scene.queue()
    with pytest.raises(QueueUnfit, match=words):
        queue.publish([message(1)])
    with pytest.raises(QueueUnfit, match=words):
        queue.receive(1, 0)
    with pytest.raises(QueueUnfit, match=words):
        queue.depth()


def test_a_subject_that_belongs_to_another_stream_is_unfit(scene: Scene) -> None:
    scene.door.ask(
        f"STREAM.CREATE.other-{scene.name}",
        {"name": f"other-{scene.name}", "subjects": [f"{scene.name}.*"]},
    )
    with pytest.raises(QueueUnfit, match="overlap"):
        scene.queue().depth()


def test_more_replicas_than_servers_is_unfit(scene: Scene) -> None:
    with pytest.raises(QueueUnfit, match="replicas"):
        scene.queue(replicas=3).depth()
