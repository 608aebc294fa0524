"""What one-shots and the service share: a deadline as a person writes it, and signals."""

from __future__ import annotations

import signal
from collections.abc import Callable

SAME_WISH_SECONDS = 1.0  # a second signal that comes sooner is the first one, sent to the group


def deadline_seconds(deadline: str) -> float:
    """Read --deadline.

    Raises:
        UsageError: it is no duration.
    """
    from freehold.domain.errors import UsageError
    from freehold.domain.schedule import ScheduleError, parse_duration

    try:
        return parse_duration(deadline).total_seconds()
    except ScheduleError as error:
        raise UsageError(f"--deadline {deadline!r}: {error}.") from error


def on_signals(ask_to_stop: Callable[[], None]) -> None:
    """Drain at the first SIGTERM or SIGINT; let a later one end the process at once.

    `timeout` and some supervisors signal the process and then its whole group, so that one wish
    to stop comes twice: what follows within a second is the same wish.
    """
    from freehold.adapters.system import SystemClock

    clock = SystemClock()
    first: list[float] = []

    def handle(number: int, _: object) -> None:
        now = clock.monotonic()
        if first and now - first[0] >= SAME_WISH_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        first.append(now)
        ask_to_stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
