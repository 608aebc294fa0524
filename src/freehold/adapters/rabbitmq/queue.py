"""The queue of hints over a quorum queue of RabbitMQ, NAME, with its dead letters in NAME.dead.

*Invariants*: a message is confirmed only when a quorum has it on disk; it leaves the queue only when
it was acknowledged, or once NAME.dead has confirmed it; what a lost connection handed over is
forgotten, since RabbitMQ hands it over again.

RabbitMQ knows no repeats: what a lost connection kept back is sent once more, and may be there twice.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from aiormq.abc import DeliveredMessage
from aiormq.exceptions import AMQPError, ChannelAccessRefused, ChannelNotFoundEntity
from pamqp.commands import Basic

from freehold.adapters.rabbitmq.address import read_address
from freehold.adapters.rabbitmq.line import ROUNDS, Line
from freehold.adapters.rabbitmq.link import (
    CLOSE_SECONDS,
    PIPELINE_MOST,
    REQUEST_SECONDS,
    UNROUTABLE,
    Link,
    LinkLost,
    LinkRefused,
    Post,
    refused,
    told,
)
from freehold.adapters.rabbitmq.topology import (
    dead_arguments,
    dead_name,
    declare_queue,
    hints_arguments,
)
from freehold.domain.errors import QueueAway, QueueUnfit
from freehold.domain.messages import Message, read_message, write_message
from freehold.looping import LoopThread
from freehold.ports.queue import Delivery, Disposition

T = TypeVar("T")

CONTENT_TYPE = "application/json"
TYPE = "ExpireHold"
FIRST_SECONDS = 0.2  # a new consumer is given what waits a moment after it was promised
GRACE_SECONDS = 1.0  # between the bounds inside the loop and the one outside, which is the last


@dataclass(frozen=True, slots=True)
class _Taken:
    """The receipt of a delivery: its number, which means something on its own link alone."""

    link: Link
    tag: int


class RabbitQueue:
    """One connection; implements `ports.queue.Queue`."""

    def __init__(
        self,
        *,
        url: str,
        name: str,
        ca_file: str | None = None,
        prefetch: int = 2_000,
        confirm_seconds: float = 10.0,
    ) -> None:
        self._name = name
        self._prefetch = prefetch
        self._confirm_seconds = confirm_seconds
        self._loop = LoopThread("rabbitmq-queue")
        self._line = Line(
            read_address(url, ca_file), self._declare, self._forget, may_be_gone={UNROUTABLE}
        )
        self._unsettled: dict[int, None] = {}  # tags that were given out, in the order they came

    # ------------------------------------------------------------------------------------ the port

    def publish(self, messages: Sequence[Message]) -> Sequence[bool]:
        """Send messages and wait for RabbitMQ's confirms."""
        posts = [self._post(place, one) for place, one in enumerate(messages)]
        slices = 1 + len(messages) // PIPELINE_MOST
        seconds = slices * (self._confirm_seconds + CLOSE_SECONDS)
        said = self._run(self._line.publish(posts, self._confirm_seconds), ROUNDS * seconds)
        return [one.is_confirmed for one in said]

    def receive(self, max_count: int, wait_seconds: float) -> Sequence[Delivery]:
        """Take what was pushed, or wait for one."""
        seconds = ROUNDS * (wait_seconds + FIRST_SECONDS + 3 * REQUEST_SECONDS)
        work = self._line.twice(lambda: self._receive(max_count, wait_seconds))
        link, messages = self._run(work, seconds)
        return [_delivery(link, one) for one in messages]

    def settle(self, deliveries: Sequence[Delivery], disposition: Disposition) -> None:
        """Tell RabbitMQ; what is not known any more is passed over."""
        taken = [one.receipt for one in deliveries if isinstance(one.receipt, _Taken)]
        if taken and self._line.link is not None:
            try:
                self._run(self._settle(taken, disposition), REQUEST_SECONDS, may_open=False)
            except QueueAway:
                self._run(self._line.drop(), CLOSE_SECONDS, may_open=False)  # they come again

    def depth(self) -> int | None:
        """Return what waits in the queue and was pushed to nobody."""
        return self._run(self._line.twice(self._depth), ROUNDS * REQUEST_SECONDS)

    def close(self) -> None:
        """End the connection, upon which RabbitMQ puts back what was not settled."""
        try:
            if self._line.link is not None:
                self._run(self._line.drop(), CLOSE_SECONDS, may_open=False)
        except QueueAway:
            self._line.link = None
        finally:
            self._loop.stop()

    # ----------------------------------------------------------------------------- the connection

    def _run(self, work: Coroutine[Any, Any, T], seconds: float, *, may_open: bool = True) -> T:
        """Run on the loop, bounded; what goes wrong with the link is told in the port's words."""
        opening = ROUNDS * self._line.opening_seconds if may_open else 0.0
        try:
            return self._loop.run(work, seconds + opening + GRACE_SECONDS)
        except LinkRefused as error:
            raise QueueUnfit(str(error)) from None
        except LinkLost as error:
            raise QueueAway(str(error)) from None
        except TimeoutError:
            raise QueueAway("RabbitMQ did not answer in time") from None

    async def _declare(self, link: Link) -> None:
        await declare_queue(link, dead_name(self._name), dead_arguments())
        await declare_queue(link, self._name, hints_arguments(self._name))

    def _forget(self) -> None:
        self._unsettled.clear()

    # ------------------------------------------------------------------------ what the loop does

    def _post(self, place: int, message: Message) -> Post:
        name = f"{message.operation_id}.{message.attempt}.{place}"
        return Post("", self._name, name, write_message(message), CONTENT_TYPE, TYPE)

    async def _receive(
        self, max_count: int, wait_seconds: float
    ) -> tuple[Link, list[DeliveredMessage]]:
        link = await self._line.ready()
        if not link.consumes:
            await self._consume(link)
            wait_seconds = max(wait_seconds, FIRST_SECONDS)
        await link.wait(wait_seconds, max_count)
        if not link.consumes:
            raise link.lost()
        messages = [link.arrived.popleft() for _ in range(min(max_count, len(link.arrived)))]
        self._unsettled.update((_tag(one), None) for one in messages)
        return link, messages

    async def _consume(self, link: Link) -> None:
        try:
            await link.consume(self._name, self._prefetch)
        except ChannelAccessRefused as error:
            raise refused(link.place, error) from None
        except AMQPError as error:
            raise LinkLost(
                f"RabbitMQ at {link.place} gives out no messages: {told(error)}"
            ) from None

    async def _settle(self, taken: Iterable[_Taken], disposition: Disposition) -> None:
        link = self._line.link
        tags = {one.tag for one in taken if one.link is link} & self._unsettled.keys()
        if link is None or link.is_lost or not tags:
            return
        runs = list(_runs(self._unsettled, tags))
        for tag in tags:
            del self._unsettled[tag]
        is_ack, is_retry = disposition is Disposition.ACK, disposition is Disposition.RETRY
        await link.settle(runs, ack=is_ack, requeue=is_retry)

    async def _depth(self) -> int:
        link = await self._line.ready()
        try:
            return await link.count(self._name)
        except ChannelNotFoundEntity:
            await self._line.drop()
            await self._line.ready()
            return 0
        except AMQPError as error:
            raise LinkLost(f"RabbitMQ at {link.place} does not count: {told(error)}") from None


def _runs(unsettled: Iterable[int], tags: set[int]) -> Iterable[tuple[int, bool]]:
    """Yield settlements: all up to a number at once where nothing else lies before it, then singly."""
    last = None
    for tag in unsettled:
        if tag not in tags:
            break
        last = tag
    if last is not None:
        yield last, True
    for tag in sorted(tags):
        if last is None or tag > last:
            yield tag, False


def _delivery(link: Link, message: DeliveredMessage) -> Delivery:
    method = message.delivery
    again = isinstance(method, Basic.Deliver) and bool(method.redelivered)
    return Delivery(read_message(message.body), _Taken(link, _tag(message)), again)


def _tag(message: DeliveredMessage) -> int:
    return int(message.delivery_tag or 0)
