"""One line of work over the faulty queue: scanner, dispatcher and two handlers over one ledger."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehold.adapters.system import Onwards, StopRequest
from freehold.application.deliveries import Handler, HandleResult
from freehold.application.dispatch import Dispatcher
from freehold.application.scan import Scanner
from freehold.application.work import Worker
from freehold.domain.errors import QueueAway
from freehold.domain.messages import Message
from freehold.ports.ledger import RuleCondition, RuleState
from freehold.testing.clock import SteadyDice
from freehold.testing.contracts.ground import NOW, SECOND, enqueue, new_operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehold.domain.rules import Rule
    from freehold.ports.queue import Delivery
    from freehold.testing.contracts.ground import Ground
    from freehold.testing.faulty_queue import FaultyBroker, FaultyQueue


@dataclass
class Line:
    """One scanner, dispatcher and handlers over one broker."""

    ground: Ground
    broker: FaultyBroker
    rule: Rule

    def __post_init__(self) -> None:
        ledger = self.ground.open()
        self.scanner = Scanner(ledger, Onwards())
        self.dispatcher = self.other_dispatcher()
        self.handlers = [self.handler(self.broker.connect()) for _ in range(2)]
        self.released = 0

    def other_dispatcher(self) -> Dispatcher:
        return Dispatcher(self.ground.open(), self.broker.connect(), Onwards())

    def handler(self, queue: FaultyQueue) -> Handler:
        worker = Worker(self.ground.open(), Onwards(), SteadyDice(), StopRequest())
        return Handler(worker, queue, {self.rule.name: self.rule})

    def find(self, *keys: int) -> None:
        for key in keys:
            self.ground.back.add_hold(key, NOW - SECOND)
        self.scanner.scan(self.rule)

    def handle(self, max_count: int = 50) -> HandleResult:
        return self.handlers[0].handle(max_count, 0)

    def find_of(self, rule: Rule, *keys: int) -> None:
        """Write operations of another rule, for holds that are not there."""
        with self.ground.open().transaction() as tx:
            tx.rules.write(RuleState(rule.name, rule.fingerprint, RuleCondition.ACTIVE))
        enqueue(self.ground.open(), *(new_operation(rule.name, key) for key in keys))

    def round_at(self, second: int) -> None:
        """Go round once, so many seconds after the beginning."""
        self.ground.set_now(NOW + second * SECOND)
        with suppress(QueueAway):
            while self.dispatcher.dispatch(self.rule).published_count:
                pass
        for handler in self.handlers:
            with suppress(QueueAway):
                self.released += handler.handle(50, 0).batch.released_count


def messages_of(deliveries: Sequence[Delivery]) -> list[Message]:
    return [one.message for one in deliveries if isinstance(one.message, Message)]
