"""Checkpoints that crash: the tools of every test that kills, stops or fails a process on purpose.

Each counts the reaches of any boundary, or of one, and acts at the n-th. *Invariants*: what a
checkpoint tells goes out before it acts, so that a test knows where the process died.
*Not here*: making the process that dies (`forking`).
"""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from freehold.ports.system import Boundary

CRASHED = "crashed"  # the word by which a checkpoint tells where it acts


class Tell(Protocol):
    """Takes a word and a value to whoever waits for it; `forking.Wire.tell` is one."""

    def __call__(self, word: str, value: object = None, /) -> None:
        """Pass the word on, before returning."""
        ...


def nobody(word: str, value: object = None, /) -> None:
    """Tell nobody."""


class Crashed(BaseException):
    """A crash inside one process: no handler of the product may catch it."""


@dataclass(slots=True)
class _At(ABC):
    """Acts at the n-th reach.

    Attributes:
        nth: which reach, from 1.
        boundary: count reaches of this one only; None counts all.
        reached_count: reaches so far.
    """

    nth: int
    boundary: Boundary | None = None
    tell: Tell = nobody
    reached_count: int = 0

    def reach(self, boundary: Boundary) -> None:
        """Count, and act when the time has come."""
        if self.boundary not in (None, boundary):
            return
        self.reached_count += 1
        if self.reached_count == self.nth:
            self.tell(CRASHED, boundary.value)
            self.act(boundary)

    @abstractmethod
    def act(self, boundary: Boundary) -> None:
        """Do what the class is for."""


class KillAt(_At):
    """Kill the own process with SIGKILL: nothing is cleaned up, nothing is flushed."""

    __slots__ = ()

    def act(self, boundary: Boundary) -> None:
        """Never return."""
        os.kill(os.getpid(), signal.SIGKILL)


class StopAt(_At):
    """Stop the own process with SIGSTOP; it goes on when somebody sends SIGCONT."""

    __slots__ = ()

    def act(self, boundary: Boundary) -> None:
        """Return only after SIGCONT."""
        os.kill(os.getpid(), signal.SIGSTOP)


class RaiseAt(_At):
    """Raise `Crashed` in the calling thread."""

    __slots__ = ()

    def act(self, boundary: Boundary) -> None:
        """Raise.

        Raises:
            Crashed: always.
        """
        raise Crashed(boundary.value)


@dataclass(slots=True)
class WaitAt(_At):
    """Stand at the boundary until `go` returns; a transaction stays open meanwhile."""

    go: Callable[[], object] = field(kw_only=True)

    def act(self, boundary: Boundary) -> None:
        """Wait for the word to go on."""
        self.go()


@dataclass(slots=True)
class Recorder:
    """Notes every reach in order, and tells it."""

    tell: Tell = nobody
    reached: list[Boundary] = field(default_factory=list)

    def reach(self, boundary: Boundary) -> None:
        """Note the boundary and pass it."""
        self.reached.append(boundary)
        self.tell(boundary.value)
