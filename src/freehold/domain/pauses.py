"""What a person may pause: a role, for all rules or one, for all tenants or one.

Reports belong to no rule: their role is paused for all tenants or one. A broker knows no tenants:
`dispatch` is paused for all rules or one. `relay` is paused as a whole; a single target has a pause
of its own (`ports.relay`).

*Not here*: a rule that pauses itself because it fails as a whole (`ports.rulestates`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """What a process does, and what can be paused."""

    SCAN = "scan"
    DISPATCH = "dispatch"
    WORK = "work"
    RELAY = "relay"
    REPORT = "report"


RULE_ROLES = (Role.SCAN, Role.DISPATCH, Role.WORK)  # those that a rule knows


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause that a person began.

    Attributes:
        rule: None is every rule.
        tenant: None is every tenant.
        until: it ends by itself then; None waits for a person.
    """

    role: Role
    rule: str | None
    tenant: str | None
    by: str
    reason: str
    paused_at: datetime
    until: datetime | None = None

    def stands(self, now: datetime) -> bool:
        """Tell whether it is not over yet."""
        return self.until is None or now < self.until

    def __str__(self) -> str:
        """Say who, why and until when."""
        until = "" if self.until is None else f", until {self.until:%Y-%m-%d %H:%M:%S} UTC"
        return f"by {self.by}: {self.reason}{until}"
