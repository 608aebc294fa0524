"""A queue whose client may fail in ways that nobody foresaw, without ending the process.

A broker is a hint, and so is its client: whatever it raises means that there is no broker now, and
the ledger is asked instead. The connection that failed is given up, since nothing is known of its
state, and the next call has another.

*Invariants*: only `QueueAway` gets out of a call. *Not here*: trouble that an adapter knows and
names itself; trouble of the ledger, which never passes through here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from freehold.domain.errors import QueueAway
from freehold.domain.messages import Message
from freehold.ports.queue import Delivery, Disposition, Queue

T = TypeVar("T")


class SturdyQueue:
    """Implements `ports.queue.Queue` over connections of one adapter.

    Args:
        connect: opens a connection, here and after each failure.

    Raises:
        UsageError: as `connect` says, the first time.
    """

    def __init__(self, connect: Callable[[], Queue]) -> None:
        self._connect = connect
        self._queue: Queue | None = connect()

    def publish(self, messages: Sequence[Message]) -> Sequence[bool]:
        """Publish, or say that there is no broker."""
        return self._ask(lambda queue: queue.publish(messages))

    def receive(self, max_count: int, wait_seconds: float) -> Sequence[Delivery]:
        """Receive, or say that there is no broker."""
        return self._ask(lambda queue: queue.receive(max_count, wait_seconds))

    def settle(self, deliveries: Sequence[Delivery], disposition: Disposition) -> None:
        """Settle; what a failed connection handed over comes again and is passed over."""
        self._ask(lambda queue: queue.settle(deliveries, disposition))

    def depth(self) -> int | None:
        """Count, or say that there is no broker."""
        return self._ask(lambda queue: queue.depth())

    def close(self) -> None:
        """End the connection, whatever its state."""
        queue, self._queue = self._queue, None
        if queue is not None:
            with suppress(Exception):
                queue.close()

    def _ask(self, act: Callable[[Queue], T]) -> T:
        try:
            if self._queue is None:
                self._queue = self._connect()
            return act(self._queue)
        except QueueAway:
            raise
        except Exception as error:
            self.close()
            name = type(error).__name__
            raise QueueAway(f"the client of the broker failed: {name}") from error
