"""How ready operations reach a worker: a hint that names work, never the work itself.

*Invariants*: losing every message costs latency only; a message never carries tokens or fence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """The command `ExpireHold` as it travels.

    Attributes:
        due_at: the instant that made the hold eligible.
        attempt: the attempt that this delivery is about to make, from 1.
    """

    operation_id: int
    operation_key: str
    rule: str
    hold_key: str
    due_at: datetime
    attempt: int
    trace_context: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One hand-over of one message; `receipt` means something to its queue alone."""

    message: Message
    receipt: object
    redelivered: bool = False


class Disposition(StrEnum):
    """What the queue is told about a delivery."""

    ACK = "ack"
    RETRY = "retry"
    DEAD_LETTER = "dead letter"


class Queue(Protocol):
    """A queue of hints, batch by batch; pulled, never pushed.

    Order is not promised, delivery is at least once.
    """

    def publish(self, messages: Sequence[Message]) -> Sequence[bool]:
        """Send messages and wait for their confirms.

        Returns:
            One flag a message, in order: True only when the queue confirmed it.
        Again: publishes once more; consumers must bear repeats.
        Crash: before return any subset may have arrived.
        """
        ...

    def receive(self, max_count: int, wait_seconds: float) -> Sequence[Delivery]:
        """Take at most `max_count` deliveries, waiting at most `wait_seconds` for the first."""
        ...

    def settle(self, deliveries: Sequence[Delivery], disposition: Disposition) -> None:
        """Tell the queue what became of deliveries.

        Again: a second settlement of one delivery changes nothing.
        Crash: before return the queue hands them over again.
        """
        ...
