"""The events of the relay: what telemetry tells of handing events over to targets.

*Not here*: the whole vocabulary, and who listens (`ports.telemetry`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from freehold.ports.telemetry_event import Event, Level


@dataclass(frozen=True, slots=True)
class EventsForwarded(Event):
    """A batch of events was handed over to a target; debug when all of it arrived.

    Attributes:
        failed_count: attempts that failed and are made again.
        dead_count: events that this target's attempts are used up for.
    """

    name: ClassVar[str] = "events forwarded"
    target: str
    delivered_count: int
    failed_count: int = 0
    dead_count: int = 0

    @property
    def level(self) -> Level:
        """Return info where something did not arrive."""
        return Level.INFO if self.failed_count or self.dead_count else Level.DEBUG


@dataclass(frozen=True, slots=True)
class TargetUnreachable(Event):
    """A target cannot be reached; its events wait until then, and spend no attempt.

    Attributes:
        reason: in words, which name the host and hold no password and nothing of an event.
    """

    name: ClassVar[str] = "target away"
    usual_level: ClassVar[Level] = Level.WARNING
    target: str
    retry_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class TargetPaused(Event):
    """A target was paused, as it fails on, wants nothing more, or a person said so."""

    name: ClassVar[str] = "target paused"
    usual_level: ClassVar[Level] = Level.WARNING
    target: str


@dataclass(frozen=True, slots=True)
class TargetResumed(Event):
    """A paused target is told of events again."""

    name: ClassVar[str] = "target resumed"
    target: str
