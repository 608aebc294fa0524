"""Real child processes for crash tests, forked from one warmed parent: a millisecond each.

A child runs one function and leaves through `os._exit`; it never returns into the test runner.
What it tells arrives over a pipe as lines of JSON, also when it is killed a moment later.
*Invariants*: the parent has one thread when it forks, since a child inherits locks but not the
threads that hold them; database connections are opened in children only, or closed before a fork.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import TextIOWrapper
from types import TracebackType
from typing import Any, Self

CHILD_SECONDS_MAX = 60  # a child that hangs is ended by its own alarm and fails its test
RESULT = "result"
TROUBLE = "trouble"


class ChildTrouble(AssertionError):
    """A child raised, or ended before it said what the test waits for."""


@dataclass(slots=True)
class Wire:
    """A child's line to its test."""

    _up: int
    _down: int

    def tell(self, word: str, value: object = None, /) -> None:
        """Say a word to the parent, with a value that JSON can carry."""
        os.write(self._up, json.dumps([word, value]).encode() + b"\n")

    def wait(self) -> None:
        """Block until the parent lets the child go on."""
        if not os.read(self._down, 1):
            os._exit(1)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended.

    Attributes:
        killed_by: the signal that ended it, or None.
        value: what its function returned; None when it never did.
        words: all that it told, in order.
    """

    killed_by: int | None
    value: Any
    words: list[tuple[str, Any]]

    @property
    def was_killed(self) -> bool:
        """Tell whether SIGKILL ended it."""
        return self.killed_by == signal.SIGKILL

    def said(self, word: str) -> Any:
        """Return the value of the last such word, or None."""
        return next((value for said, value in reversed(self.words) if said == word), None)


@dataclass(slots=True)
class Child:
    """The parent's side of a child; use it in a `with`, which ends it whatever happens."""

    pid: int
    _words: Iterator[str]
    _up: TextIOWrapper
    _down: int
    _told: list[tuple[str, Any]] = field(default_factory=list)
    _ended: bool = False

    def wait_for(self, word: str) -> Any:
        """Block until the child tells this word; return its value.

        Raises:
            ChildTrouble: it ended first.
        """
        for said, value in self._read():
            if said == word:
                return value
        raise ChildTrouble(f"the child ended before it said {word!r}; it said {self._told}")

    def _read(self) -> Iterator[tuple[str, Any]]:
        for line in self._words:
            said, value = json.loads(line)
            self._told.append((said, value))
            if said == TROUBLE:
                raise ChildTrouble(f"the child raised:\n{value}")
            yield said, value

    def go_on(self) -> None:
        """Let a child go on that stands at `Wire.wait`."""
        os.write(self._down, b".")

    def wait_until_stopped(self) -> None:
        """Block until the child is stopped by SIGSTOP.

        Raises:
            ChildTrouble: it ended instead.
        """
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self._ended = True
            raise ChildTrouble(f"the child ended instead of stopping; it said {self._told}")

    def resume(self) -> None:
        """Send SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> Ending:
        """Block until the child is gone; return how it ended.

        Raises:
            ChildTrouble: it raised, or was ended by anything but SIGKILL.
        """
        for _ in self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        self._ended = True
        killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        ending = Ending(killed_by, None, self._told)
        if killed_by not in (None, signal.SIGKILL):
            raise ChildTrouble(f"the child was ended by signal {killed_by}; it said {self._told}")
        return Ending(killed_by, ending.said(RESULT), self._told)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._ended:
            self.kill()
            os.waitpid(self.pid, 0)
            self._ended = True
        self._up.close()
        os.close(self._down)


def fork(function: Callable[[Wire], object], seconds_max: int = CHILD_SECONDS_MAX) -> Child:
    """Start a child that runs the function; its return value must be fit for JSON.

    Args:
        seconds_max: after so long the child's own alarm ends it.

    Raises:
        RuntimeError: this process has more than one thread.
    """
    if threading.active_count() > 1:
        names = ", ".join(thread.name for thread in threading.enumerate())
        raise RuntimeError(f"fork from a single thread; these are alive: {names}")
    (up_read, up_write), (down_read, down_write) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(up_read)
        os.close(down_write)
        _be_child(function, Wire(up_write, down_read), seconds_max)
    os.close(up_write)
    os.close(down_read)
    lines = os.fdopen(up_read, encoding="utf-8")
    return Child(pid, iter(lines), lines, down_write)


def _be_child(function: Callable[[Wire], object], wire: Wire, seconds_max: int) -> None:
    """Run the function and leave the process; never returns."""
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds_max)
        wire.tell(RESULT, function(wire))
        status = 0
    except BaseException:  # noqa: BLE001 -- whatever it is, it belongs to the parent
        wire.tell(TROUBLE, traceback.format_exc())
    finally:
        os._exit(status)


def run(function: Callable[[Wire], object]) -> Ending:
    """Run the function in a child of its own and wait for the end."""
    with fork(function) as child:
        return child.end()
