"""The frozen facts of reports.

*Invariants*: facts are counted from the report's own tallies and their records, and written once.
*Not here*: which tallies are whose (`ports.report_calendar`), mails (`ports.sends`), reading for
people (`ports.report_insight`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from freehold.domain.facts import Facts
from freehold.domain.inventory import Tenant
from freehold.domain.reports import ReportReason, ReportState


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

    def freeze(self, limit: int, promises: Mapping[str, float], items_max: int) -> int:
        """Count and write the facts of at most `limit` assigned reports; return how many.

        Args:
            promises: seconds by the name of each configured rule.

        Again: leaves frozen ones as they are. Memory is bounded by `limit` times `items_max`.
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

    def read(self, tenant: str, report_date: date) -> FrozenReport | None:
        """Return one report with its facts; None while there is none, or it has none yet."""
        ...
