"""Python handlers: imported by name, called under a time limit.

*Invariants*: nothing that a handler raises gets out but as one of our errors, SystemExit and
KeyboardInterrupt included; when `run` has returned, no late interruption can come. *Limits*: Python
can stop only what comes back to its interpreter: a call that blocks in C (`time.sleep`, a socket
without a time-out, a lock) is not stopped, and a grace later the process ends itself.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import Any

from freehold.domain.errors import ExitCode, HandlerFailed, HandlerTimedOut, UsageError
from freehold.domain.rules import HandlerSpec, Rule
from freehold.ports.handlers import ExpiredBatch

# How long a handler that was told to stop may take to do so: as long as its limit, within these.
GRACE_LEAST_SECONDS = 1.0
GRACE_MOST_SECONDS = 5.0
Function = Callable[[ExpiredBatch], object]


class OverTime(BaseException):
    """Raised inside a handler at its time limit; no `except Exception` catches it."""


def load_function(spec: HandlerSpec) -> Function:
    """Import a handler; modules beside the settings, in the current folder, are found last.

    Raises:
        UsageError: it cannot be imported, or called with one argument; one sentence says why.
    """
    module_name, _, name = spec.target.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        found: Any = import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except BaseException as error:
        raise UsageError(f"{_cannot(spec)}: {type(error).__name__}: {_line(error)}.") from error
    _check(spec, found)
    return found  # type: ignore[no-any-return]


def _check(spec: HandlerSpec, found: Any) -> None:
    if not callable(found):
        raise UsageError(f"{_cannot(spec)}: it is no function.")
    if inspect.iscoroutinefunction(found):
        raise UsageError(f"{_cannot(spec)}: it is async; a handler is a plain function.")
    try:
        inspect.signature(found).bind(None)
    except TypeError:
        raise UsageError(f"{_cannot(spec)}: it must take one argument, the batch.") from None
    except ValueError:
        return  # built in, without a signature


def _cannot(spec: HandlerSpec) -> str:
    return f"handler {spec.target} cannot be used"


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")


class PythonHandler:
    """One rule's function; implements `ports.handlers.Handler`."""

    def __init__(
        self,
        rule: Rule,
        function: Function,
        *,
        seconds: float,
        on_hung: Callable[[str, float], None] | None = None,
        grace_seconds: float | None = None,
    ) -> None:
        """Name the function.

        Args:
            seconds: the time limit of one call.
            on_hung: told the rule and the seconds, just before this process ends because of it.
            grace_seconds: how long it may take to stop; None is as long as its limit, 1 to 5 s.
        """
        self._rule = rule.name
        self._function = function
        code = getattr(inspect.unwrap(function), "__code__", None)
        self._file = None if code is None else code.co_filename
        self._on_hung = on_hung
        self._seconds = seconds
        usual = min(GRACE_MOST_SECONDS, max(GRACE_LEAST_SECONDS, seconds))
        self._grace_seconds = usual if grace_seconds is None else grace_seconds

    @property
    def seconds_max(self) -> float:
        """Return time limit and grace."""
        return self._seconds + self._grace_seconds

    def run(self, batch: ExpiredBatch, cancel: Callable[[], None]) -> None:
        """Call the function once, under its time limit."""
        watch = _Watch(self._seconds, self._grace_seconds, cancel, self._give_up)
        error: BaseException | None = None
        caller = os.getpid()
        try:
            try:
                watch.start()
                self._function(batch)
            finally:
                if os.getpid() != caller:
                    os._exit(0)  # a child that it forked: the transaction is its parent's
                watch.end()
        except BaseException as raised:  # noqa: BLE001 - whatever it is, the rows answer for it
            error = raised
        watch.end()  # once more: the interruption may have come while the first one ran
        if watch.is_over:
            raise HandlerTimedOut(
                f"the handler ran into its time limit of {self._seconds:g} s with "
                f"{len(batch.holds)} hold{'' if len(batch.holds) == 1 else 's'}"
            ) from error
        if error is not None:
            raise HandlerFailed(_said(error), _place(error, self._file)) from error

    def _give_up(self) -> None:
        """End the process: the only way left to free the rows, on SQLite the host's database."""
        with suppress(Exception):
            if self._on_hung is not None:
                self._on_hung(self._rule, self.seconds_max)
        os._exit(ExitCode.UNEXPECTED)


def _said(error: BaseException) -> str:
    """Return type and text; an exception may fail even at telling its text."""
    name = type(error).__name__
    try:
        return f"{name}: {error}".encode(errors="replace").decode()
    except BaseException:  # noqa: BLE001 - it is the customer's class
        return name.encode(errors="replace").decode()


def _place(error: BaseException, file: str | None) -> str:
    """Return type and place of an exception, without a word of its text.

    Args:
        file: the place in it is named, where there is one: a line of the customer's, no driver's.
    """
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = [(name, line) for name, line in frames if name == file]
    name, line = (own or frames)[-1]
    return f"{type(error).__name__} at {Path(name).name}:{line}"


class _Watch:
    """Interrupts the thread that made it when the time is over, unless it ended before.

    From `start` to `end` the interruption may come at any instruction, those of `end` included.
    """

    def __init__(
        self,
        seconds: float,
        grace_seconds: float,
        cancel: Callable[[], None],
        give_up: Callable[[], None],
    ) -> None:
        self._cancel = cancel
        self._give_up = give_up
        self._seconds = seconds
        self._grace_seconds = grace_seconds
        self._watched = threading.get_ident()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.is_over = False
        self._thread = threading.Thread(target=self._watch, name="handler watch", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def _watch(self) -> None:
        if self._ended.wait(self._seconds):
            return
        with self._lock:
            if self._ended.is_set():
                return
            self.is_over = True
            _interrupt(self._watched, OverTime)
        with suppress(Exception):
            self._cancel()
        if not self._ended.wait(self._grace_seconds):
            self._give_up()

    def end(self) -> None:
        """Stop watching; when it returns, neither interruption nor cancel can come any more.

        Again: does nothing.
        """
        with self._lock:
            self._ended.set()
            if self.is_over:
                _interrupt(self._watched, None)
        self._thread.join()


def _interrupt(thread: int, kind: type[BaseException] | None) -> None:
    """Have a thread raise at its next instruction; None takes back what it has not raised yet.

    Source: the C API's PyThreadState_SetAsyncExc.
    """
    raised = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
