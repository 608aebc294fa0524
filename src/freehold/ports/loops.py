"""What the loops and people leave behind: ticks, heartbeats, the action log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Tick:
    """A firing of a schedule.

    Attributes:
        logical_time: the instant that the schedule names; with the schedule it is the key.
        taken_over: an earlier run began and never finished.
        run: counts the runs of this row; what a runner that was replaced does is told apart by it.
    """

    id: int
    schedule: str
    logical_time: datetime
    taken_over: bool = False
    run: int = 1


class Ticks(Protocol):
    """Runs of schedules; a tick row is a lease on its logical time."""

    def start(
        self,
        schedule: str,
        logical_time: datetime,
        runner: str,
        host_at: datetime,
        *,
        rolled_up: bool = False,
    ) -> Tick | None:
        """Begin a run, or take over one that began over 30 s ago and never finished.

        Args:
            rolled_up: several runs share this row; a finished one is opened again.

        Returns:
            None when the tick is done, or another runner is at it.
        Crash: the next start after 30 s takes it over.
        """
        ...

    def keep(self, tick: Tick) -> bool:
        """Say that a run goes on, so that nobody takes it over for another 30 s.

        Returns:
            False when it was taken over or finished already: it is no longer this runner's.
        """
        ...

    def finish(self, tick: Tick, found_count: int, new_count: int, outcome: str) -> None:
        """Close the run; adds to the counts where several runs share one row.

        A runner that was replaced meanwhile changes nothing.
        Again: changes nothing.
        """
        ...

    def last(self, schedule: str) -> datetime | None:
        """Return the newest logical time that finished."""
        ...

    def oldest_unfinished(self, schedule: str) -> datetime | None:
        """Return the oldest logical time that began over 30 s ago and never finished."""
        ...


class Workers(Protocol):
    """Heartbeats: who is alive, and with what in hand."""

    def beat(
        self, worker: str, roles: str, host: str, pid: int, host_at: datetime, in_hand: str | None
    ) -> None:
        """Say that the worker lives; `in_hand` names rule and batch size."""
        ...

    def count(self, role: str) -> int:
        """Count the processes with a role, those not yet known to be silent included."""
        ...

    def leave(self, worker: str) -> None:
        """Take the worker's row out after a clean stop."""
        ...

    def forget_silent(self, since: datetime) -> Sequence[str]:
        """Take out workers silent since then; return what each had in hand."""
        ...


@dataclass(frozen=True, slots=True)
class Act:
    """What a person did."""

    actor: str
    action: str
    subject: str
    reason: str
    before: str | None = None
    after: str | None = None


class Actions(Protocol):
    """The action log, hash-chained."""

    def record(self, act: Act) -> None:
        """Append an act to the chain, in this transaction."""
        ...
