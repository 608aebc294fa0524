"""Whatever somebody puts into a queue: it changes nothing that is not due, and never loops."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards, StopRequest
from freehold.application.deliveries import Handler
from freehold.application.work import Worker
from freehold.domain.errors import DatabaseAway
from freehold.domain.messages import Message, read_message, write_message
from freehold.domain.names import operation_key
from freehold.ports.ledger import Put
from freehold.testing.clock import SteadyDice
from freehold.testing.contracts.ground import NOW, SECOND, enqueue, new_operation
from freehold.testing.faulty_queue import FaultyBroker
from tests.contract.forging import harmless_payloads, unreadable_payloads, untrue_payloads
from tests.contract.line import Line

if TYPE_CHECKING:
    from freehold.testing.contracts.ground import Ground


@pytest.fixture
def line(ground: Ground) -> Line:
    line = Line(ground, FaultyBroker(), ground.rule)
    line.handlers[0].rules = {"r": line.rule, "another": replace(line.rule, name="another")}
    return line


def named(line: Line) -> Message:
    """Find hold 1, and return the message that names it, taken out of the queue."""
    line.find(1)
    line.dispatcher.dispatch(line.rule)
    message = read_message(line.broker.waiting.pop().payload)
    assert isinstance(message, Message)
    return message


def ledger_of(line: Line) -> dict[str, Any]:
    back = line.ground.back
    return {name: back.rows(name) for name in ("operation", "record", "outbox", "attempt")}


def test_what_nobody_can_read_is_written_down_and_gone(line: Line) -> None:
    payloads = unreadable_payloads(named(line))
    before = ledger_of(line)
    for payload in payloads.values():
        line.broker.accept(payload)
    result = line.handle(100)
    assert (result.unreadable_count, result.batch.total) == (len(payloads), 0)
    assert (line.broker.waiting, ledger_of(line)) == ([], before)
    assert line.broker.dead == list(payloads.values())
    kept = {(row["raw"], row["byte_count"]) for row in line.ground.back.rows("stray")}
    assert kept == {(payload[:1000], len(payload)) for payload in payloads.values()}
    assert {row["queue"] for row in line.ground.back.rows("stray")} == {"freehold"}


def test_untrue_messages_are_counted_and_change_nothing(line: Line) -> None:
    message = named(line)
    payloads = untrue_payloads(message, {})
    before = ledger_of(line)
    for payload in payloads.values():
        line.broker.accept(payload)
    result = line.handle(100)
    assert result.passed_over_count + result.unreadable_count == len(payloads)
    assert result.batch.total == 0
    assert (line.broker.waiting, ledger_of(line)) == ([], before)


def test_the_true_message_is_believed_though_forged_ones_stand_beside_it(line: Line) -> None:
    message = named(line)
    forged = untrue_payloads(message, {})
    lying = harmless_payloads(message)
    for payload in (*forged.values(), *lying.values(), *forged.values()):
        line.broker.accept(payload)
    result = line.handle(100)
    assert result.batch.released_count == 1
    assert len(line.ground.back.rows("record")) == 1
    assert result.passed_over_count + result.unreadable_count == 2 * len(forged) + len(lying) - 1


@pytest.mark.parametrize("lie", harmless_payloads(Message(1, "r:1", "r", "1", NOW, 1)))
def test_due_and_attempt_of_a_message_are_for_people(line: Line, lie: str) -> None:
    message = named(line)
    line.broker.accept(harmless_payloads(message)[lie])
    assert line.handle().batch.released_count == 1
    (record,) = line.ground.back.rows("record")
    assert (record["hold_key"], record["attempt"]) == ("1", 1)
    assert record["due_at"] == NOW - SECOND


def test_what_is_dead_leased_put_off_or_a_window_is_not_touched(line: Line) -> None:
    message = named(line)
    ledger = line.ground.open()
    enqueue(
        ledger,
        new_operation("r", 2, dead_reason="for a person"),
        new_operation("r", 3),
        new_operation("r", 4),
    )
    ids = {row["hold_key"]: row["id"] for row in line.ground.back.rows("operation")}
    with ledger.transaction() as tx:
        tx.operations.lease_these([ids["3"]], NOW + 60 * SECOND)
        (claim,) = tx.operations.claim_these([ids["4"]])
        tx.operations.put_off([Put(claim.id, "busy", NOW + 60 * SECOND, 1)])
        tx.windows.open("r", NOW - SECOND, NOW, None)
    rows = [row for row in line.ground.back.rows("operation") if row["id"] != ids["1"]]
    for row in rows:
        key = operation_key("r", row["digest"])
        forged = replace(message, operation_id=row["id"], operation_key=key)
        line.broker.accept(write_message(forged))
    before = ledger_of(line)
    assert line.handle().passed_over_count == len(rows) == 4
    assert ledger_of(line) == before


def test_a_hold_that_is_not_due_is_not_released_by_a_message(line: Line) -> None:
    message = named(line)
    line.ground.back.change_hold(1, "token", "b")
    line.broker.accept(write_message(message))
    assert line.handle().batch.released_count == 0
    assert line.ground.back.hold(1)["status"] == "held"  # type: ignore[index]


def test_a_thousand_identical_messages_are_one_transition(line: Line) -> None:
    message = named(line)
    line.broker.connect().publish([message] * 1_000)
    released = 0
    while line.broker.waiting:
        released += line.handle(300).batch.released_count
    counts = line.handlers[0].counts
    assert (released, counts.passed_over_count, counts.delivered_count) == (1, 999, 1_000)
    assert len(line.ground.back.rows("record")) == 1
    assert len(line.ground.back.rows("outbox")) == 1


def test_what_cannot_be_written_down_goes_back(line: Line) -> None:
    line.find(1)
    line.dispatcher.dispatch(line.rule)
    line.broker.accept(b"no message")
    ledger: SqlLedger = line.ground.open_unreachable()  # type: ignore[assignment]
    worker = Worker(ledger, Onwards(), SteadyDice(), StopRequest())
    handler = Handler(worker, line.broker.connect(), {"r": line.rule})
    with pytest.raises(DatabaseAway):
        handler.handle(10, 0)
    assert (len(line.broker.waiting), line.broker.dead) == (2, [])
    assert (handler.counts.delivered_count, handler.counts.unreadable_count) == (2, 0)
    assert line.handle().unreadable_count == 1
    assert (line.broker.waiting, line.broker.dead) == ([], [b"no message"])


def test_the_same_bytes_a_thousand_times_are_one_stray(line: Line) -> None:
    for _ in range(1_000):
        line.broker.accept(b"\x00junk")
    while line.broker.waiting:
        line.handle(300)
    (row,) = line.ground.back.rows("stray")
    assert (row["seen_count"], row["raw"]) == (1_000, b"\x00junk")
