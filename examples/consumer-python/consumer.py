"""A worked consumer: events from RabbitMQ or NATS JetStream, each one's effect once.

Effect and inbox are one PostgreSQL transaction, and a message is acknowledged after its commit and
never before. A process that is killed between the two gets the message again, finds the key in the
inbox, and acknowledges.

Usage: DATABASE_URL=postgresql://... BROKER_URL=amqp://... (or nats://...) consumer.py
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

import psycopg

from freehold.inbox import Inbox

CONSUMER = "waiting-list"
QUEUE = "waiting-list"  # the queue, or the durable consumer, that is ours at the broker
EXCHANGE = SUBJECT = "freehold.events"
STREAM = "freehold-events"
WANTED = "*.hold.expired.v1"  # every rule's expired holds
PREFETCH = 100
PAUSE_SECONDS = 5


class NotAnEvent(ValueError):
    """A message that nobody can handle, now or later."""


def read(body: bytes) -> dict[str, Any]:
    """Read CloudEvents JSON."""
    try:
        event = json.loads(body)
        if event["specversion"] == "1.0" and isinstance(event["id"], str):
            return dict(event)
    except (ValueError, TypeError, KeyError) as error:
        raise NotAnEvent from error
    raise NotAnEvent


def effect(connection: psycopg.Connection[Any], event: dict[str, Any]) -> None:
    """Do what an event asks for; what is written here stands or falls with the inbox."""
    if event["type"] != "hold.expired.v1":
        return  # a type that we do not know is no error
    offer = "insert into offers (hold_key, event_key) values (%s, %s)"
    connection.execute(offer, (event["data"]["key"], event["id"]))


def handle(connection: psycopg.Connection[Any], body: bytes) -> bool:
    """Take one message as far as its commit; tell whether the event was new."""
    event = read(body)
    with connection.transaction():
        is_new = Inbox(connection, CONSUMER).first(event["id"])
        if is_new:
            effect(connection, event)
    return is_new


async def consume_rabbitmq(url: str, connection: psycopg.Connection[Any]) -> None:
    """Take messages from a quorum queue that is bound to the exchange, until cancelled."""
    import aio_pika

    broker = await aio_pika.connect(url)
    async with broker:
        channel = await broker.channel()
        await channel.set_qos(prefetch_count=PREFETCH)
        exchange = await channel.declare_exchange(EXCHANGE, "topic", durable=True)
        queue = await channel.declare_queue(
            QUEUE, durable=True, arguments={"x-queue-type": "quorum"}
        )
        await queue.bind(exchange, WANTED)
        print("consuming from RabbitMQ", flush=True)
        async with queue.iterator() as messages:
            async for message in messages:
                try:
                    await asyncio.to_thread(handle, connection, message.body)
                except NotAnEvent:
                    await message.reject(
                        requeue=False
                    )  # to the queue's dead letters, if it has any
                else:
                    await message.ack()
    raise ConnectionError("the broker ended the connection")


async def consume_nats(url: str, connection: psycopg.Connection[Any]) -> None:
    """Take messages from a durable pull consumer of the stream, until cancelled."""
    import nats
    from nats.errors import NoServersError
    from nats.errors import TimeoutError as NothingCame
    from nats.js.errors import NotFoundError

    async def tell(error: Exception) -> None:
        print(f"NATS: {error}", file=sys.stderr)

    try:
        # One attempt: whoever supervises the process tries again.
        broker = await nats.connect(
            url,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            error_cb=tell,
        )
    except NoServersError as error:
        raise ConnectionError("no NATS server answers") from error
    try:
        subscription = await broker.jetstream().pull_subscribe(
            f"{SUBJECT}.{WANTED}", durable=QUEUE, stream=STREAM
        )
        print("consuming from NATS", flush=True)
        while broker.is_connected:
            try:
                batch = await subscription.fetch(PREFETCH, timeout=PAUSE_SECONDS)
            except NothingCame:
                continue
            for message in batch:
                try:
                    await asyncio.to_thread(handle, connection, message.data)
                except NotAnEvent:
                    await message.term()  # never again
                else:
                    await message.ack_sync()
    except NotFoundError as error:
        raise ConnectionError(f"Freehold has not made the stream {STREAM} yet") from error
    finally:
        await broker.close()
    raise ConnectionError("the broker ended the connection")


async def run(database: str, broker: str) -> None:
    """Consume until SIGINT or SIGTERM; anything lost ends the process, for its supervisor."""
    consume = consume_nats if broker.startswith(("nats:", "tls:")) else consume_rabbitmq
    with psycopg.connect(database, autocommit=True) as connection:
        work = asyncio.ensure_future(consume(broker, connection))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        await work


def main() -> int:
    """Run; unacknowledged messages come again to the next process."""
    try:
        asyncio.run(run(os.environ["DATABASE_URL"], os.environ["BROKER_URL"]))
    except asyncio.CancelledError:
        return 0
    except KeyError as missing:
        print(f"Set {missing}; see README.md.", file=sys.stderr)
        return 2
    except (psycopg.OperationalError, OSError) as error:
        print(f"lost: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
