"""The host's own dice, clocks and waiting keep their contracts; so do the seeded dice."""

from __future__ import annotations

import pytest

from freehold.adapters.system import Onwards, StopRequest, SystemClock, SystemDice
from freehold.ports.system import Checkpoint, Dice, HostClock
from freehold.testing.clock import SteadyDice
from freehold.testing.contracts.system import (
    CheckpointContract,
    DiceContract,
    HostClockContract,
    PauseContract,
    Stoppable,
)
from freehold.testing.dice import SeededDice


class TestDice(DiceContract):
    @pytest.fixture(params=["system", "seeded", "steady"])
    def dice(self, request: pytest.FixtureRequest) -> Dice:
        every: dict[str, Dice] = {
            "system": SystemDice(),
            "seeded": SeededDice(1),
            "steady": SteadyDice(),
        }
        return every[request.param]


class TestPause(PauseContract):
    @pytest.fixture
    def pause(self) -> Stoppable:
        return StopRequest()


class TestHostClock(HostClockContract):
    @pytest.fixture
    def host_clock(self) -> HostClock:
        return SystemClock()


class TestCheckpoint(CheckpointContract):
    @pytest.fixture
    def checkpoint(self) -> Checkpoint:
        return Onwards()


def test_one_seed_is_one_luck() -> None:
    one, same, other = SeededDice(7), SeededDice(7), SeededDice(8)
    draws = [one.luck() for _ in range(50)]
    assert draws == [same.luck() for _ in range(50)]
    assert draws != [other.luck() for _ in range(50)]
