"""What the tests do at a broker beside the example: publish as often and in such order as they like."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import aio_pika
import nats
from nats.js.api import ConsumerConfig, StreamConfig
from nats.js.errors import NotFoundError

from freehold.settings.values_brokers import EVENTS_NAME, NatsTargetSettings
from freehold.settings.values_report import Secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehold.ports.target import Parcel

QUEUE = "waiting-list"
STREAM = NatsTargetSettings(Secret("")).stream
ACK_WAIT = timedelta(seconds=1)  # how soon NATS gives a dead consumer's message to the next


class Broker(Protocol):
    """A broker that events are published to, past every layer of ours."""

    url: str
    kind: str

    def prepare(self) -> None:
        """Make what the example needs to find, empty."""
        ...

    def publish(self, parcels: Sequence[Parcel]) -> None:
        """Publish to where Freehold does, and wait for the confirms."""
        ...

    def left_count(self) -> int:
        """Return how many messages wait for the example or for its acknowledgement."""
        ...


@dataclass
class RabbitBroker:
    """RabbitMQ."""

    url: str
    kind: str = "rabbitmq"

    def prepare(self) -> None:
        asyncio.run(self._prepare())

    async def _prepare(self) -> None:
        async with await aio_pika.connect(self.url) as connection:
            channel = await connection.channel()
            await channel.queue_delete(QUEUE)

    def publish(self, parcels: Sequence[Parcel]) -> None:
        asyncio.run(self._publish(parcels))

    async def _publish(self, parcels: Sequence[Parcel]) -> None:
        async with await aio_pika.connect(self.url) as connection:
            channel = await connection.channel(on_return_raises=True)
            exchange = await channel.get_exchange(EVENTS_NAME)
            for parcel in parcels:
                message = aio_pika.Message(
                    parcel.body,
                    message_id=parcel.event_key,
                    delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
                )
                await exchange.publish(message, f"{parcel.rule}.{parcel.type}", mandatory=True)

    def left_count(self) -> int:
        return asyncio.run(self._left_count())

    async def _left_count(self) -> int:
        async with await aio_pika.connect(self.url) as connection:
            queue = await (await connection.channel()).get_queue(QUEUE)
            return queue.declaration_result.message_count or 0


@dataclass
class NatsBroker:
    """NATS JetStream."""

    url: str
    kind: str = "nats"

    def prepare(self) -> None:
        asyncio.run(self._prepare())

    async def _prepare(self) -> None:
        client = await nats.connect(self.url)
        context = client.jetstream()
        with suppress(NotFoundError):
            await context.delete_stream(STREAM)
        await context.add_stream(StreamConfig(name=STREAM, subjects=[f"{EVENTS_NAME}.>"]))
        await context.add_consumer(
            STREAM,
            ConsumerConfig(
                durable_name=QUEUE,
                filter_subject=f"{EVENTS_NAME}.*.hold.expired.v1",
                ack_wait=ACK_WAIT.total_seconds(),
            ),
        )
        await client.close()

    def publish(self, parcels: Sequence[Parcel]) -> None:
        asyncio.run(self._publish(parcels))

    async def _publish(self, parcels: Sequence[Parcel]) -> None:
        """Publish without the header by which the stream would drop a repeat."""
        client = await nats.connect(self.url)
        for parcel in parcels:
            subject = f"{EVENTS_NAME}.{parcel.rule}.{parcel.type}"
            await client.jetstream().publish(subject, parcel.body)
        await client.close()

    def left_count(self) -> int:
        return asyncio.run(self._left_count())

    async def _left_count(self) -> int:
        client = await nats.connect(self.url)
        info = await client.jetstream().consumer_info(STREAM, QUEUE)
        await client.close()
        return (info.num_pending or 0) + (info.num_ack_pending or 0)
