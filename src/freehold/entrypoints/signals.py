"""SIGTERM and SIGINT: the first asks the process to stop, a later one ends it.

*Invariants*: no signal is lost, whatever thread the system hands it to and whatever the main thread
waits for; nobody's wish to stop runs inside a signal handler, where a lock may be taken already.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from freehold.adapters.system import SystemClock

SAME_WISH_SECONDS = 1.0  # a second signal that comes sooner is the first one, sent to the group
_AT_ONCE = 64  # signals read in one go
_KILLED = 128  # what shells add to the number of the signal that ended a process


@contextmanager
def on_signals(
    ask_to_stop: Callable[[], None], numbers: Sequence[int] = (signal.SIGTERM, signal.SIGINT)
) -> Iterator[None]:
    """Within the block, drain at the first of these signals; let a later one end the process.

    A handler of Python's runs in the main thread once that executes Python again. Does the system
    hand the signal to another thread, or just before the main thread begins to wait, then nothing
    ends that wait. Python writes every signal's number to the wake-up descriptor at once, whatever
    thread has it: a thread of its own reads it there.

    `timeout` and some supervisors signal the process and then its whole group, so that one wish
    to stop comes twice: what follows within a second is the same wish.

    Source: https://docs.python.org/3/library/signal.html#signal.set_wakeup_fd
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    listener = threading.Thread(
        target=_listen, args=(reader, ask_to_stop), name="signals", daemon=True
    )
    listener.start()
    woken = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # Without a handler of Python's there is no wake-up.
    handlers = {number: signal.signal(number, lambda *_: None) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        os.close(writer)  # the listener reads the end
        listener.join()
        os.close(reader)


def _listen(reader: int, ask_to_stop: Callable[[], None]) -> None:
    clock = SystemClock()
    first: float | None = None
    while numbers := os.read(reader, _AT_ONCE):
        now = clock.monotonic()
        if first is not None and now - first >= SAME_WISH_SECONDS:
            os._exit(_KILLED + numbers[-1])
        first = now if first is None else first
        ask_to_stop()
