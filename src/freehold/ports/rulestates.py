"""What the ledger knows about each rule: whether it may work, and how carefully."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class RuleCondition(StrEnum):
    """Whether a rule may work."""

    WAITING = "waiting"
    ACTIVE = "active"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class RuleState:
    """What the ledger knows about a rule.

    Attributes:
        reason: why it waits or is paused, in a sentence.
        batch_limit: the largest batch while the rule is handled with care; None is no limit.
        leased: claims take a committed lease first, since a batch took a backend down.
        probe_at: when a paused rule is tried again by itself; None waits for a person.
        crash_count: how often the whole server restarted with this rule in hand.
        scan_paused: who paused the rule's schedule and why; None lets it run.
    """

    rule: str
    fingerprint: str
    condition: RuleCondition
    reason: str | None = None
    batch_limit: int | None = None
    leased: bool = False
    probe_at: datetime | None = None
    probe_count: int = 0
    crash_count: int = 0
    scan_paused: str | None = None


class RuleStates(Protocol):
    """One row a rule."""

    def read(self, rule: str) -> RuleState | None:
        """Return the rule's state, or None for a rule never met."""
        ...

    def write(self, state: RuleState) -> None:
        """Write the whole state; the last writer wins."""
        ...

    def lock(self, rule: str) -> RuleState | None:
        """Read the state and keep others from writing it until the transaction ends.

        Returns:
            None for a rule never met; then there is nothing to lock, and nobody is kept away.
        """
        ...

    def alone(self, rule: str) -> bool:
        """Try to be the only transaction that runs this rule's companions; False if another is."""
        ...
