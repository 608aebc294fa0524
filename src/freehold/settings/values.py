"""What a process is told from outside, as frozen values; every default stands here or in `Rule`.

*Invariants*: the database URL, which may hold a password, is in no `repr`.
*Not here*: reading them (`sources`), the keys of the file (`shape`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from freehold.domain.errors import UsageError
from freehold.domain.rules import Rule
from freehold.domain.tenant_mapping import TenantMapping
from freehold.ports.retention import Subject
from freehold.settings.values_brokers import QueueSettings, TargetSettings
from freehold.settings.values_report import ReportSettings

DEFAULT_URL = "sqlite:///freehold.db"


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """Where ledger and holds live, and how long one transaction may take."""

    url: str = field(default=DEFAULT_URL, repr=False)
    search_path: str = ""
    lock_timeout: timedelta = timedelta(seconds=2)
    statement_timeout: timedelta = timedelta(seconds=30)
    idle_in_transaction: timedelta = timedelta(seconds=10)
    connect_timeout: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How the loops of `freehold run` pace themselves."""

    lease: timedelta = timedelta(seconds=30)
    sweep: timedelta = timedelta(seconds=15)
    poll: timedelta = timedelta(seconds=1)
    heartbeat: timedelta = timedelta(seconds=5)
    drain: timedelta = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long the ledger keeps what nobody works on any more."""

    records: timedelta = timedelta(days=400)
    attempts: timedelta = timedelta(days=30)
    events: timedelta = timedelta(days=30)
    ticks: timedelta = timedelta(days=30)
    mails: timedelta = timedelta(days=90)

    def ages(self) -> Mapping[Subject, timedelta]:
        """Return the age of everything that is pruned."""
        return {
            Subject.RECORDS: self.records,
            Subject.TALLIES: self.records,
            Subject.ATTEMPTS: self.attempts,
            Subject.EVENTS: self.events,
            Subject.MAILS: self.mails,
            Subject.TICKS: self.ticks,
            Subject.GUARDS: self.ticks,
            Subject.PAUSES: self.ticks,
            Subject.TARGET_PAUSES: self.ticks,
            Subject.STRAYS: self.attempts,
            Subject.DELIVERY_COUNTS: self.ticks,
        }


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What a running process writes to stderr."""

    level: Literal["debug", "info", "warning"] = "info"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a process is told from outside.

    Attributes:
        built_in: the rule of the built-in holds, one of `rules`; None: they are off.
        report: the daily report; None: it is off.
        tenants: the customer's own table of tenants; None: people add them.
        queue: the broker of hints; None: workers ask the ledger.
        targets: who is told of events; without one they end as kept.
        origins: where each value came from, by dotted name: "default", a file, or a variable.
    """

    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    loops: LoopSettings = field(default_factory=LoopSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    logs: LogSettings = field(default_factory=LogSettings)
    built_in: Rule | None = None
    report: ReportSettings | None = None
    tenants: TenantMapping | None = None
    queue: QueueSettings | None = None
    targets: tuple[TargetSettings, ...] = ()
    rules: tuple[Rule, ...] = ()
    origins: dict[str, str] = field(default_factory=dict)

    def rule(self, name: str) -> Rule:
        """Return the rule of that name.

        Raises:
            UsageError: there is none.
        """
        for rule in self.rules:
            if rule.name == name:
                return rule
        known = ", ".join(rule.name for rule in self.rules) or "none is configured"
        raise UsageError(f"There is no rule named {name!r}; known rules: {known}.")
