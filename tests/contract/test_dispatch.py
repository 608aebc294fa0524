"""Ready operations over a queue: whatever the queue loses or repeats, each hold is released once."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.session import Runner
from freehold.application.dispatch import PUBLISH_AGAIN_AFTER
from freehold.domain.errors import DatabaseBusy
from freehold.domain.rules import Companion
from freehold.ports.ledger import RuleCondition, RuleState
from freehold.testing.contracts.ground import NOW, SECOND, raised
from freehold.testing.faulty_queue import Faults, FaultyBroker
from tests.contract.grounds import ground_at
from tests.contract.line import Line, messages_of

if TYPE_CHECKING:
    from freehold.testing.contracts.ground import Ground


@pytest.fixture
def line(ground: Ground) -> Line:
    return Line(ground, FaultyBroker(), ground.rule)


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
    (message,) = messages_of(line.broker.connect().receive(1, 0))
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
