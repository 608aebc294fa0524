"""One connection to a RabbitMQ server: publishing with confirms, and messages that are pushed.

*Invariants*: a lost connection, or one whose channel the server closed, stays lost and is replaced
by another link; every wait is bounded and ends when the connection does; no error holds a password.
*Not here*: queues and exchanges (`topology`), what is sent (`queue`, `target`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import deque
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import aiormq
from aiormq.abc import AbstractChannel, DeliveredMessage
from aiormq.exceptions import (
    AMQPError,
    AuthenticationError,
    ChannelAccessRefused,
    ChannelInvalidStateError,
    ChannelNotFoundEntity,
    DeliveryError,
    InvalidFrameError,
    ProbableAuthenticationError,
    PublishError,
)
from pamqp.commands import Basic

from freehold.adapters.rabbitmq.address import Address

T = TypeVar("T")

CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 5.0
CLOSE_SECONDS = 3.0
OPENED = "freehold"  # what the server's management calls the connection
PIPELINE_MOST = 1_000  # messages under way at once; each is a task of the client until its confirm
BLOCKED_SECONDS = 0.02  # looking whether the server has told us to stop takes no time unless it has
POUR_SECONDS, POURS_MOST = 0.001, 20
PERSISTENT = 2
SHORT_MOST = 255  # bytes of a name, a routing key, a message id

# What goes wrong is raised to whoever calls, and the client would log it as well.
logging.getLogger("aiormq").setLevel(logging.CRITICAL)


class LinkLost(Exception):
    """There is no connection, or it ended. The message says why, and may be shown."""


class LinkBlocked(LinkLost):
    """The server takes no messages for now; the connection stands."""


class LinkRefused(Exception):
    """The server is there and says no; again says no. The message may be shown."""


@dataclass(frozen=True, slots=True)
class Post:
    """One message to be published.

    Attributes:
        name: of the message, unlike all others of one call.
    """

    exchange: str
    routing_key: str
    name: str
    body: bytes
    content_type: str
    type: str


@dataclass(frozen=True, slots=True)
class Said:
    """What the server said to one message; `code` is empty where it said nothing."""

    is_confirmed: bool = False
    code: str = ""
    text: str = ""


CONFIRMED = Said(is_confirmed=True)
SILENCE = Said()
UNROUTABLE = "312"  # NO_ROUTE
NO_EXCHANGE = "404"


class Link:
    """Belongs to one loop and one caller."""

    def __init__(self, connection: aiormq.Connection, channel: aiormq.Channel, place: str) -> None:
        self._connection = connection
        self._channel = channel
        self.place = place
        self.arrived: deque[DeliveredMessage] = deque()
        self._news = asyncio.Event()
        self._consumes = False
        self._end = channel.closing
        self._end.add_done_callback(lambda _: self._news.set())

    # -------------------------------------------------------------------------------- the connection

    @classmethod
    async def open(cls, address: Address) -> Link:
        """Connect.

        Raises:
            LinkLost: the server cannot be reached.
            LinkRefused: it can, and will not have us.
        """
        connection = aiormq.Connection(address.url, context=address.trusted)
        connection.vhost = address.vhost
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await connection.connect({"connection_name": OPENED})
                channel = await connection.channel()
                assert isinstance(channel, aiormq.Channel)
        except (OSError, AMQPError, TimeoutError) as error:
            await _close(connection)
            raise why(address, error) from None
        except BaseException:
            await _close(connection)
            raise
        return cls(connection, channel, address.place)

    @property
    def is_lost(self) -> bool:
        """Tell whether the connection, or its channel, has ended."""
        return self._channel.is_closed or not self._connection.is_opened

    @property
    def consumes(self) -> bool:
        """Tell whether messages are pushed to us."""
        return self._consumes and not self.is_lost

    @property
    def version(self) -> str:
        """Return the server's version, as it says."""
        return str(self._connection.server_properties.get("version", ""))

    async def is_blocked(self) -> bool:
        """Tell whether the server has told us to send nothing, for want of memory or disk."""
        try:
            async with asyncio.timeout(BLOCKED_SECONDS):
                await self._connection.ready()
        except TimeoutError:
            return True
        return False

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """End the connection, whatever state it is in, waiting so long for the other side."""
        await _close(self._connection, seconds)

    async def ask(self, request: Awaitable[T]) -> T:
        """Await an answer of the server.

        Raises:
            LinkLost: none came.
            AMQPError: the server refused, and has closed the channel that was asked.
        """
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await request
        except TimeoutError:
            raise LinkLost(f"RabbitMQ at {self.place} did not answer in time") from None
        except asyncio.CancelledError:
            if not self.is_lost:
                raise
            raise self.lost() from None
        except (AMQPError, OSError, RuntimeError) as error:
            is_answer = isinstance(error, AMQPError) and self._connection.is_opened
            if is_answer and not isinstance(error, ChannelInvalidStateError):
                raise
            raise self.lost() from None

    async def aside(self) -> AbstractChannel:
        """Open one more channel, for a request that may end it."""
        return await self.ask(self._connection.channel(publisher_confirms=False))

    def lost(self) -> LinkLost | LinkRefused:
        """Return why the connection or its channel ended."""
        error = self._end.exception() if self._end.done() and not self._end.cancelled() else None
        if isinstance(error, ChannelAccessRefused):
            return refused(self.place, error)
        return LinkLost(f"RabbitMQ at {self.place} closed the connection{_text(error)}")

    # ----------------------------------------------------------------------------------- publishing

    async def publish(self, posts: Sequence[Post], seconds: float) -> list[Said]:
        """Publish all, mandatory and persistent, and wait for the confirms of all together.

        Raises:
            LinkBlocked: the server takes nothing for now.
        """
        said: list[Said] = []
        for first in range(0, len(posts), PIPELINE_MOST):
            if await self.is_blocked():
                raise LinkBlocked(f"RabbitMQ at {self.place} is short of memory or disk")
            said += await self._publish(posts[first : first + PIPELINE_MOST], seconds)
        return said

    async def _publish(self, posts: Sequence[Post], seconds: float) -> list[Said]:
        tasks = [asyncio.ensure_future(self._publish_one(one)) for one in posts]
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=CLOSE_SECONDS)
        return [_said(task) for task in tasks]

    async def _publish_one(self, post: Post) -> object:
        return await self._channel.basic_publish(
            post.body,
            exchange=post.exchange,
            routing_key=post.routing_key,
            mandatory=True,
            wait=False,
            properties=Basic.Properties(
                content_type=post.content_type,
                delivery_mode=PERSISTENT,
                message_id=post.name,
                message_type=post.type,
            ),
        )

    # ------------------------------------------------------------------------------------ consuming

    async def consume(self, queue: str, prefetch: int) -> None:
        """Have messages pushed to us, so many unsettled ones at most.

        Raises:
            LinkLost, AMQPError: as `ask` says.
        """
        self._channel.on_consumer_cancel_callbacks.add(self._on_cancel)
        await self.ask(self._channel.basic_qos(prefetch_count=prefetch))
        await self.ask(self._channel.basic_consume(queue, self._on_message))
        self._consumes = True

    async def _on_message(self, message: DeliveredMessage) -> None:
        self.arrived.append(message)
        self._news.set()

    def _on_cancel(self, _: object) -> None:
        """The queue was deleted under us, or its leader is gone."""
        self._consumes = False
        self._news.set()

    async def wait(self, seconds: float, count: int) -> None:
        """Wait until something arrived, the connection ended, or time is up.

        What pours in is let pour on, up to `count`: a batch of few costs as much as one of many.
        """
        self._news.clear()
        if not self.arrived and self.consumes:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), seconds)
        for _ in range(POURS_MOST):
            before = len(self.arrived)
            if not 0 < before < count:
                break
            await asyncio.sleep(POUR_SECONDS)
            if len(self.arrived) == before:
                break

    async def count(self, queue: str) -> int:
        """Count what waits in a queue, unsettled messages left out.

        Raises:
            LinkLost, AMQPError: as `ask` says; a missing queue ends the channel.
        """
        answer = await self.ask(self._channel.queue_declare(queue, passive=True))
        return int(answer.message_count or 0)

    async def settle(self, runs: Iterable[tuple[int, bool]], *, ack: bool, requeue: bool) -> None:
        """Send settlements, each of one tag or of all up to one, and wait until they have left."""
        said = list(runs)
        for place, (tag, multiple) in enumerate(said, 1):
            is_last = place == len(said)
            if ack:
                sent = self._channel.basic_ack(tag, multiple=multiple, wait=is_last)
            else:
                sent = self._channel.basic_nack(
                    tag, multiple=multiple, requeue=requeue, wait=is_last
                )
            await self.ask(sent)


def refused(place: str, error: AMQPError) -> LinkRefused:
    """Return a lack of rights in words; the server's own say to what and for whom."""
    return LinkRefused(f"RabbitMQ at {place} does not let us{_text(error)}")


def why(address: Address, error: BaseException) -> LinkLost | LinkRefused:
    """Return in words why a connection could not be made."""
    place, cause = address.place, error
    if isinstance(error.__cause__, OSError):
        cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return LinkRefused(
            f"the certificate of RabbitMQ at {place} is not trusted: see ca_file "
            f"({cause.verify_message})"
        )
    if isinstance(error, (ProbableAuthenticationError, AuthenticationError)):
        return LinkRefused(f"RabbitMQ at {place} refuses this user or password: see url")
    if isinstance(error, InvalidFrameError) and "Connection.Close" in str(error):
        return LinkRefused(  # the client drops what the server says here
            f"RabbitMQ at {place} has no virtual host {address.vhost}, or not for this user"
        )
    if isinstance(cause, TimeoutError):
        return LinkLost(f"RabbitMQ at {place} cannot be reached: no answer in time")
    if isinstance(cause, OSError):
        return LinkLost(f"RabbitMQ at {place} cannot be reached: {cause.strerror or cause}")
    return LinkLost(f"RabbitMQ at {place} cannot be reached: {type(cause).__name__}")


def told(error: BaseException | None) -> str:
    """Return what the server said in closing, which quotes names and no payload."""
    texts = [one for one in error.args if isinstance(one, str)] if error is not None else []
    return texts[-1] if texts and isinstance(error, AMQPError) else ""


def _text(error: BaseException | None) -> str:
    text = told(error)
    return f": {text}" if text else ""


def _said(task: asyncio.Task[object]) -> Said:
    if not task.done() or task.cancelled():
        return SILENCE
    error = task.exception()
    match error:
        case None:
            return CONFIRMED
        case PublishError():
            return Said(code=UNROUTABLE, text="no queue is bound for this routing key")
        case DeliveryError():
            return Said(code="nack", text="refused: a queue is full, or has no leader")
        case ChannelNotFoundEntity():
            return Said(code=NO_EXCHANGE, text="there is no such exchange")
        case _:
            return SILENCE


async def _close(connection: aiormq.Connection, seconds: float = CLOSE_SECONDS) -> None:
    with contextlib.suppress(OSError, AMQPError, TimeoutError, RuntimeError, AttributeError):
        async with asyncio.timeout(seconds):
            await connection.close()
