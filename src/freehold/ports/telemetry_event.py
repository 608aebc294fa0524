"""What every event of telemetry is.

*Not here*: the vocabulary (`ports.telemetry`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar


class Level(IntEnum):
    """How much an event matters to the person who reads along."""

    DEBUG = 10
    INFO = 20
    WARNING = 30


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        name: what it is called in logs and in the reference.
    """

    name: ClassVar[str]
    usual_level: ClassVar[Level] = Level.INFO

    @property
    def level(self) -> Level:
        """Return how much this one matters."""
        return self.usual_level
