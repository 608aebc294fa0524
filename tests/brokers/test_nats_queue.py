"""The queue over NATS JetStream keeps the queue's contract."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.nats import NatsQueue
from freehold.testing.contracts.queue import PublishContract, ReceiveContract, SettleContract
from tests.brokers.nats_door import NatsDoor
from tests.proxy import CuttingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from freehold.ports.queue import Queue
    from tests.brokers.nats_server import NatsServer

ACK_WAIT_SECONDS = 1.0  # what the contract waits for must come within its five seconds


class NatsBroker:
    """One stream of a running server, each connection behind a proxy of its own."""

    def __init__(self, server: NatsServer, name: str, stack: ExitStack) -> None:
        self.server, self.name = server, name
        self.door = NatsDoor(server.url)
        self._stack = stack
        self._proxies: dict[int, CuttingProxy] = {}

    def connect(self) -> Queue:
        proxy = self._stack.enter_context(CuttingProxy.for_url(self.server.url))
        queue = NatsQueue(
            url=proxy.url(self.server.url), name=self.name, ack_wait_seconds=ACK_WAIT_SECONDS
        )
        self._stack.callback(queue.close)
        self._proxies[id(queue)] = proxy
        return queue

    def connect_unreachable(self) -> Queue:
        with CuttingProxy.for_url(self.server.url) as gone:
            url = gone.url(self.server.url)
        return NatsQueue(url=url, name=self.name)

    def put_raw(self, payload: bytes) -> None:
        self._declare()
        self.door.put(f"{self.name}.ready", payload)

    def _declare(self) -> None:
        if "error" in self.door.ask(f"STREAM.INFO.{self.name}"):
            first = self.connect()
            first.depth()
            first.close()

    def count_waiting(self) -> int:
        return self.door.waiting(self.name, "workers")

    def dead_letters(self) -> Sequence[bytes]:
        return [body for _, _, body in self.door.read(f"{self.name}-dead")]

    def keeps_dead_letters(self) -> bool:
        return True

    def cut(self, queue: Queue) -> None:
        proxy = self._proxies[id(queue)]
        proxy.go_down()
        proxy.come_up()


@pytest.fixture
def broker(nats_server: NatsServer, stream: str) -> Iterator[NatsBroker]:
    with ExitStack() as stack:
        yield NatsBroker(nats_server, stream, stack)


class TestPublish(PublishContract):
    pass


class TestReceive(ReceiveContract):
    pass


class TestSettle(SettleContract):
    pass
