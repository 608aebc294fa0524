"""Where a worker's work comes from beside a broker: messages, or the ledger itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.application.pauses import begin_pause
from freehold.application.supply import Hints, Supply
from freehold.domain.errors import QueueAway, QueueUnfit
from freehold.domain.pauses import Pause, Role
from freehold.domain.rules import Mode
from freehold.ports.telemetry import Event, HintsMissing, QueueFound, QueueLost
from freehold.testing.contracts.ground import NOW, SECOND
from freehold.testing.faulty_queue import FaultyBroker
from tests.contract.line import Line

if TYPE_CHECKING:
    from freehold.testing.contracts.ground import Ground

SWEEP = timedelta(seconds=15)


@dataclass
class Desk:
    """One supply; the clock is moved by the test."""

    line: Line
    seconds: float = 0.0
    told: list[Event] = field(default_factory=list)
    lost_count: int = 0

    def __post_init__(self) -> None:
        self.hints = Hints(self, self, on_lost=self._count_lost)  # type: ignore[arg-type]
        self.supply = Supply(self.line.ground.open(), self.hints, SWEEP, self)

    def monotonic(self) -> float:
        return self.seconds

    def tell(self, event: Event) -> None:
        self.told.append(event)

    def _count_lost(self) -> None:
        self.lost_count += 1

    def at(self, second: float) -> None:
        self.seconds = second
        self.line.ground.set_now(NOW + second * SECOND)

    def is_from_ledger(self) -> bool:
        return self.supply.is_from_ledger(self.line.rule)


@pytest.fixture
def desk(ground: Ground) -> Desk:
    return Desk(Line(ground, FaultyBroker(), ground.rule))


def test_until_the_broker_answers_and_after_it_is_lost_the_ledger_is_asked(desk: Desk) -> None:
    assert desk.is_from_ledger()
    desk.hints.answered(0)
    assert not desk.is_from_ledger()
    desk.hints.lost(QueueAway("gone"))
    desk.hints.lost(QueueAway("still gone"))
    assert desk.is_from_ledger()
    desk.hints.answered(0)
    assert not desk.is_from_ledger()
    found, lost = QueueFound("deliveries"), QueueLost("deliveries", "QueueAway")
    assert desk.told == [found, lost, found]
    assert desk.lost_count == 1


def test_what_a_person_has_to_mend_at_the_broker_is_told_in_words(desk: Desk) -> None:
    desk.hints.lost(QueueUnfit("no right to read the queue"))
    assert desk.told == [QueueLost("deliveries", "QueueUnfit", "no right to read the queue")]


def test_what_nobody_names_for_a_sweep_is_worked_and_told_once(desk: Desk) -> None:
    desk.hints.answered(0)
    desk.line.find(1)
    assert not desk.is_from_ledger()
    desk.at(14)
    assert not desk.is_from_ledger()
    desk.at(18)
    assert not desk.is_from_ledger(), "it looked four seconds ago"
    desk.at(19)
    assert desk.is_from_ledger()
    assert desk.is_from_ledger(), "no message came for a moment, so it goes on"
    assert [one for one in desk.told if isinstance(one, HintsMissing)] == [HintsMissing("r")]
    desk.line.handlers[0].worker.work(desk.line.rule)
    assert not desk.is_from_ledger()


def test_while_messages_come_it_takes_only_a_batch_a_look(desk: Desk) -> None:
    desk.line.find(1, 2)
    desk.at(20)
    desk.hints.answered(1)
    assert desk.is_from_ledger()
    assert not desk.is_from_ledger()
    desk.at(25)
    desk.hints.answered(1)
    assert desk.is_from_ledger()
    assert not [one for one in desk.told if isinstance(one, HintsMissing)]


def test_a_rule_of_windows_is_always_worked_from_the_ledger(desk: Desk) -> None:
    desk.hints.answered(0)
    assert desk.supply.is_from_ledger(replace(desk.line.rule, mode=Mode.WINDOW))


def test_while_dispatch_is_paused_the_ledger_is_asked_and_nothing_named(desk: Desk) -> None:
    ledger = desk.line.ground.open()
    begin_pause(ledger, Pause(Role.DISPATCH, None, None, "ann", "the broker moves", NOW))
    desk.line.find(1)
    assert desk.line.dispatcher.dispatch(desk.line.rule).published_count == 0
    desk.hints.answered(0)
    assert desk.is_from_ledger()
    assert desk.is_from_ledger()
    assert not [one for one in desk.told if isinstance(one, HintsMissing)]
