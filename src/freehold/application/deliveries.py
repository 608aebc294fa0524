"""Deliveries: the messages of a queue, handled a batch a rule, and settled after the commit.

*Invariants*: a delivery is settled only after the ledger has committed what came of it; a message
is believed only as far as the ledger confirms it; retries stay in the ledger, so that every
handled delivery is acknowledged, whatever became of its hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from freehold.application.release import BatchResult
from freehold.application.work import PassEnd, Worker
from freehold.domain.errors import DatabaseError
from freehold.domain.messages import Message, Unreadable
from freehold.domain.rules import Rule
from freehold.ports.queue import Delivery, Disposition, Queue


@dataclass(slots=True)
class HandleResult:
    """What became of one batch of deliveries.

    Attributes:
        passed_over_count: messages whose operation has ended, is in other hands or not due again,
            or whose rule may not work or is unknown here; the ledger knows what is left to do.
    """

    delivered_count: int = 0
    redelivered_count: int = 0
    unreadable_count: int = 0
    passed_over_count: int = 0
    batch: BatchResult = field(default_factory=BatchResult)


@dataclass(slots=True)
class Handler:
    """Handles deliveries with one worker and one queue connection.

    Attributes:
        on_unreadable: told of each payload that is no message, before it is set aside.
    """

    worker: Worker
    queue: Queue
    rules: Mapping[str, Rule]
    on_unreadable: Callable[[Unreadable], None] = lambda _: None

    def handle(self, max_count: int, wait_seconds: float) -> HandleResult:
        """Take a batch of deliveries as far as it goes.

        Raises:
            QueueAway: the broker cannot be reached; nothing is lost, try again later.
            DatabaseError: the database is away or busy; the deliveries went back to the queue.
        Crash: the queue hands over again what was not settled; what had committed is then passed
            over.
        """
        deliveries = self.queue.receive(max_count, wait_seconds)
        result = HandleResult(
            delivered_count=len(deliveries),
            redelivered_count=sum(one.redelivered for one in deliveries),
        )
        self._set_aside(deliveries, result)
        waiting = _by_rule(deliveries)
        try:
            for name in list(waiting):
                self._handle_rule(name, waiting[name], result)
                self.queue.settle(waiting.pop(name), Disposition.ACK)
        except DatabaseError:
            left = [one for part in waiting.values() for one in part]
            self.queue.settle(left, Disposition.RETRY)
            raise
        return result

    def _set_aside(self, deliveries: Sequence[Delivery], result: HandleResult) -> None:
        unreadable = [one for one in deliveries if isinstance(one.message, Unreadable)]
        for one in unreadable:
            if isinstance(one.message, Unreadable):
                self.on_unreadable(one.message)
        self.queue.settle(unreadable, Disposition.DEAD_LETTER)
        result.unreadable_count = len(unreadable)

    def _handle_rule(self, name: str, deliveries: Sequence[Delivery], result: HandleResult) -> None:
        """Work off what the ledger confirms, in batches of the rule's own size."""
        named = {
            one.message.operation_id: one.message.operation_key
            for one in deliveries
            if isinstance(one.message, Message)
        }
        claimed = self._work(self.rules.get(name), named, result)
        result.passed_over_count += len(deliveries) - claimed

    def _work(self, rule: Rule | None, named: Mapping[int, str], result: HandleResult) -> int:
        claimed = 0
        while rule is not None and claimed < len(named):
            one = self.worker.work_these(rule, named)
            if one.end is not PassEnd.WORKED or one.claimed_count == 0:
                break
            claimed += one.claimed_count
            result.batch.add(one.batch)
        return claimed


def _by_rule(deliveries: Sequence[Delivery]) -> dict[str, list[Delivery]]:
    parts: dict[str, list[Delivery]] = {}
    for one in deliveries:
        if isinstance(one.message, Message):
            parts.setdefault(one.message.rule, []).append(one)
    return parts
