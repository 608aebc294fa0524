"""A private event loop on a thread of its own, for a client that has no other face.

*Invariants*: nothing of the loop is seen outside; every call has a bound; the thread is a daemon
and ends at `stop`. *Not here*: any client; adapters of brokers keep theirs behind this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

STOP_SECONDS = 5.0


class LoopThread:
    """Runs coroutines for one caller at a time; starts at the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float) -> T:
        """Run to its end and return what it returns, or raise what it raises.

        Raises:
            TimeoutError: it did not end within `seconds`, and was cancelled.
        """
        future = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        try:
            return future.result(seconds)
        except CancelledError:
            raise TimeoutError from None
        except BaseException:
            future.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = Thread(
                target=_turn, args=(self._loop,), name=f"freehold-{self._name}", daemon=True
            )
            self._thread.start()
        return self._loop

    def stop(self) -> None:
        """End the thread with all that still runs on it. A second call does nothing."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_SECONDS)
            self._loop = self._thread = None


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
