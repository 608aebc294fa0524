"""What a person does to dead operations, in SQL; implements `ports.ledger.Reviews`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from freehold.adapters.sql.operations import remove_operations
from freehold.adapters.sql.session import Runner


class SqlReviews:
    """Operations in review inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def requeue(self, operation_ids: Sequence[int]) -> Sequence[int]:
        """Make dead or discarded operations ready again."""
        rows = self._sql.rows("requeue", ids=list(operation_ids), now=self._now)
        return sorted(row[0] for row in rows)

    def discard(self, operation_ids: Sequence[int], reason: str) -> Sequence[int]:
        """Set dead operations aside."""
        rows = self._sql.rows("discard", ids=list(operation_ids), reason=reason, now=self._now)
        return sorted(row[0] for row in rows)

    def find_open(self, rule: str, after_id: int, limit: int) -> Sequence[int]:
        """Return ids of operations in review of a rule, in id order."""
        rows = self._sql.rows("open_of_rule", rule=rule, after_id=after_id, limit=limit)
        return [row[0] for row in rows]

    def close(self, operation_ids: Sequence[int], reason: str) -> int:
        """Move operations in review to `record` as closed."""
        if not operation_ids:
            return 0
        ids = list(operation_ids)
        count = self._sql.count("close", ids=ids, reason=reason, now=self._now)
        remove_operations(self._sql, ids)
        return count
