"""What stands between a rule and its work: guards, pauses, and the clocks that a guard watches.

*Invariants*: one guard of a kind and rule stands at a time, and one pause of a role, rule and
tenant. *Not here*: what trips a guard (`application.guards`), what a pause keeps from happening.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from freehold.domain.clocks import ClockReading, NotedClock
from freehold.domain.pauses import Pause, Role


class GuardKind(StrEnum):
    """What a guard watches for."""

    CLOCK = "clock"
    MASS = "mass"


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard that tripped; nothing of its rules is released while it stands.

    Attributes:
        rule: None freezes every rule.
        reason: what was seen and what to do, in a sentence.
        figures: what it was judged by.
        released_at: None while it stands.
        released_by: a person; None where a sane reading released it.
    """

    id: int
    kind: GuardKind
    rule: str | None
    tripped_at: datetime
    reason: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    released_at: datetime | None = None
    released_by: str | None = None
    released_reason: str | None = None


class Guards(Protocol):
    """Guards that tripped."""

    def trip(
        self, kind: GuardKind, rule: str | None, reason: str, figures: Mapping[str, Any]
    ) -> bool:
        """Freeze a rule, or all.

        Again: does nothing while that guard stands; returns False.
        """
        ...

    def standing(self) -> Sequence[Guard]:
        """Return the guards that stand, oldest first."""
        ...

    def newest(self, kind: GuardKind) -> Guard | None:
        """Return the guard of a kind that tripped last, released or not."""
        ...

    def release(self, guard_id: int, by: str | None, reason: str) -> bool:
        """Let the rules work again; False when it was released already."""
        ...


class Pauses(Protocol):
    """Pauses that people began."""

    def begin(self, pause: Pause) -> None:
        """Pause; what is paused already keeps its beginning, and takes reason and end from here."""
        ...

    def end(self, role: Role, rule: str | None, tenant: str | None) -> bool:
        """End the pause of exactly that role, rule and tenant; False when there is none."""
        ...

    def open(self) -> Sequence[Pause]:
        """Return the pauses that nobody ended, oldest first; some may be over by their `until`."""
        ...


class HostClocks(Protocol):
    """What this transaction's clocks say, and what was noted before."""

    @property
    def reading(self) -> ClockReading | None:
        """Return the clocks as of this transaction; None where the host's clock is not watched."""
        ...

    @property
    def base(self) -> ClockReading | None:
        """Return the last reading that this connection trusted; None before the first."""
        ...

    def trust(self) -> None:
        """Make this reading the base that the connection's later ones are compared with."""
        ...

    def noted(self) -> Sequence[NotedClock]:
        """Return the notes of the database: this host's own first, then the newest of others."""
        ...

    def note(self) -> None:
        """Note this reading for processes to come; does nothing without a reading.

        Notes that are more than two days older go: a host may never come back under its name.
        """
        ...

    def forget(self) -> None:
        """Take every note back: the next reading is the first."""
        ...
