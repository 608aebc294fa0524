"""How fast a rule may take up what was overdue when it was attached."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class AttachRate:
    """A rate that stands until the backlog has been read.

    Attributes:
        per_second: holds.
        attached_at: what was due before is the backlog.
        credited_at: what the rate allows up to then is used up.
    """

    per_second: float
    attached_at: datetime
    credited_at: datetime


class AttachRates(Protocol):
    """At most one rate a rule."""

    def write(self, rule: str, per_second: float) -> None:
        """Let a rule that is attached now take up so many a second; replaces another rate."""
        ...

    def lock(self, rule: str) -> AttachRate | None:
        """Read a rule's rate and keep others from spending of it until the transaction ends.

        Returns:
            None where the rule goes at full speed.
        """
        ...

    def spend(self, rule: str, credited_at: datetime) -> None:
        """Note up to when the rate is used up; may lie ahead."""
        ...

    def end(self, rule: str) -> None:
        """Let the rule go at full speed. Again: changes nothing."""
        ...
