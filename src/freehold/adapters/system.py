"""Clocks, luck, waiting and the do-nothing checkpoint: the only module that asks the host."""

from __future__ import annotations

import random
import threading
import time
import uuid
from datetime import UTC, datetime

from freehold.ports.system import Boundary


class SystemClock:
    """The host's clocks."""

    def wall(self) -> datetime:
        """Return the host's wall time, aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never run backwards, and go on while the host is suspended."""
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait so long."""
        time.sleep(seconds)


class SystemDice:
    """Real randomness."""

    def luck(self) -> float:
        """Return a uniform draw in [0, 1)."""
        return random.random()

    def name(self) -> str:
        """Return a name that no other process draws."""
        return uuid.uuid4().hex


class Onwards:
    """The checkpoint of production: every boundary is passed."""

    def reach(self, boundary: Boundary) -> None:
        """Do nothing."""


class StopRequest:
    """Waiting that a stop request ends; shared by all threads of a process."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def stop(self) -> None:
        """Ask everybody to stop."""
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; return True as soon as the process is asked to stop."""
        return self._event.wait(max(0.0, seconds))

    @property
    def stopping(self) -> bool:
        """Tell whether the process was asked to stop."""
        return self._event.is_set()
