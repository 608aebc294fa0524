"""How much turned up overdue under one rule: counted up to a limit, and sampled beyond it.

*Invariants*: no count reads more rows than its limit, whatever stands in the table or in review.
*Not here*: what is made of the weight (`application.guards`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from freehold.adapters.sql.catalogue import quoted
from freehold.adapters.sql.session import Runner
from freehold.domain.due import due_bound, is_due, read_due
from freehold.domain.rules import Rule
from freehold.ports.holds import FoundHold, Weighing, Weight

SAMPLE_LEAST = 30  # held rows; a sample of fewer says nothing
SAMPLE_PAGES = 300  # of PostgreSQL's 8 kB
SAMPLE_ROWS = 2_000  # looked up one by one in SQLite


def weigh_by_index(
    runner: Runner, fixed: Mapping[str, Any], rule: Rule, wanted: Weighing
) -> Weight:
    """Weigh the rows on both sides of the cursor that is in `fixed`.

    A migration may come while a reading is under way: some of its rows then stand before the cursor.
    """
    bound = due_bound(rule.due, wanted.upto)
    then = {**fixed, "due_upto": bound.upto, "tenants": list(wanted.without)}
    then |= {"due_gap_from": bound.gap_from, "due_gap_to": bound.gap_to}
    sides = [
        runner.rows(name, **then, limit=wanted.at_most)[0]
        for name in ("weigh_overdue", "weigh_before")
    ]
    seen, count = sum(side[0] for side in sides), sum(side[1] for side in sides)
    if count <= wanted.beyond:
        return Weight(count)
    if any(side[0] >= wanted.at_most for side in sides):
        return Weight(count, _sampled(runner, then, rule))
    others = (seen - count) + int(runner.rows("count_later", **then, limit=count + 1)[0][0])
    return Weight(count, count / (count + others))


def _sampled(runner: Runner, fixed: Mapping[str, Any], rule: Rule) -> float:
    """Return the share in a sample; one that says too little counts as the whole."""
    if runner.session.dialect == "sqlite":
        if runner.rows("is_without_rowid", table=rule.table.name):
            return 1.0
        held, overdue = runner.rows("sample_held", **fixed, size=SAMPLE_ROWS)[0]
    else:
        pages = int(runner.rows("table_pages", quoted=quoted(rule.table))[0][0])
        percent = min(100.0, 100.0 * SAMPLE_PAGES / max(1, pages))
        held, overdue = runner.rows("sample_held", **fixed, percent=percent)[0]
    return overdue / held if held >= SAMPLE_LEAST else 1.0


def weigh_by_reading(rows: Iterable[FoundHold], rule: Rule, wanted: Weighing) -> Weight:
    """Weigh held rows in key order, as far as they may be looked at: text needs Python."""
    seen = count = 0
    for row in islice(rows, wanted.at_most):
        seen += 1
        due_at = read_due(rule.due, row.due)
        overdue = isinstance(due_at, datetime) and is_due(rule.due, due_at, wanted.upto)
        count += overdue and not row.is_open and row.tenant not in wanted.without
    return Weight(count, count / seen if seen else 0.0)
