"""Repeat a transaction that met a deadlock or a lock time-out; this spends no attempt."""

from __future__ import annotations

from collections.abc import Callable

from freehold.domain.errors import DatabaseBusy
from freehold.ports.system import Dice, Pause

REPEATS_MAX = 5
PAUSE_MOST_SECONDS = 0.05  # times the repeat's number and a draw


def repeated(
    step: Callable[[], None], dice: Dice, pause: Pause, repeats: int = REPEATS_MAX
) -> None:
    """Run the step; on `DatabaseBusy` run it again, with jitter.

    Raises:
        DatabaseBusy: it was still busy after the last repeat.
    """
    for number in range(repeats + 1):
        try:
            return step()
        except DatabaseBusy:
            if number == repeats:
                raise
            pause.wait(PAUSE_MOST_SECONDS * (number + 1) * dice.luck())
    return None
