"""The back door to a RabbitMQ server: a plain connection that uses nothing of the adapter."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import aiormq
from pamqp.commands import Basic

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from aiormq.abc import AbstractChannel, DeliveredMessage

T = TypeVar("T")


class RabbitDoor:
    """Opens a connection for each call, on a loop of its own."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, act: Callable[[AbstractChannel], Coroutine[Any, Any, T]]) -> T:
        """Run an act over a channel."""

        async def run() -> T:
            connection = await aiormq.connect(self.url)
            try:
                return await act(await connection.channel())
            finally:
                await connection.close()

        return asyncio.run(run())

    def make(self, queue: str, **arguments: object) -> None:
        """Make a durable queue."""

        async def act(channel: AbstractChannel) -> None:
            await channel.queue_declare(queue, durable=True, arguments=arguments)  # type: ignore[arg-type]

        self.call(act)

    def bind(self, queue: str, exchange: str, routing_key: str) -> None:
        """Make a queue that gets what an exchange has for a routing key."""

        async def act(channel: AbstractChannel) -> None:
            await channel.queue_declare(queue, durable=True)
            await channel.queue_bind(queue, exchange, routing_key)

        self.call(act)

    def delete(self, queue: str) -> None:
        """Delete a queue with all it has."""

        async def act(channel: AbstractChannel) -> None:
            await channel.queue_delete(queue)

        self.call(act)

    def put(self, queue: str, *bodies: bytes) -> None:
        """Publish into a queue, and wait until it has them."""

        async def act(channel: AbstractChannel) -> None:
            for body in bodies:
                await channel.basic_publish(
                    body, routing_key=queue, properties=Basic.Properties(delivery_mode=2)
                )

        self.call(act)

    def take(self, queue: str) -> list[DeliveredMessage]:
        """Take all that waits in a queue, and put it back."""

        async def act(channel: AbstractChannel) -> list[DeliveredMessage]:
            found = []
            while isinstance((one := await channel.basic_get(queue)).delivery, Basic.GetOk):
                found.append(one)
            return found

        return self.call(act)

    def waiting(self, queue: str) -> int:
        """Count what waits in a queue."""

        async def act(channel: AbstractChannel) -> int:
            return (await channel.queue_declare(queue, passive=True)).message_count or 0

        return self.call(act)
