"""Deliveries: the messages of a queue, handled a batch a rule, and settled after the commit.

*Invariants*: a delivery is settled only after the ledger has committed what came of it, a payload
that nobody can read included; a message is believed only as far as the ledger confirms it; retries
stay in the ledger, so that every handled delivery is acknowledged, whatever became of its hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from freehold.application.release import BatchResult
from freehold.application.repeat import repeated
from freehold.application.work import PassEnd, Worker
from freehold.domain.errors import DatabaseError
from freehold.domain.messages import Message, Unreadable
from freehold.domain.rules import Rule
from freehold.ports.queue import Delivery, Disposition, Queue
from freehold.ports.strays import DeliveryCounts
from freehold.ports.system import Boundary


@dataclass(slots=True)
class HandleResult:
    """What became of one batch of deliveries.

    Attributes:
        passed_over_count: messages whose operation has ended, is in other hands or not due again,
            or whose rule may not work or is unknown here, or that mean something else than the
            ledger does; the ledger knows what is left to do.
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
        queue_name: what strays are filed under.
        counts: what was taken, added up.
    """

    worker: Worker
    queue: Queue
    rules: Mapping[str, Rule]
    queue_name: str = "freehold"
    counts: DeliveryCounts = field(default_factory=DeliveryCounts)

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
        if not deliveries:
            return result
        self._reach(Boundary.DELIVERIES_TAKEN)
        try:
            self._handle(deliveries, result)
        finally:
            self._add_up(result)
        return result

    def _handle(self, deliveries: Sequence[Delivery], result: HandleResult) -> None:
        """Handle the parts, each settled for itself; at trouble what is left goes back."""
        unreadable = [one for one in deliveries if isinstance(one.message, Unreadable)]
        waiting = _by_rule(deliveries)
        try:
            self._set_aside(unreadable, result)
            unreadable = []
            for name in list(waiting):
                self._handle_rule(name, waiting[name], result)
                self._settle(waiting.pop(name), Disposition.ACK)
        except DatabaseError:
            left = [one for part in waiting.values() for one in part]
            self.queue.settle([*unreadable, *left], Disposition.RETRY)
            raise

    def _set_aside(self, deliveries: Sequence[Delivery], result: HandleResult) -> None:
        """Write down what nobody can read, and only then take it out of the queue."""
        if not deliveries:
            return
        payloads = [one.message for one in deliveries if isinstance(one.message, Unreadable)]
        tools = self.worker.tools
        repeated(lambda: self._record(payloads), tools.dice, tools.pause)
        result.unreadable_count = len(payloads)
        self._settle(deliveries, Disposition.DEAD_LETTER)

    def _record(self, payloads: Sequence[Unreadable]) -> None:
        with self.worker.tools.ledger.transaction() as tx:
            tx.strays.record(self.queue_name, payloads)

    def _settle(self, deliveries: Sequence[Delivery], disposition: Disposition) -> None:
        self._reach(Boundary.DELIVERIES_HANDLED)
        self.queue.settle(deliveries, disposition)
        self._reach(Boundary.DELIVERIES_SETTLED)

    def _reach(self, boundary: Boundary) -> None:
        self.worker.tools.checkpoint.reach(boundary)

    def _handle_rule(self, name: str, deliveries: Sequence[Delivery], result: HandleResult) -> None:
        """Work off what the ledger confirms, in batches of the rule's own size."""
        named: dict[int, set[str]] = {}
        for one in deliveries:
            if isinstance(one.message, Message):
                # A forged key stands beside the true one, and does not take its place.
                named.setdefault(one.message.operation_id, set()).add(one.message.operation_key)
        claimed = self._work(self.rules.get(name), named, result)
        result.passed_over_count += len(deliveries) - claimed

    def _work(self, rule: Rule | None, named: Mapping[int, set[str]], result: HandleResult) -> int:
        claimed = 0
        while rule is not None and claimed < len(named):
            one = self.worker.work_these(rule, named)
            if one.end is not PassEnd.WORKED or one.claimed_count == 0:
                break
            claimed += one.claimed_count
            result.batch.add(one.batch)
        return claimed

    def _add_up(self, result: HandleResult) -> None:
        self.counts.delivered_count += result.delivered_count
        self.counts.redelivered_count += result.redelivered_count
        self.counts.passed_over_count += result.passed_over_count
        self.counts.unreadable_count += result.unreadable_count


def _by_rule(deliveries: Sequence[Delivery]) -> dict[str, list[Delivery]]:
    parts: dict[str, list[Delivery]] = {}
    for one in deliveries:
        if isinstance(one.message, Message):
            parts.setdefault(one.message.rule, []).append(one)
    return parts
