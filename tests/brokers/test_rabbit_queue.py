"""The queue over RabbitMQ keeps the queue's contract."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.rabbitmq import RabbitQueue
from freehold.testing.contracts.queue import PublishContract, ReceiveContract, SettleContract
from tests.brokers.rabbit_door import RabbitDoor
from tests.proxy import CuttingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from freehold.ports.queue import Queue
    from tests.brokers.rabbit_server import RabbitServer


class RabbitBroker:
    """One queue of a running server, each connection behind a proxy of its own."""

    def __init__(self, server: RabbitServer, name: str, stack: ExitStack) -> None:
        self.server, self.name = server, name
        self.door = RabbitDoor(server.url)
        self._stack = stack
        self._proxies: dict[int, CuttingProxy] = {}
        first = RabbitQueue(url=server.url, name=name)
        first.depth()
        first.close()

    def connect(self) -> Queue:
        proxy = self._stack.enter_context(CuttingProxy.for_url(self.server.url))
        queue = RabbitQueue(url=proxy.url(self.server.url), name=self.name)
        self._stack.callback(queue.close)
        self._proxies[id(queue)] = proxy
        return queue

    def connect_unreachable(self) -> Queue:
        with CuttingProxy.for_url(self.server.url) as gone:
            url = gone.url(self.server.url)
        return RabbitQueue(url=url, name=self.name)

    def put_raw(self, payload: bytes) -> None:
        self.door.put(self.name, payload)

    def count_waiting(self) -> int:
        return self.door.waiting(self.name)

    def dead_letters(self) -> Sequence[bytes]:
        return [one.body for one in self.door.take(f"{self.name}.dead")]

    def keeps_dead_letters(self) -> bool:
        return True

    def cut(self, queue: Queue) -> None:
        proxy = self._proxies[id(queue)]
        proxy.go_down()
        proxy.come_up()


@pytest.fixture
def broker(rabbit_server: RabbitServer, queue_name: str) -> Iterator[RabbitBroker]:
    with ExitStack() as stack:
        yield RabbitBroker(rabbit_server, queue_name, stack)


class TestPublish(PublishContract):
    pass


class TestReceive(ReceiveContract):
    pass


class TestSettle(SettleContract):
    pass
