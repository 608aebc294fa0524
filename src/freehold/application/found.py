"""What becomes of found rows: operations, or none while they are not due or open already.

*Not here*: reading rows (`scan`, `window`), releasing them without operations (`straight`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from freehold.domain.due import DueProblem, EmptyDue, is_due, read_due
from freehold.domain.names import KEY_BYTES_MAX, NO_IDENTITY, digest
from freehold.domain.operations import NewOperation
from freehold.domain.retries import MESSAGE_LENGTH
from freehold.domain.rules import Rule
from freehold.ports.holds import FoundHold

MALFORMED_DUE = "malformed due"


def due_rows(
    rule: Rule, rows: Iterable[FoundHold], now: datetime
) -> Iterable[tuple[FoundHold, datetime | DueProblem]]:
    """Read the due of each row; leave out readable ones that are not due (text scans have them)."""
    for row in rows:
        due = read_due(rule.due, row.due)
        if isinstance(due, DueProblem) or is_due(rule.due, due, now):
            yield row, due


def new_operations(
    rule: Rule, found: Iterable[tuple[FoundHold, datetime | DueProblem]], now: datetime
) -> list[NewOperation]:
    """Make the operations of the rows that have none open."""
    return [
        operation
        for row, due in found
        if not row.is_open and (operation := new_operation(rule, row, due, now))
    ]


def new_operation(
    rule: Rule, row: FoundHold, due: datetime | DueProblem, now: datetime
) -> NewOperation | None:
    """Make the operation of a found row; None where the policy says that it is never due."""
    if len(row.hold_key.encode()) > KEY_BYTES_MAX:
        return malformed(rule, row, f"its key is longer than {KEY_BYTES_MAX} bytes")
    dead_reason = None
    due_at: datetime | None = None
    if isinstance(due, datetime):
        due_at = due
    elif rule.due.on_empty is EmptyDue.NOW:
        due_at = now - rule.due.grace
    elif rule.due.on_empty is EmptyDue.REVIEW:
        dead_reason = f"{MALFORMED_DUE}: {due.value}"
    else:
        return None
    return NewOperation(
        rule=rule.name,
        tenant=row.tenant,
        hold_key=row.hold_key,
        digest=digest(rule.name, row.hold_key, row.identity),
        identity=row.identity,
        guard=row.guard,
        due_at=due_at,
        dead_reason=dead_reason,
    )


def malformed(rule: Rule, row: FoundHold, why: str) -> NewOperation:
    """Make the operation of a row that cannot even be written down: named by a digest, in review."""
    identity = digest(rule.name, row.hold_key, row.identity)
    return NewOperation(
        rule=rule.name,
        tenant=None,
        hold_key=f"digest {identity}",
        digest=identity,
        identity=NO_IDENTITY,
        guard=NO_IDENTITY,
        due_at=None,
        dead_reason=f"malformed: {why}"[:MESSAGE_LENGTH],
    )
