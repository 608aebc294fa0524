"""The facts of one report: what is frozen, and stays as it is for ever.

*Invariants*: numbers come from tallies and records alone; nothing in here is about a guest.
*Not here*: the bytes (`facts_text`), how they are counted (`adapters/sql/facts`), how they look
(`adapters/rendering`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

FACTS_VERSION = 1  # of the canonical form; a reader of an older one stays


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """What one rule did for one tenant within the window.

    Attributes:
        unit_count: different units among the released holds; where the rule names no unit column,
            each hold key is a unit of its own.
        skipped: counts by reason.
        retried_count: attempts beyond the first, of all operations that ended.
        dead_count: operations that waited for a person when the facts were frozen; those that a
            person set aside are not among them.
        oldest_due_at: the oldest due that had not been released when the facts were frozen and is
            not in review; None where nothing was overdue.
        lag_p50_seconds, lag_p95_seconds: upper bounds; None when nothing was released. They and the
            longest are None too where tallies of a release before the longest was kept are counted
            and none of the bounds holds them.
        promise_seconds: the rule's promise; None where the rule is no longer configured.
        within_promise_count: released holds whose lag was surely within the promise.
    """

    rule: str
    released_count: int = 0
    unit_count: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    retried_count: int = 0
    dead_count: int = 0
    oldest_due_at: datetime | None = None
    lag_p50_seconds: float | None = None
    lag_p95_seconds: float | None = None
    lag_max_seconds: float | None = None
    promise_seconds: float | None = None
    within_promise_count: int | None = None


@dataclass(frozen=True, slots=True)
class LateFacts:
    """What was committed after the report of its own day was frozen, or before there was any.

    Attributes:
        report_date: the day that it belongs to; None for what lies before the first report, or
            between two of them.
    """

    report_date: date | None
    released_count: int
    skipped_count: int


@dataclass(frozen=True, slots=True)
class ReleasedItem:
    """One released hold of the list, in the order of release; of one instant, in the order of due.

    Attributes:
        unit: the text of the rule's unit column, or the unit's name for built-in holds; None
            without one.
    """

    rule: str
    hold_key: str
    unit: str | None
    due_at: datetime
    released_at: datetime
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a report says.

    Attributes:
        watermark_at: no earlier tally could still appear then, as far as the database knew.
        rules: by name; a rule that did nothing and has nothing open is absent.
        late: by date, what lies before the first report in front.
        items: the first released holds of the window, at most `items_max`.
        day_before_count, week_before_count: released in the reports of the day and of seven days
            before; None where there is none.
    """

    tenant: str
    tenant_name: str
    report_date: date
    start_at: datetime
    end_at: datetime
    zone: str
    tz_version: str
    watermark_at: datetime
    frozen_at: datetime
    rules: tuple[RuleFacts, ...] = ()
    late: tuple[LateFacts, ...] = ()
    items: tuple[ReleasedItem, ...] = ()
    day_before_count: int | None = None
    week_before_count: int | None = None
    version: int = FACTS_VERSION

    @property
    def released_count(self) -> int:
        """Return the holds released within the window, of all rules."""
        return sum(rule.released_count for rule in self.rules)

    @property
    def is_empty(self) -> bool:
        """Tell a day on which nothing came due, and that leaves nothing to a person."""
        return not self.late and not any(
            rule.released_count or rule.skipped or rule.dead_count or rule.oldest_due_at
            for rule in self.rules
        )
