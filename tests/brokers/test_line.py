"""The whole line over a real broker: forged, identical and lost messages; kills at every boundary."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import aiormq
import pytest

from freehold.adapters.nats import NatsQueue
from freehold.adapters.rabbitmq import RabbitQueue
from freehold.adapters.system import Onwards, StopRequest
from freehold.application.deliveries import Handler
from freehold.application.dispatch import PUBLISH_AGAIN_AFTER, Dispatcher
from freehold.application.scan import Scanner
from freehold.application.work import Worker
from freehold.domain.messages import Message
from freehold.ports.queue import Disposition
from freehold.testing.clock import SteadyDice
from freehold.testing.contracts.ground import NOW, SECOND
from tests.brokers.nats_door import NatsDoor
from tests.contract.forging import harmless_payloads, unreadable_payloads, untrue_payloads
from tests.contract.grounds import SqlGround, ground_at, migrate
from tests.crash.conftest import prepare
from tests.crash.script import Script
from tests.crash.test_kill_sweep import in_lanes, sweep, trace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence
    from pathlib import Path

    from aiormq.abc import AbstractChannel

    from freehold.ports.queue import Queue
    from tests.brokers.nats_server import NatsServer
    from tests.brokers.rabbit_server import RabbitServer

WAIT_SECONDS = 5.0  # for what must come
EVERY = 7  # of the reaches of a line that is killed


@dataclass
class NatsWays:
    """One stream, and the ways around the adapter."""

    server: NatsServer
    name: str

    def connect(self) -> Queue:
        return NatsQueue(url=self.server.url, name=self.name)

    def put_raw(self, payloads: Sequence[bytes]) -> None:
        NatsDoor(self.server.url).put(f"{self.name}.ready", *payloads)

    def wipe(self) -> None:
        NatsDoor(self.server.url).ask(f"STREAM.PURGE.{self.name}")


@dataclass
class RabbitWays:
    """One queue, and the ways around the adapter."""

    server: RabbitServer
    name: str

    def connect(self) -> Queue:
        return RabbitQueue(url=self.server.url, name=self.name)

    def put_raw(self, payloads: Sequence[bytes]) -> None:
        async def put(channel: AbstractChannel) -> None:
            for payload in payloads:
                await channel.basic_publish(payload, routing_key=self.name)

        self._call(put)

    def wipe(self) -> None:
        async def purge(channel: AbstractChannel) -> None:
            await channel.queue_purge(self.name)

        self._call(purge)

    def _call(self, act: Callable[[AbstractChannel], Coroutine[Any, Any, None]]) -> None:
        async def run() -> None:
            async with aiormq.Connection(self.server.url) as connection:
                await act(await connection.channel(publisher_confirms=True))

        asyncio.run(run())


Ways = NatsWays | RabbitWays


@dataclass
class BrokerLine:
    """Scanner, dispatcher and handler over one broker and one file."""

    ground: SqlGround
    ways: Ways
    stack: ExitStack
    released: int = 0

    def __post_init__(self) -> None:
        self.rule = self.ground.rule
        ledger = self.ground.open()
        self.scanner = Scanner(ledger, Onwards())
        self.dispatcher = Dispatcher(ledger, self.connect(), Onwards())
        worker = Worker(self.ground.open(), Onwards(), SteadyDice(), StopRequest())
        other = replace(self.rule, name="another")
        rules = {"r": self.rule, "another": other}
        self.handler = Handler(worker, self.connect(), rules)
        self.connect().depth()  # which declares what is missing

    def connect(self) -> Queue:
        queue = self.ways.connect()
        self.stack.callback(queue.close)
        return queue

    def find(self, *keys: int) -> None:
        for key in keys:
            self.ground.back.add_hold(key, NOW - SECOND)
        self.scanner.scan(self.rule)

    def handle(self, count: int) -> None:
        """Handle until so many deliveries came."""
        counts = self.handler.counts
        until = counts.delivered_count + count
        while counts.delivered_count < until:
            done = self.handler.handle(500, WAIT_SECONDS)
            assert done.delivered_count, f"{until - counts.delivered_count} did not come"
            self.released += done.batch.released_count


def ways_to(request: pytest.FixtureRequest, name: str) -> Ways:
    """Return a queue of this name on the broker that the test asks for."""
    if request.param == "nats":
        return NatsWays(request.getfixturevalue("nats_server"), name)
    return RabbitWays(request.getfixturevalue("rabbit_server"), name)


@pytest.fixture(params=["nats", "rabbitmq"])
def line(request: pytest.FixtureRequest, stream: str, tmp_path: Path) -> Iterator[BrokerLine]:
    url = f"sqlite:///{tmp_path / 'freehold.db'}"
    migrate(url)
    with ExitStack() as stack:
        ground = stack.enter_context(ground_at(url))
        yield BrokerLine(ground, ways_to(request, stream), stack)


def taken(line: BrokerLine) -> Message:
    """Find hold 1, and return its message, which nobody handled."""
    line.find(1)
    assert line.dispatcher.dispatch(line.rule).published_count == 1
    queue = line.connect()
    (delivery,) = queue.receive(1, WAIT_SECONDS)
    assert isinstance(delivery.message, Message)
    queue.settle([delivery], Disposition.ACK)
    queue.close()
    return delivery.message


def test_what_is_forged_changes_nothing_and_is_gone(line: BrokerLine) -> None:
    message = taken(line)
    unreadable = unreadable_payloads(message)
    untrue = untrue_payloads(message, {})
    before = line.ground.back.rows("operation")
    line.ways.put_raw([*unreadable.values(), *untrue.values()])
    line.handle(len(unreadable) + len(untrue))
    assert (line.released, line.ground.back.rows("operation")) == (0, before)
    counts = line.handler.counts
    assert counts.passed_over_count + counts.unreadable_count == counts.delivered_count
    kept = {(row["raw"], row["byte_count"]) for row in line.ground.back.rows("stray")}
    assert {(one[:1_000], len(one)) for one in unreadable.values()} <= kept
    lying = harmless_payloads(message)
    line.ways.put_raw([*lying.values()])
    line.handle(len(lying))
    assert line.released == 1
    assert line.handler.queue.depth() == 0


def test_a_thousand_identical_messages_are_one_transition(line: BrokerLine) -> None:
    message = taken(line)
    assert all(line.connect().publish([message] * 1_000))
    line.handle(1_000)
    assert (line.released, line.handler.counts.passed_over_count) == (1, 999)
    assert len(line.ground.back.rows("record")) == 1


def test_a_broker_wiped_in_the_middle_of_its_work_costs_a_sweep(line: BrokerLine) -> None:
    keys = range(1, 41)
    line.find(*keys)
    line.rule = replace(line.rule, batch_size=10)
    while line.dispatcher.dispatch(line.rule).published_count:
        pass
    line.released += line.handler.handle(15, WAIT_SECONDS).batch.released_count
    assert 0 < line.released < len(keys)
    line.ways.wipe()
    line.ground.set_now(NOW + PUBLISH_AGAIN_AFTER)
    left = len(keys) - line.released
    published = 0
    while more := line.dispatcher.dispatch(line.rule).published_count:
        published += more
    assert published == left
    line.handle(left)
    assert line.released == len(keys)
    count = Counter(row["hold_key"] for row in line.ground.back.rows("record"))
    assert count == {str(key): 1 for key in keys}


@pytest.fixture(params=["nats", "rabbitmq"])
def lanes(request: pytest.FixtureRequest, stream: str, tmp_path: Path) -> list[Script]:
    """Two lines to kill, each with a queue and a file of its own."""
    return [
        Script(
            prepare(f"sqlite:///{tmp_path / lane}.db"),
            connect=ways_to(request, f"{stream}-{lane}").connect,
        )
        for lane in "ab"
    ]


@pytest.mark.proof
@pytest.mark.timeout(method="signal")
def test_kills_beside_a_broker_that_lives_on_are_recovered_from(lanes: list[Script]) -> None:
    trace = trace_of(lanes[0])
    assert not in_lanes(lanes, range(1, len(trace) + 1, EVERY), sweep)
