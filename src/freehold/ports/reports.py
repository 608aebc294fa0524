"""The frozen facts of reports.

*Invariants*: facts are counted from the report's own tallies and their records, and written once.
*Not here*: which tallies are whose (`ports.report_calendar`), mails (`ports.sends`), reading for
people (`ports.report_insight`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Protocol

from freehold.domain.facts import Facts
from freehold.domain.inventory import Tenant
from freehold.domain.reports import ReportReason, ReportState


@dataclass(frozen=True, slots=True)
class RuleNote:
    """What facts need to know of a configured rule.

    Attributes:
        unit_column: of the rule's table, whose text names the unit of a hold.
        own_units: the column holds ids of our own units, which go by their names.
    """

    promise_seconds: float
    unit_column: str | None = None
    own_units: bool = False


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What one rule had open for one tenant, as `domain.facts.RuleFacts` says it."""

    dead_count: int = 0
    oldest_due_at: datetime | None = None


Work = Mapping[str, Mapping[str, OpenWork]]  # by tenant, then rule; absent where nothing is open


@dataclass(frozen=True, slots=True)
class Waiting:
    """A report that has no facts yet, and how many released holds they will be about."""

    report_id: int
    released_count: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The reports whose facts come next, in the order of ids, and the open work of their tenants."""

    waiting: Sequence[Waiting] = ()
    work: Work = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Draft:
    """The facts of one assigned report, counted and not yet written.

    Attributes:
        reason: not None where it is only recorded.
    """

    report_id: int
    facts: Facts
    reason: ReportReason | None


@dataclass(frozen=True, slots=True)
class FrozenReport:
    """A report whose facts are fixed, with whom it goes to as things are now.

    Attributes:
        reason: not None where it is only recorded.
        tenant: None for one that is known from the data alone.
    """

    id: int
    facts: Facts
    facts_digest: str
    due_at: datetime
    reason: ReportReason | None
    tenant: Tenant | None
    unsubscribed: frozenset[str] = frozenset()


class Reports(Protocol):
    """Assigned and frozen reports, inside one transaction."""

    def overview(self, reports_max: int) -> Overview:
        """Name the first reports that wait for facts, and read the open operations once for them."""
        ...

    def overview_of(self, tenant: str, report_date: date) -> Overview:
        """Say as much of one report alone; empty where it does not wait for facts."""
        ...

    def draft(
        self, report_ids: Sequence[int], notes: Mapping[str, RuleNote], work: Work, items_max: int
    ) -> Sequence[Draft]:
        """Count the facts of those of the reports that have none yet, in the order of ids.

        Where there are several writers, the reports are locked, and those that another transaction
        has in hand are left to it; else this only reads, and may be called within a glance.

        Args:
            notes: by the name of each configured rule.

        Again: counts the same of the same report, but for `frozen_at` and the open work. Memory is
        bounded by the reports times `items_max`, however much a tenant released.
        """
        ...

    def freeze(self, drafts: Sequence[Draft]) -> int:
        """Write the facts of reports that have none yet; return how many.

        A report with a reason ends at once, as skipped.

        Again: leaves frozen ones as they are.
        """
        ...

    def frozen(self, until: datetime, limit: int) -> Sequence[FrozenReport]:
        """Lock and return frozen reports that are due until an instant, the earliest first.

        Those that another transaction has in hand are left to it.
        """
        ...

    def end(self, ids: Sequence[int], state: ReportState, reason: ReportReason | None) -> int:
        """End frozen reports that get no mail; return how many."""
        ...

    def reopen(self, tenant: str, report_date: date) -> bool:
        """Let a report that was not sent, and has no mail, be frozen again; False for any other.

        Its facts stay as they are. Again: False.
        """
        ...

    def read(self, tenant: str, report_date: date) -> FrozenReport | None:
        """Lock and return one report with its facts; None while there is none, or it has none yet.

        Whoever writes its mail holds it first, so that of two the later finds the mail written.
        """
        ...
