"""Wait for a condition, for a bounded time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_SECONDS = 30


def wait_for(told: Callable[[], bool]) -> None:
    """Ask until it is so."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not told():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)
