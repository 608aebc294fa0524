"""The queue of hints over a work-queue stream of JetStream and one durable pull consumer.

*Invariants*: a message leaves the stream only when it was acknowledged, or after its copy among the
dead letters was confirmed; what a lost connection handed over is forgotten, since JetStream hands it
over again.

A repeat is never dropped: every call of `publish` names its messages anew in `Nats-Msg-Id`, so that
JetStream drops what this call itself sends twice, after a connection was lost under it, and nothing
else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from nats.aio.msg import Msg
from nats.js.api import Header

from freehold.adapters.nats.client import LinkLost, LinkRefused
from freehold.adapters.nats.line import ROUNDS, Line
from freehold.adapters.nats.link import (
    NOBODY,
    PIPELINE_MOST,
    REQUEST_SECONDS,
    Link,
    Post,
    Pull,
)
from freehold.adapters.nats.topology import (
    SECOND,
    WORKER,
    dead_stream,
    declare_consumer,
    declare_stream,
    hints_stream,
    worker,
)
from freehold.domain.errors import QueueAway, QueueUnfit
from freehold.domain.messages import Message, read_message, write_message
from freehold.looping import LoopThread
from freehold.ports.queue import Delivery, Disposition

T = TypeVar("T")

# Twice the lease of a batch (`application.work`): whoever still has a message then is dead or stuck.
# A killed worker's messages come again after it, and the dispatcher's sweep is sooner.
ACK_WAIT_SECONDS = 120.0
# JetStream bounds what all workers together hold, so that a killed one must not use it up alone.
WORKERS_MOST = 20
# Of a request "without waiting": a consumer at its bound of unsettled messages does not answer it at
# all, and with an end of its own it waits for that end even when nothing is there. Measured with
# nats-server 2.15.1.
BLOCKED_SECONDS = 0.5
# How much later than promised a waiting request may be ended, which JetStream always does: after
# that the server is gone.
LATE_SECONDS = 2.0
GRACE_SECONDS = 1.0  # between the bounds inside the loop and the one outside, which is the last
SETTLE_SECONDS = 5.0
REQUESTS_MOST = 6  # to declare two streams and a consumer, each looked up and made
NAK, ACK = b"-NAK", b"+ACK"


@dataclass(frozen=True, slots=True)
class _Taken:
    """The receipt of a delivery: where to settle it, and its bytes, which a dead letter keeps."""

    reply: str
    body: bytes


class NatsQueue:
    """One connection; implements `ports.queue.Queue`."""

    def __init__(
        self,
        *,
        url: str,
        name: str,
        ca_file: str | None = None,
        prefetch: int = 2_000,
        confirm_seconds: float = 10.0,
        replicas: int = 1,
        ack_wait_seconds: float = ACK_WAIT_SECONDS,
    ) -> None:
        self._name = name
        self._prefetch = prefetch
        self._confirm_seconds = confirm_seconds
        self._replicas = replicas
        self._ack_wait_seconds = ack_wait_seconds
        self._loop = LoopThread("nats-queue")
        self._line = Line(url, ca_file, self._declare, REQUESTS_MOST, self._forget)
        self._unsettled: dict[str, _Taken] = {}
        self._known_waiting = 1  # as the last message told; 1: perhaps
        self._published_count = 0
        self._untold: QueueUnfit | None = None  # a right that settling lacked

    # ------------------------------------------------------------------------------------ the port

    def publish(self, messages: Sequence[Message]) -> Sequence[bool]:
        """Send messages and wait for JetStream's confirms."""
        bodies = [write_message(message) for message in messages]
        ids = [f"{one.operation_id}.{one.attempt}" for one in messages]
        slices = 1 + len(messages) // PIPELINE_MOST
        return self._run(self._publish(ids, bodies), ROUNDS * slices * self._confirm_seconds)

    def receive(self, max_count: int, wait_seconds: float) -> Sequence[Delivery]:
        """Pull what is there, or wait for one; tells first what `settle` may not."""
        if self._untold is not None:
            untold, self._untold = self._untold, None
            raise untold
        seconds = ROUNDS * (wait_seconds + 3 * LATE_SECONDS)
        return self._run(self._line.twice(lambda: self._receive(max_count, wait_seconds)), seconds)

    def settle(self, deliveries: Sequence[Delivery], disposition: Disposition) -> None:
        """Tell JetStream; what is not known any more is passed over."""
        known = [self._unsettled.pop(_reply(one), None) for one in deliveries]
        taken = [one for one in known if one is not None]
        if taken:
            try:
                self._run(self._settle(taken, disposition), 2 * SETTLE_SECONDS, may_open=False)
            except QueueUnfit as error:
                self._untold = error
            except QueueAway:
                pass  # they come again

    def depth(self) -> int | None:
        """Return what the consumer has not been handed yet."""
        return self._run(self._line.twice(self._depth), ROUNDS * REQUEST_SECONDS)

    def close(self) -> None:
        """Put back what was not settled, and end the connection."""
        taken, self._unsettled = list(self._unsettled.values()), {}
        try:
            if self._line.link is not None:
                self._run(self._leave(taken), 2 * SETTLE_SECONDS, may_open=False)
        except QueueAway:
            pass
        finally:
            self._loop.stop()
            self._line.link = None

    # ----------------------------------------------------------------------------- the connection

    def _run(self, work: Coroutine[Any, Any, T], seconds: float, *, may_open: bool = True) -> T:
        """Run on the loop, bounded; what goes wrong with the link is told in the port's words."""
        opening = ROUNDS * self._line.opening_seconds
        try:
            return self._loop.run(work, seconds + GRACE_SECONDS + (opening if may_open else 0.0))
        except LinkRefused as error:
            raise QueueUnfit(str(error)) from None
        except LinkLost as error:
            raise QueueAway(str(error)) from None
        except TimeoutError:
            raise QueueAway("NATS did not answer in time") from None

    async def _declare(self, link: Link) -> None:
        await declare_stream(
            link, hints_stream(self._name, self._replicas), ("subjects", "storage", "retention")
        )
        await declare_stream(
            link, dead_stream(self._name, self._replicas), ("subjects", "storage", "retention")
        )
        ack_pending = self._prefetch * WORKERS_MOST
        await declare_consumer(
            link, self._name, worker(WORKER, self._ack_wait_seconds, ack_pending)
        )

    def _forget(self) -> None:
        """Forget what a lost connection handed over."""
        self._unsettled.clear()
        self._known_waiting = 1

    # --------------------------------------------------------------------------------- publishing

    async def _publish(self, ids: Sequence[str], bodies: Sequence[bytes]) -> list[bool]:
        link = await self._line.ready()
        self._published_count += 1
        call = f"{link.identity}.{self._published_count}"
        posts = [
            Post(f"{self._name}.ready", body, {Header.MSG_ID.value: f"{one}.{call}.{place}"})
            for place, (one, body) in enumerate(zip(ids, bodies, strict=True))
        ]
        said = await self._line.publish(posts, self._confirm_seconds)
        return [one.is_confirmed for one in said]

    # ---------------------------------------------------------------------------------- receiving

    async def _receive(self, max_count: int, wait_seconds: float) -> list[Delivery]:
        link = await self._line.ready()
        count = min(max_count, self._prefetch - len(self._unsettled))
        if count <= 0:
            await asyncio.sleep(wait_seconds)
            return []
        messages, link.late = link.late[:count], link.late[count:]
        if not messages and (self._known_waiting or wait_seconds <= 0):
            messages = await self._pull(count, None)
        if not messages and wait_seconds > 0:
            messages = await self._pull(1, wait_seconds)
            if messages and count > 1 and self._more_may_wait(messages[-1]):
                messages += await self._pull(count - 1, None)
        if messages:
            self._known_waiting = self._more_may_wait(messages[-1])
        return [self._delivery(message) for message in messages]

    async def _pull(self, count: int, wait_seconds: float | None) -> list[Msg]:
        """Ask for messages: at once, or for the first that comes in time."""
        for _ in range(ROUNDS):
            link = await self._line.ready()
            pull = await self._pull_over(link, count, wait_seconds)
            if pull.messages or not self._must_declare(pull):
                return pull.messages
            self._line.is_declared = False
        raise LinkLost(f"NATS gives out no messages of {self._name} at the moment")

    async def _pull_over(self, link: Link, count: int, wait_seconds: float | None) -> Pull:
        subject = f"CONSUMER.MSG.NEXT.{self._name}.{WORKER}"
        if wait_seconds is None:
            return await link.pull(subject, {"batch": count, "no_wait": True}, BLOCKED_SECONDS)
        fields = {"batch": count, "expires": int(wait_seconds * SECOND)}
        pull = await link.pull(subject, fields, wait_seconds + LATE_SECONDS)
        if not pull.ended.done() and not pull.messages:
            await self._line.drop()
            raise LinkLost(f"NATS at {link.place} did not answer in time")
        return pull

    def _must_declare(self, pull: Pull) -> bool:
        """Tell whether the request ended because the consumer or its stream is gone."""
        status = pull.ended.result() if pull.ended.done() else None
        return status in {NOBODY, "409"}

    def _more_may_wait(self, message: Msg) -> int:
        """Return how many waited behind a message; of what comes again JetStream does not tell."""
        again, waiting = _counts(message.reply)
        return waiting or int(again)

    def _delivery(self, message: Msg) -> Delivery:
        taken = _Taken(message.reply, message.data)
        self._unsettled[message.reply] = taken
        again, _ = _counts(message.reply)
        return Delivery(read_message(message.data), taken, again)

    # ----------------------------------------------------------------------------------- settling

    async def _settle(self, taken: Sequence[_Taken], disposition: Disposition) -> None:
        link = self._line.link
        if link is None or link.is_lost:
            return
        if disposition is Disposition.DEAD_LETTER:
            taken = await self._set_aside(link, taken)
        word = NAK if disposition is Disposition.RETRY else ACK
        await self._tell(link, [one.reply for one in taken], word)
        if disposition is Disposition.RETRY:
            self._known_waiting = 1

    async def _set_aside(self, link: Link, taken: Sequence[_Taken]) -> list[_Taken]:
        """Copy to the dead letters; return what is safe there. The rest comes again by itself.

        A copy is named by its hand-over, so that a second one of the same message is dropped.
        """
        posts = [
            Post(f"{self._name}.dead", one.body, {Header.MSG_ID.value: _place(one.reply)})
            for one in taken
        ]
        said = await link.publish(posts, SETTLE_SECONDS)
        if any(one.code == NOBODY for one in said):
            self._line.is_declared = False
        return [one for one, answer in zip(taken, said, strict=True) if answer.is_confirmed]

    async def _tell(self, link: Link, replies: Sequence[str], word: bytes) -> None:
        """Send all words at once; JetStream answers the last, and hears them in order."""
        if replies:
            await link.tell(replies[:-1], word)
            await link.publish([Post(replies[-1], word)], SETTLE_SECONDS)

    async def _leave(self, taken: Sequence[_Taken]) -> None:
        link = self._line.link
        if link is not None and not link.is_lost:
            late = [message.reply for message in link.late]
            await self._tell(link, [*(one.reply for one in taken), *late], NAK)
        await self._line.drop()

    async def _depth(self) -> int:
        link = await self._line.ready()
        answer = await link.request(f"CONSUMER.INFO.{self._name}.{WORKER}", {})
        if "error" in answer:
            self._line.is_declared = False
            await self._line.ready()
            return 0
        return int(answer["num_pending"])


def _reply(delivery: Delivery) -> str:
    receipt = delivery.receipt
    return receipt.reply if isinstance(receipt, _Taken) else ""


def _counts(reply: str) -> tuple[bool, int]:
    """Return whether a message came before, and how many wait behind it, from its reply subject.

    Source: JetStream's ADR-15, `$JS.ACK.[DOMAIN.ACCOUNT.]STREAM.CONSUMER.DELIVERED.....PENDING`.
    """
    tokens = reply.split(".")
    shift = 0 if len(tokens) == 9 else 2  # noqa: PLR2004 - the older form
    return int(tokens[4 + shift]) > 1, int(tokens[8 + shift])


def _place(reply: str) -> str:
    """Return stream and number of the message, the same at each hand-over."""
    tokens = reply.split(".")
    shift = 0 if len(tokens) == 9 else 2  # noqa: PLR2004 - the older form
    return f"{tokens[2 + shift]}.{tokens[5 + shift]}.{tokens[7 + shift]}"
