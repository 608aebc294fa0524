"""A signal is heard whatever thread the system hands it to, and whatever the main thread does."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

from freehold.entrypoints.signals import on_signals

# The main thread waits for an hour; the signal is handed to another thread on purpose.
TO_ANOTHER_THREAD = """
import signal, threading
from freehold.adapters.system import StopRequest
from freehold.entrypoints.signals import on_signals

stop, waiting = StopRequest(), threading.Event()

def other():
    waiting.wait()
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=other, daemon=True).start()
threading.Timer(0.05, waiting.set).start()
with on_signals(stop.stop):
    print(stop.wait(3600))
"""

AGAIN = """
import os, signal, time
from freehold.adapters.system import StopRequest
from freehold.entrypoints.signals import SAME_WISH_SECONDS, on_signals

stop = StopRequest()
with on_signals(stop.stop):
    for _ in range(2):
        os.kill(os.getpid(), signal.{name})  # one wish, said twice
    assert stop.wait(10)
    print("asked", flush=True)
    time.sleep(SAME_WISH_SECONDS)
    os.kill(os.getpid(), signal.{name})
    time.sleep(10)
"""


def ran(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False
    )


def test_a_signal_in_another_thread_ends_the_wait() -> None:
    ended = ran(TO_ANOTHER_THREAD)
    assert (ended.returncode, ended.stdout) == (0, "True\n"), ended.stderr


def test_a_later_signal_ends_the_process() -> None:
    for name in ("SIGTERM", "SIGINT"):
        ended = ran(AGAIN.format(name=name))
        number = signal.Signals[name].value
        assert (ended.returncode, ended.stdout) == (128 + number, "asked\n"), ended.stderr


def test_everything_is_as_it_was_behind_the_block() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with on_signals(lambda: None):
        assert "signals" in {one.name for one in threading.enumerate()}
    assert before == [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert "signals" not in {one.name for one in threading.enumerate()}
    assert signal.set_wakeup_fd(-1) == -1
