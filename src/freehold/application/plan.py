"""Plan: what a rule would do now, counted and not done; nothing is written.

*Invariants*: counting stops at a cap unless an exact count is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from freehold.domain.due import EmptyDue
from freehold.domain.rules import DeleteRow, Rule
from freehold.ports.inspection import Inspection, TenantDue

COUNT_MOST = 100_000
EMPTY_MOST = 10_000
TENANTS_SHOWN = 20
HOLDS_PER_SECOND = 2_000  # a cautious figure for one worker; benchmarks/ measures the real one


@dataclass(frozen=True, slots=True)
class RulePlan:
    """What one rule would release now.

    Attributes:
        due_count: due holds; at least so many where `capped`.
        tenants: those with most due holds, first.
        empty_count: held rows without a usable due, at most `EMPTY_MOST`.
        waits: the first scan would wait for `freehold attach`.
        estimate: how long one worker would take, roughly.
    """

    rule: str
    action: str
    now: datetime
    due_count: int
    capped: bool
    tenant_count: int
    tenants: tuple[TenantDue, ...]
    oldest_due: datetime | None
    empty_count: int
    empty_policy: EmptyDue
    batch_count: int
    estimate: timedelta
    waits: bool


def plan(
    inspection: Inspection,
    rules: Sequence[Rule],
    now: datetime,
    *,
    exact: bool = False,
    tenant: str | None = None,
) -> list[RulePlan]:
    """Plan rules.

    Args:
        exact: count all, however long it takes.
        tenant: what would be done for this one alone; holds without a usable due are left out.

    Raises:
        RuleRefused: table, column or right is missing; doctor says which.
    """
    at_most = None if exact else COUNT_MOST
    return [_plan(inspection, rule, now, at_most, tenant) for rule in rules]


def _plan(
    inspection: Inspection, rule: Rule, now: datetime, at_most: int | None, tenant: str | None
) -> RulePlan:
    due = inspection.due_now(rule, at_most, TENANTS_SHOWN, tenant)
    empty_count = inspection.count_empty(rule, EMPTY_MOST) if tenant is None else 0
    overdue_count = due.due_count + (empty_count if rule.due.on_empty is EmptyDue.NOW else 0)
    return RulePlan(
        rule=rule.name,
        action=describe_action(rule),
        now=now,
        due_count=due.due_count,
        capped=due.capped,
        tenant_count=due.tenant_count,
        tenants=due.tenants,
        oldest_due=due.oldest_due,
        empty_count=empty_count,
        empty_policy=rule.due.on_empty,
        batch_count=-(-due.due_count // rule.batch_size),
        estimate=timedelta(seconds=due.due_count / HOLDS_PER_SECOND),
        waits=tenant is None and overdue_count > rule.attach_limit,
    )


def describe_action(rule: Rule) -> str:
    """Say what expiring does to a row."""
    if isinstance(rule.action, DeleteRow):
        return f"delete the row from {rule.table}"
    return f"set {', '.join(name for name, _ in rule.action.assignments)} in {rule.table}"
