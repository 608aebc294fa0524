"""Ready operations over a queue: whatever the queue loses or repeats, each hold is released once."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.session import Runner
from freehold.adapters.system import Onwards, StopRequest
from freehold.application.deliveries import Handler, HandleResult
from freehold.application.dispatch import PUBLISH_AGAIN_AFTER, Dispatcher
from freehold.application.scan import Scanner
from freehold.application.work import Worker
from freehold.domain.errors import DatabaseBusy, QueueAway
from freehold.domain.messages import Message
from freehold.domain.rules import Companion
from freehold.ports.ledger import RuleCondition, RuleState
from freehold.ports.queue import Delivery
from freehold.testing.clock import SteadyDice
from freehold.testing.contracts.ground import NOW, SECOND, raised
from freehold.testing.dice import SeededDice
from freehold.testing.faulty_queue import Faults, FaultyBroker, FaultyQueue
from tests.contract.grounds import ground_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehold.domain.rules import Rule
    from freehold.testing.contracts.ground import Ground

ROUNDS_MAX = 400
ROUND_SECONDS = 5


@dataclass
class Line:
    """One scanner, dispatcher and handlers over one broker."""

    ground: Ground
    broker: FaultyBroker
    rule: Rule

    def __post_init__(self) -> None:
        ledger = self.ground.open()
        self.scanner = Scanner(ledger, Onwards())
        self.dispatcher = Dispatcher(ledger, self.broker.connect())
        self.handlers = [self.handler(self.broker.connect()) for _ in range(2)]
        self.released = 0

    def handler(self, queue: FaultyQueue) -> Handler:
        worker = Worker(self.ground.open(), Onwards(), SteadyDice(), StopRequest())
        return Handler(worker, queue, {self.rule.name: self.rule})

    def find(self, *keys: int) -> None:
        for key in keys:
            self.ground.back.add_hold(key, NOW - SECOND)
        self.scanner.scan(self.rule)

    def handle(self, max_count: int = 50) -> HandleResult:
        return self.handlers[0].handle(max_count, 0)

    def drain(self) -> None:
        """Go round until nothing is open."""
        for number in range(1, ROUNDS_MAX):
            self.ground.set_now(NOW + number * ROUND_SECONDS * SECOND)
            self._round()
            if not self.ground.back.rows("operation"):
                return
        raise AssertionError("operations are still open")

    def _round(self) -> None:
        try:
            self.dispatcher.dispatch(self.rule)
            for handler in self.handlers:
                self.released += handler.handle(7, 0).batch.released_count
        except QueueAway:
            pass


@pytest.fixture
def line(ground: Ground) -> Line:
    return Line(ground, FaultyBroker(), ground.rule)


HARSH = Faults(drop=0.2, duplicate=0.3, late=0.3, reorder=0.5, unconfirmed=0.2, away=0.1, wipe=0.05)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_harsh_queue_loses_and_repeats_nothing(ground: Ground, seed: int) -> None:
    broker = FaultyBroker(SeededDice(seed), HARSH)
    line = Line(ground, broker, replace(ground.rule, batch_size=20))
    keys = range(1, 61)
    line.find(*keys)
    line.drain()
    assert broker.wipe_count > 0
    assert line.released == len(keys)
    assert {ground.back.hold(key)["status"] for key in keys} == {"expired"}  # type: ignore[index]
    for table in ("record", "outbox"):
        count = Counter(row["hold_key"] for row in ground.back.rows(table))
        assert count == {str(key): 1 for key in keys}


def test_a_wiped_broker_costs_latency_only(line: Line) -> None:
    line.find(1, 2)
    assert line.dispatcher.dispatch(line.rule).published_count == 2
    line.broker.wipe()
    assert line.handle().delivered_count == 0
    assert line.dispatcher.dispatch(line.rule).published_count == 0
    line.ground.set_now(NOW + PUBLISH_AGAIN_AFTER)
    assert line.dispatcher.dispatch(line.rule).published_count == 2
    assert line.handle().batch.released_count == 2


def test_what_was_named_is_not_named_again_at_once(line: Line) -> None:
    line.find(1)
    assert line.dispatcher.dispatch(line.rule).published_count == 1
    line.ground.set_now(NOW + SECOND)
    line.find(2)
    assert line.dispatcher.dispatch(line.rule).published_count == 1
    assert len(line.broker.waiting) == 2


def test_a_transaction_that_commits_late_is_named_too(line: Line) -> None:
    line.find(1)
    line.ground.set_now(NOW + SECOND)
    line.dispatcher.dispatch(line.rule)
    line.ground.set_now(NOW)
    line.find(2)
    line.ground.set_now(NOW + 2 * SECOND)
    assert line.dispatcher.dispatch(line.rule).published_count == 1


def test_what_was_not_confirmed_is_named_again_at_once(line: Line) -> None:
    line.find(1, 2)
    line.broker.faults = Faults(unconfirmed=1.0)
    result = line.dispatcher.dispatch(line.rule)
    assert (result.published_count, result.unconfirmed_count) == (0, 2)
    line.broker.faults = Faults()
    assert line.dispatcher.dispatch(line.rule).published_count == 2


def test_a_queue_that_is_led_far_enough_gets_no_more(line: Line) -> None:
    small = replace(line.rule, batch_size=1)
    line.find(*range(1, 31))
    for _ in range(20):
        assert line.dispatcher.dispatch(small).published_count == 1
    assert line.dispatcher.dispatch(small).is_full
    line.handle(1)
    assert line.dispatcher.dispatch(small).published_count == 1


def test_a_paused_rule_is_not_named_and_its_messages_wait_in_the_ledger(line: Line) -> None:
    line.find(1)
    line.dispatcher.dispatch(line.rule)
    with line.ground.open().transaction() as tx:
        tx.rules.write(RuleState("r", line.rule.fingerprint, RuleCondition.PAUSED, "why"))
    result = line.handle()
    assert (result.passed_over_count, result.batch.total) == (1, 0)
    line.ground.set_now(NOW + PUBLISH_AGAIN_AFTER)
    assert line.dispatcher.dispatch(line.rule).published_count == 0
    assert len(line.ground.back.rows("operation")) == 1


def test_a_failed_hold_is_acknowledged_and_named_again_when_its_retry_is_due(line: Line) -> None:
    line.find(1)
    line.ground.back.refuse_changes()
    line.dispatcher.dispatch(line.rule)
    assert line.handle().delivered_count == 1
    assert line.broker.waiting == []
    assert line.ground.back.rows("operation")[0]["state"] == "retrying"
    line.ground.set_now(NOW + 5 * SECOND)
    assert line.dispatcher.dispatch(line.rule).published_count == 0
    line.ground.set_now(NOW + 10 * SECOND)
    assert line.dispatcher.dispatch(line.rule).published_count == 1
    (message,) = _messages(line.broker.connect().receive(1, 0))
    assert message.attempt == 2


def test_a_redelivery_after_the_commit_is_passed_over(line: Line) -> None:
    line.find(1)
    line.dispatcher.dispatch(line.rule)
    deaf = line.broker.connect()
    deaf.settle = lambda *_: None  # type: ignore[method-assign] # its acknowledgement is lost
    assert line.handler(deaf).handle(1, 0).batch.released_count == 1
    deaf.close()
    result = line.handle()
    assert (result.redelivered_count, result.passed_over_count) == (1, 1)
    assert result.batch.total == 0
    assert len(line.ground.back.rows("record")) == 1


@pytest.mark.parametrize("change", [{"operation_key": "r:other"}, {"operation_id": 10**12}])
def test_a_message_that_means_something_else_is_passed_over(
    line: Line, change: dict[str, str]
) -> None:
    line.find(1)
    line.dispatcher.dispatch(line.rule)
    (message,) = _messages(line.broker.connect().receive(1, 0))
    line.broker.connect().publish([replace(message, **change)])  # type: ignore[arg-type]
    assert line.handle().passed_over_count == 1
    assert line.ground.back.rows("operation")[0]["state"] == "ready"


@pytest.mark.parametrize("name", ["removed", "another"])
def test_a_message_of_another_rule_is_passed_over(line: Line, name: str) -> None:
    another = replace(line.rule, name="another")
    line.handlers[0].rules = {"r": line.rule, "another": another}
    line.find(1)
    line.dispatcher.dispatch(line.rule)
    (message,) = _messages(line.broker.connect().receive(1, 0))
    line.broker.connect().publish([replace(message, rule=name)])
    assert line.handle().passed_over_count == 1
    assert line.broker.waiting == []
    assert line.ground.back.rows("operation")[0]["state"] == "ready"


def test_an_unreadable_payload_is_set_aside_and_told(line: Line) -> None:
    line.find(1)
    line.dispatcher.dispatch(line.rule)
    line.broker.accept(b"no message")
    told: list[bytes] = []
    line.handlers[0].on_unreadable = lambda one: told.append(one.raw)
    result = line.handle()
    assert (result.unreadable_count, result.batch.released_count) == (1, 1)
    assert (told, line.broker.dead) == ([b"no message"], [b"no message"])


def test_a_rule_under_care_is_handled_under_a_lease(line: Line) -> None:
    line.find(1, 2, 3)
    with line.ground.open().transaction() as tx:
        active = RuleState("r", line.rule.fingerprint, RuleCondition.ACTIVE)
        tx.rules.write(replace(active, leased=True, batch_limit=2))
    line.dispatcher.dispatch(line.rule)
    assert line.handle().batch.released_count == 3
    assert [row["attempt"] for row in line.ground.back.rows("record")] == [1, 1, 1]


def test_a_message_in_other_hands_is_passed_over(line: Line) -> None:
    line.find(1)
    line.dispatcher.dispatch(line.rule)
    if not line.ground.transactions_overlap():
        with line.ground.open().transaction(), raised(DatabaseBusy):
            line.handle()
        assert len(line.broker.waiting) == 1
        return
    with line.ground.open().transaction() as tx:
        assert len(tx.operations.claim("r", 1, None)) == 1
        assert line.handle().passed_over_count == 1
    assert line.ground.back.rows("operation")[0]["state"] == "ready"


def test_naming_reads_the_index_of_the_claim_in_its_order(migrated_url: str) -> None:
    with (
        ground_at(migrated_url) as ground,
        closing(ground.open()) as ledger,
        ledger.transaction() as tx,
    ):
        session = ledger.session
        explain = "explain query plan " if session.dialect == "sqlite" else "explain "
        values = {"rule": "r", "now": tx.now, "after_at": NOW, "after_id": 1, "limit": 500}
        rows, _ = session.run(explain + Runner(session).text("find_ready"), values)
    plan = str(rows)
    assert "operation_claim" in plan
    assert "B-TREE" not in plan
    assert "Sort" not in plan


def test_deliveries_go_back_while_another_batch_must_run_alone(ground: Ground) -> None:
    companion = Companion("insert into companion_note (id) values (:id)", 1, 1)
    line = Line(ground, FaultyBroker(), replace(ground.rule, companions=(companion,)))
    line.find(1)
    line.dispatcher.dispatch(line.rule)
    with ground.open().transaction() as tx:
        assert tx.rules.alone("r")
        with raised(DatabaseBusy):
            line.handle()
    assert len(line.broker.waiting) == 1
    assert line.handle().batch.released_count == 1


def _messages(deliveries: Sequence[Delivery]) -> list[Message]:
    return [one.message for one in deliveries if isinstance(one.message, Message)]
