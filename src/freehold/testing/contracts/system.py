"""The contracts of `ports.system`: dice, waiting, the host's clocks, checkpoints."""

from __future__ import annotations

from datetime import timedelta
from threading import Thread
from typing import Protocol

from freehold.ports.system import Boundary, Checkpoint, Dice, HostClock, Pause

LONG_SECONDS = 60.0  # a wait that must be ended from outside
SHORT_SECONDS = 0.01


class DiceContract:
    """Give the fixture `dice`."""

    def test_luck_lies_in_its_range(self, dice: Dice) -> None:
        draws = [dice.luck() for _ in range(200)]
        assert all(0 <= draw < 1 for draw in draws)

    def test_names_are_drawn_once(self, dice: Dice) -> None:
        assert len({dice.name() for _ in range(200)}) == 200


class Stoppable(Pause, Protocol):
    """A pause that a suite can end."""

    def stop(self) -> None:
        """Ask everybody to stop."""
        ...


class PauseContract:
    """Give the fixture `pause`, with `stop()`."""

    def test_waiting_ends_by_itself(self, pause: Stoppable) -> None:
        assert pause.wait(SHORT_SECONDS) is False
        assert pause.wait(-1) is False
        assert not pause.stopping

    def test_a_stop_ends_a_wait_at_once(self, pause: Stoppable) -> None:
        said: list[bool] = []
        waiter = Thread(target=lambda: said.append(pause.wait(LONG_SECONDS)))
        waiter.start()
        pause.stop()
        waiter.join(LONG_SECONDS / 2)
        assert said == [True]

    def test_after_a_stop_nobody_waits(self, pause: Stoppable) -> None:
        pause.stop()
        assert pause.wait(LONG_SECONDS) is True
        assert pause.stopping


class HostClockContract:
    """Give the fixture `host_clock`."""

    def test_the_wall_is_aware_and_utc(self, host_clock: HostClock) -> None:
        assert host_clock.wall().utcoffset() == timedelta(0)

    def test_monotonic_seconds_never_run_backwards(self, host_clock: HostClock) -> None:
        readings = [host_clock.monotonic() for _ in range(200)]
        assert readings == sorted(readings)

    def test_a_sleep_lasts(self, host_clock: HostClock) -> None:
        began = host_clock.monotonic()
        host_clock.sleep(SHORT_SECONDS)
        assert host_clock.monotonic() - began >= SHORT_SECONDS


class CheckpointContract:
    """Give the fixture `checkpoint`: one that is passed."""

    def test_every_boundary_is_passed(self, checkpoint: Checkpoint) -> None:
        for boundary in Boundary:
            checkpoint.reach(boundary)
