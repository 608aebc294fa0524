"""Previewing: what a tenant's next report says so far, while its day is not closed.

*Invariants*: the day is closed, and its facts are counted, by the statements of closing and freezing,
in a transaction that is rolled back; so a preview says what the report would say.
*Not here*: how a report looks (`adapters.rendering`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from freehold.application.reporting.calendar import TALLIES, Calendar, closing_of
from freehold.application.reporting.closing import nobody
from freehold.domain.errors import RefusedByState
from freehold.domain.facts import Facts
from freehold.domain.inventory import Tenant
from freehold.domain.reports import ReportPolicy
from freehold.ports.ledger import Ledger, Transaction
from freehold.ports.reports import RuleNote


class _Undone(Exception):
    """Ends a transaction that was only a trial."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The facts of a day that is not closed, as they are by now.

    Attributes:
        tenant: None for one that is known from the data alone.
        is_over: the day has ended, and only its closing is left to do.
    """

    facts: Facts
    tenant: Tenant | None
    is_over: bool


def preview(
    ledger: Ledger, policy: ReportPolicy, notes: Mapping[str, RuleNote], tenant: str
) -> Preview:
    """Count what the tenant's next report says so far.

    Where there is one writer, others wait while it counts.

    Raises:
        RefusedByState: the tenant gets no reports, or another process has its day in hand.
        UsageError: nobody has heard of the tenant.
    """
    Calendar(ledger, policy).follow(every=timedelta(0))
    found: list[Preview] = []
    with suppress(_Undone), ledger.transaction() as tx:
        found.append(_counted(tx, policy, notes, tenant))
        raise _Undone
    return found[0]


def _counted(
    tx: Transaction, policy: ReportPolicy, notes: Mapping[str, RuleNote], tenant: str
) -> Preview:
    group = tx.report_calendar.group_of(tenant)
    if group is None:
        raise nobody(tx, tenant)
    closing = closing_of(group, policy, tx.now)
    day = closing.window.report_date
    if not tx.report_calendar.close(closing, 1, tenant, TALLIES):
        raise RefusedByState(
            f"The day {day} of tenant {tenant!r} is in the hands of another process; try again in "
            "a moment."
        )
    overview = tx.reports.overview_of(tenant, day)
    if not overview.waiting:
        raise RefusedByState(
            f"The day {day} of tenant {tenant!r} has too many releases to be counted while it runs; "
            "its report comes when it is over."
        )
    ids = [one.report_id for one in overview.waiting]
    (draft,) = tx.reports.draft(ids, notes, overview.work, policy.items_max)
    known = next(iter(tx.tenants.read([tenant])), None)
    return Preview(draft.facts, known, closing.window.end_at <= tx.now)
