"""How ready operations reach a worker: a hint that names work, never the work itself.

*Invariants*: losing every message costs latency only; a message never carries tokens or fence.
*Not here*: what a message says and how its bytes are read (`domain.messages`); retries, attempts,
due times and dead letters of operations, which stay in the ledger. The ledger itself needs no
adapter of this port: without a broker workers claim from it directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from freehold.domain.messages import Message, Unreadable


@dataclass(frozen=True, slots=True)
class Delivery:
    """One hand-over of one message.

    Attributes:
        receipt: means something to the connection alone that handed it over.
        redelivered: True when the queue knows that it was handed over before; False says nothing.
    """

    message: Message | Unreadable
    receipt: object
    redelivered: bool = False


class Disposition(StrEnum):
    """What the queue is told about a delivery."""

    ACK = "ack"
    RETRY = "retry"
    DEAD_LETTER = "dead letter"


class Queue(Protocol):
    """One connection to a queue of hints, batch by batch; pulled, never pushed.

    Belongs to one thread. Order is not promised, delivery is at least once, and what is lost the
    dispatcher publishes again. A lost connection is opened again by the next call that needs one.
    """

    def publish(self, messages: Sequence[Message]) -> Sequence[bool]:
        """Send messages and wait for their confirms, for a bounded time.

        A repeat is never dropped as a duplicate: it is there because its forerunner may be lost.

        Returns:
            One flag a message, in order: True only when the queue confirmed it. False when it
            refused, found no way, or did not answer in time; then the message may have arrived.

        Raises:
            QueueAway: there is no connection; nothing was confirmed.
        Again: publishes once more; consumers must bear repeats.
        Crash: before return any subset may have arrived.
        """
        ...

    def receive(self, max_count: int, wait_seconds: float) -> Sequence[Delivery]:
        """Take at most `max_count` deliveries, waiting at most `wait_seconds` for the first.

        What is taken goes to nobody else until it is settled, this connection ends, or the queue's
        own time limit passes. A queue may bound how much one connection holds unsettled, and then
        gives no more. A payload that cannot be read arrives as `Unreadable` and stops nothing.

        Returns:
            As soon as there is one, what is there; empty when nothing came in time.

        Raises:
            QueueAway: there is no connection.
        Crash: the queue hands over again what was not settled, marked as redelivered.
        """
        ...

    def settle(self, deliveries: Sequence[Delivery], disposition: Disposition) -> None:
        """Tell the queue what became of deliveries.

        ACK takes them out; RETRY puts them back at once, for anybody, though a queue may give up
        on what comes back too often; DEAD_LETTER takes them out and keeps them aside where the
        queue can. Deliveries of a lost connection are passed over: they come again anyway.

        Again: a second settlement of one delivery changes nothing.
        Crash: before return the queue may hand them over again.
        """
        ...

    def depth(self) -> int | None:
        """Return about how many messages wait, unsettled ones left out; None when it cannot tell.

        Raises:
            QueueAway: there is no connection.
        """
        ...

    def close(self) -> None:
        """End the connection; what was not settled goes back. A second call does nothing."""
        ...
