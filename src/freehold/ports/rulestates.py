"""What the ledger knows about each rule: whether it may work, and how carefully."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from freehold.domain.pauses import Pause, Role
from freehold.ports.guards import Guard


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
        guards: those that freeze the rule.
        pauses: those that nobody ended and that touch the rule; see `Pause.stands`.
        scanned_at: what was due then had been seen by a scan that ended.
        unsettled_at: overdue rows may turn up without alarm until a reading from the beginning
            that began since has ended.
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
    guards: tuple[Guard, ...] = ()
    pauses: tuple[Pause, ...] = ()
    scanned_at: datetime | None = None
    unsettled_at: datetime | None = None

    @property
    def guard(self) -> str | None:
        """Return why the rule is frozen, in a sentence; None while it is not."""
        return self.guards[0].reason if self.guards else None

    def pause_of(self, role: Role, now: datetime) -> Pause | None:
        """Return the pause of a role for every tenant of this rule, if one stands."""
        standing = (one for one in self.pauses if one.role is role and one.stands(now))
        return next((one for one in standing if one.tenant is None), None)

    def paused_tenants(self, now: datetime, *roles: Role) -> frozenset[str]:
        """Return the tenants that are paused in one of these roles; without any, in whichever."""
        return frozenset(
            one.tenant
            for one in self.pauses
            if one.tenant is not None and one.role in (roles or Role) and one.stands(now)
        )


class RuleStates(Protocol):
    """One row a rule."""

    def read(self, rule: str) -> RuleState | None:
        """Return the rule's state, or None for a rule never met."""
        ...

    def write(self, state: RuleState) -> None:
        """Write the state; the last writer wins. What a scan or a guard keeps is left as it is."""
        ...

    def note_pass(self, rule: str, began_at: datetime, *, whole: bool) -> None:
        """Note that a reading of the due rows ended which had begun at that instant.

        Args:
            whole: it began at the beginning, and so settles what `unsettle` left; one that goes on
                from another notes nothing until then.
        """
        ...

    def unsettle(self, rule: str | None) -> None:
        """Let overdue rows of a rule, or of all, turn up without alarm until they were all read."""
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
