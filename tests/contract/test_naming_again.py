"""What a queue loses is named again within a sweep, and what merely waits in it is not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from freehold.application import naming
from freehold.application.dispatch import LEAD_BATCHES, PUBLISH_AGAIN_AFTER
from freehold.domain.errors import QueueAway
from freehold.testing.contracts.ground import NOW, SECOND
from freehold.testing.dice import SeededDice
from freehold.testing.faulty_queue import Faults, FaultyBroker
from tests.contract.line import Line, messages_of

if TYPE_CHECKING:
    from freehold.testing.contracts.ground import Ground

HARSH = Faults(drop=0.2, duplicate=0.3, late=0.3, reorder=0.5, unconfirmed=0.2, away=0.1, wipe=0.05)
SWEEP_SECONDS = int(PUBLISH_AGAIN_AFTER.total_seconds())


@pytest.fixture
def line(ground: Ground) -> Line:
    return Line(ground, FaultyBroker(), ground.rule)


def dispatch_all(line: Line) -> int:
    """Publish until there is nothing more to name; return how much was."""
    count = 0
    while published := line.dispatcher.dispatch(line.rule).published_count:
        count += published
    return count


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_a_harsh_queue_all_is_released_once_within_a_sweep(ground: Ground, seed: int) -> None:
    broker = FaultyBroker(SeededDice(seed), HARSH)
    line = Line(ground, broker, replace(ground.rule, batch_size=20))
    keys = range(1, 61)
    line.find(*keys)
    for second in range(1, 31):
        line.round_at(second)
    broker.faults = Faults()
    broker.wipe()
    for second in range(31, 31 + SWEEP_SECONDS + 1):
        line.round_at(second)
    assert not ground.back.rows("operation")
    assert line.released == len(keys)
    assert {ground.back.hold(key)["status"] for key in keys} == {"expired"}  # type: ignore[index]
    for table in ("record", "outbox"):
        count = Counter(row["hold_key"] for row in ground.back.rows(table))
        assert count == {str(key): 1 for key in keys}
    taken = sum(one.counts.delivered_count for one in line.handlers)
    assert taken - sum(one.counts.passed_over_count for one in line.handlers) == len(keys)


@pytest.mark.parametrize("seed", [4, 5])
def test_a_broker_wiped_in_the_middle_of_its_work_costs_a_sweep(ground: Ground, seed: int) -> None:
    line = Line(ground, FaultyBroker(SeededDice(seed)), replace(ground.rule, batch_size=7))
    dice = SeededDice(seed)
    wiped_at = 4 + int(dice.luck() * 4)
    for second in range(1, wiped_at + SWEEP_SECONDS + 1):
        if second <= wiped_at:
            ground.set_now(NOW + second * SECOND)
            line.find(*range(second * 10, second * 10 + 10))
        if second == wiped_at:
            line.dispatcher.dispatch(line.rule)
            line.broker.wipe()
        line.round_at(second)
    assert not ground.back.rows("operation")
    assert line.released == wiped_at * 10


def test_a_wiped_broker_costs_latency_only(line: Line) -> None:
    line.find(1, 2)
    assert line.dispatcher.dispatch(line.rule).published_count == 2
    line.broker.wipe()
    assert line.handle().delivered_count == 0
    line.ground.set_now(NOW + PUBLISH_AGAIN_AFTER - SECOND)
    assert line.dispatcher.dispatch(line.rule).published_count == 0
    line.ground.set_now(NOW + PUBLISH_AGAIN_AFTER)
    assert line.dispatcher.dispatch(line.rule).published_count == 2
    assert line.handle().batch.released_count == 2


def test_a_deep_backlog_is_named_once_however_long_it_waits(line: Line) -> None:
    line.rule = replace(line.rule, batch_size=10)
    line.find(*range(1, 101))
    assert dispatch_all(line) == 100
    for sweeps in range(1, 6):
        line.ground.set_now(NOW + sweeps * PUBLISH_AGAIN_AFTER)
        line.handle(5)
        assert dispatch_all(line) == 0
    assert line.dispatcher.counts.published_count == 100


def test_what_one_lost_is_named_again_though_others_wait(line: Line) -> None:
    line.find(1)
    line.dispatcher.dispatch(line.rule)
    lost = line.broker.waiting.pop()
    line.ground.set_now(NOW + SECOND)
    line.find(*range(2, 12))
    assert dispatch_all(line) == 10
    line.ground.set_now(NOW + PUBLISH_AGAIN_AFTER)
    assert dispatch_all(line) == 1
    assert line.broker.waiting[-1].payload == lost.payload


def test_without_a_depth_age_alone_decides(line: Line) -> None:
    line.dispatcher.queue.depth = lambda: None  # type: ignore[method-assign]
    line.find(1, 2)
    assert dispatch_all(line) == 2
    line.ground.set_now(NOW + PUBLISH_AGAIN_AFTER - SECOND)
    assert dispatch_all(line) == 0
    for sweeps in range(1, 4):
        line.ground.set_now(NOW + sweeps * PUBLISH_AGAIN_AFTER)
        assert dispatch_all(line) == 2


def test_one_dispatcher_names_an_operation_at_most_once_a_sweep(line: Line) -> None:
    line.find(1)
    for second in range(4 * SWEEP_SECONDS):
        line.ground.set_now(NOW + second * SECOND)
        dispatch_all(line)
        line.broker.wipe()
    assert line.dispatcher.counts.published_count == 4


def test_two_dispatchers_name_an_operation_twice_and_no_more(line: Line) -> None:
    line.find(*range(1, 21))
    other = line.other_dispatcher()
    for sweeps in range(4):
        line.ground.set_now(NOW + sweeps * PUBLISH_AGAIN_AFTER)
        for one in (line.dispatcher, other):
            one.dispatch(line.rule)
    assert len(line.broker.waiting) == 40
    assert line.handle().batch.released_count == 20


def test_after_a_restart_the_oldest_come_first(line: Line) -> None:
    line.find(*range(1, 6))
    line.ground.set_now(NOW + SECOND)
    line.find(*range(6, 11))
    line.dispatcher.dispatch(line.rule)
    line.broker.wipe()
    line.other_dispatcher().dispatch(line.rule)
    named = [one.hold_key for one in messages_of(line.broker.connect().receive(50, 0))]
    assert named == [str(key) for key in range(1, 11)]


def test_a_giant_backlog_of_one_rule_keeps_no_other_waiting(line: Line) -> None:
    small = replace(line.rule, batch_size=2)
    other = replace(small, name="other")
    line.find(*range(1, 101))
    while not line.dispatcher.dispatch(small).is_full:
        pass
    assert len(line.broker.waiting) == 2 * LEAD_BATCHES
    line.find_of(other, *range(101, 201))
    while not line.dispatcher.dispatch(other).is_full:
        pass
    assert len(line.broker.waiting) == 4 * LEAD_BATCHES


def test_after_a_restart_what_waits_already_counts(line: Line) -> None:
    small = replace(line.rule, batch_size=2)
    line.find(*range(1, 101))
    while not line.dispatcher.dispatch(small).is_full:
        pass
    second = line.other_dispatcher()
    assert second.dispatch(small).is_full
    line.handle(2)
    assert second.dispatch(small).published_count == 2


def test_missing_confirms_fill_the_queue_no_further_than_its_lead(line: Line) -> None:
    small = replace(line.rule, batch_size=2)
    line.find(1, 2)
    line.broker.faults = Faults(unconfirmed=1.0)
    for _ in range(3 * LEAD_BATCHES):
        line.dispatcher.dispatch(small)
    assert len(line.broker.waiting) == 2 * LEAD_BATCHES
    assert line.dispatcher.counts.unconfirmed_count == 2 * LEAD_BATCHES
    assert line.handle(100).passed_over_count == 2 * LEAD_BATCHES - 2


def test_what_is_remembered_is_bounded(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "NAMED_MOST", 4)
    line.rule = replace(line.rule, batch_size=2)
    line.find(*range(1, 11))
    assert dispatch_all(line) == 4
    assert line.handle().batch.released_count == 4
    assert line.dispatcher.dispatch(line.rule).is_full
    line.ground.set_now(NOW + PUBLISH_AGAIN_AFTER)
    assert dispatch_all(line) == 4


def test_what_became_ready_behind_the_place_is_named_within_a_sweep(line: Line) -> None:
    line.ground.set_now(NOW + 60 * SECOND)
    line.find(1)
    assert dispatch_all(line) == 1
    line.ground.set_now(NOW)
    line.find(2)
    line.ground.set_now(NOW + 61 * SECOND)
    assert dispatch_all(line) == 0
    line.ground.set_now(NOW + 60 * SECOND + PUBLISH_AGAIN_AFTER - SECOND)
    line.handle()
    assert dispatch_all(line) == 0
    line.ground.set_now(NOW + 60 * SECOND + PUBLISH_AGAIN_AFTER)
    assert dispatch_all(line) == 1


def test_a_missing_broker_is_told_and_nothing_is_forgotten(line: Line) -> None:
    line.find(1)
    line.broker.reachable = False
    with pytest.raises(QueueAway):
        line.dispatcher.dispatch(line.rule)
    line.broker.reachable = True
    assert dispatch_all(line) == 1
