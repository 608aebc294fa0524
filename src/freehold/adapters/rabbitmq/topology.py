"""Queues and exchanges as they must be: made where they are missing, refused where they differ.

*Invariants*: nothing that exists is changed; who may not make a queue may still use one that is
there.
"""

from __future__ import annotations

from typing import Any

from aiormq.abc import AbstractChannel
from aiormq.exceptions import (
    AMQPError,
    ChannelAccessRefused,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
)

from freehold.adapters.rabbitmq.link import Link, LinkRefused, refused, told

# A backstop: attempts are the ledger's. RabbitMQ counts each hand-over that a lost connection undid,
# so that the 20 of its version 4 would be used up by a few restarts of workers.
DELIVERY_LIMIT = 1_000
DEAD_MOST = 10_000  # messages; evidence, so the oldest goes when it is full
DEAD_BYTES_MOST = 256 * 1024 * 1024


def dead_name(name: str) -> str:
    """Return the queue of what nobody can read."""
    return f"{name}.dead"


def hints_arguments(name: str) -> dict[str, Any]:
    """Return how the queue of hints is made: on disk, replicated, and never dropping silently.

    Dead letters leave it only when the other queue has confirmed them, which needs that a full
    queue refuses. Source: https://www.rabbitmq.com/docs/quorum-queues.
    """
    return {
        "x-queue-type": "quorum",
        "x-overflow": "reject-publish",
        "x-delivery-limit": DELIVERY_LIMIT,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": dead_name(name),
        "x-dead-letter-strategy": "at-least-once",
    }


def dead_arguments() -> dict[str, Any]:
    """Return how the queue of dead letters is made."""
    return {
        "x-queue-type": "quorum",
        "x-overflow": "drop-head",
        "x-max-length": DEAD_MOST,
        "x-max-length-bytes": DEAD_BYTES_MOST,
    }


async def declare_queue(link: Link, name: str, arguments: dict[str, Any]) -> None:
    """Make a queue, or check the one of its name.

    Raises:
        LinkRefused: it differs, or may not be made.
        LinkLost: there is no connection any more.
    """

    async def declare(channel: AbstractChannel, *, passive: bool) -> None:
        await channel.queue_declare(
            name, passive=passive, durable=True, arguments=None if passive else arguments
        )

    await _declared(link, f"the queue {name}", declare)


async def declare_exchange(link: Link, name: str) -> None:
    """Make a durable topic exchange, or check the one of its name; raises as `declare_queue`."""

    async def declare(channel: AbstractChannel, *, passive: bool) -> None:
        await channel.exchange_declare(name, exchange_type="topic", passive=passive, durable=True)

    await _declared(link, f"the exchange {name}", declare)


async def is_made_so(link: Link, name: str, arguments: dict[str, Any]) -> bool:
    """Tell whether a queue that is there has these arguments; False also where we may not ask.

    Raises:
        LinkRefused: it has others.
        LinkLost: there is no connection any more.
    """
    channel = await link.aside()
    try:
        await link.ask(channel.queue_declare(name, durable=True, arguments=arguments))
    except ChannelAccessRefused:
        return False
    except ChannelPreconditionFailed as error:
        raise _made_otherwise(f"the queue {name}", error) from None
    except AMQPError as error:
        raise LinkRefused(f"RabbitMQ cannot show the queue {name}: {told(error)}") from None
    await link.ask(channel.close())
    return True


def _made_otherwise(what: str, error: AMQPError) -> LinkRefused:
    return LinkRefused(
        f"{what} exists and is made otherwise ({told(error)}): delete it, or choose another name"
    )


async def _declared(link: Link, what: str, declare: Any) -> None:
    try:
        await _aside(link, declare, passive=False)
    except ChannelAccessRefused as error:
        await _found(link, what, declare, error)
    except ChannelPreconditionFailed as error:
        raise _made_otherwise(what, error) from None
    except AMQPError as error:
        raise LinkRefused(f"RabbitMQ cannot make {what}: {told(error)}") from None


async def _found(link: Link, what: str, declare: Any, refusal: AMQPError) -> None:
    """Take what somebody else made, where we may make nothing."""
    try:
        await _aside(link, declare, passive=True)
    except ChannelNotFoundEntity:
        raise refused(link.place, refusal) from None
    except AMQPError as error:
        raise LinkRefused(f"RabbitMQ does not show {what}: {told(error)}") from None


async def _aside(link: Link, declare: Any, *, passive: bool) -> None:
    """Ask on a channel of its own, which a refusal ends."""
    channel = await link.aside()
    await link.ask(declare(channel, passive=passive))
    await link.ask(channel.close())
