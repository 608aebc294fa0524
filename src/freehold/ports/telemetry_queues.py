"""The events of queues: what telemetry tells of dispatching, deliveries, and the broker itself.

*Not here*: the whole vocabulary, and who listens (`ports.telemetry`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from freehold.ports.telemetry_event import Event, Level


@dataclass(frozen=True, slots=True)
class Dispatched(Event):
    """Ready operations of a rule were named to the queue.

    Attributes:
        unconfirmed_count: sent without a confirm, and named again.
    """

    name: ClassVar[str] = "dispatch"
    rule: str
    published_count: int
    unconfirmed_count: int = 0

    @property
    def level(self) -> Level:
        """Return a warning where the queue did not confirm."""
        return Level.WARNING if self.unconfirmed_count else Level.INFO


@dataclass(frozen=True, slots=True)
class DeliveriesHandled(Event):
    """Messages were taken from the queue and settled; a warning where one could not be read.

    Attributes:
        redelivered_count: those that the queue knows it had handed over before.
        passed_over_count: those that named nothing to do.
    """

    name: ClassVar[str] = "deliveries"
    delivered_count: int
    redelivered_count: int
    passed_over_count: int
    unreadable_count: int

    @property
    def level(self) -> Level:
        """Return debug where all could be read; what came of them is told of their batches."""
        return Level.WARNING if self.unreadable_count else Level.DEBUG


@dataclass(frozen=True, slots=True)
class QueueLost(Event):
    """A loop cannot use the broker and tries again; workers ask the ledger.

    Attributes:
        error: the kind of trouble.
        reason: what a person has to mend there, such as a right; None where it may pass by itself.
    """

    name: ClassVar[str] = "queue lost"
    usual_level: ClassVar[Level] = Level.WARNING
    loop: str
    error: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class QueueFound(Event):
    """A loop can use the broker, for the first time or again."""

    name: ClassVar[str] = "queue found"
    loop: str


@dataclass(frozen=True, slots=True)
class HintsMissing(Event):
    """No message came for operations that were ready for a sweep, so that they are worked without.

    Told once, until messages come again. Is no process there with the role dispatch?
    """

    name: ClassVar[str] = "hints missing"
    usual_level: ClassVar[Level] = Level.WARNING
    rule: str
