"""What a person does to dead operations, in SQL; implements `ports.ledger.Reviews`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from freehold.adapters.sql.operations import remove_operations
from freehold.adapters.sql.session import Row, Runner
from freehold.domain.retries import Failure, FailureClass
from freehold.ports.ledger import FailedAttempt, InReview


class SqlReviews:
    """Operations in review inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def find(self, rule: str, after_id: int, limit: int) -> Sequence[InReview]:
        """Return operations in review of a rule, in id order."""
        rows = self._sql.rows("find_in_review", rule=rule, after_id=after_id, limit=limit)
        return [self._in_review(row) for row in rows]

    def read(self, operation_ids: Sequence[int]) -> Sequence[InReview]:
        """Return those of the operations that are in review."""
        rows = self._sql.rows("read_in_review", ids=list(operation_ids))
        return [self._in_review(row) for row in rows]

    def _in_review(self, row: Row) -> InReview:
        session = self._sql.session
        return InReview(
            id=row[0],
            rule=row[1],
            tenant=row[2],
            hold_key=row[3],
            digest=session.uuid(row[4]),
            due_at=session.instant(row[5]),
            generation=row[6],
            state=row[7],
            reason=row[8],
            attempt=row[9],
            failure=None if row[10] is None else _failure(row[10], row[11], row[12]),
            found_at=session.sure_instant(row[13]),
            changed_at=session.sure_instant(row[14]),
            fingerprint=row[15],
            is_window=bool(row[16]),
        )

    def attempts(self, operation_id: int) -> Sequence[FailedAttempt]:
        """Return the failed attempts of an operation, oldest first."""
        instant = self._sql.session.sure_instant
        return [
            FailedAttempt(row[0], _failure(row[1], row[2], row[3]), instant(row[4]))
            for row in self._sql.rows("failed_attempts", id=operation_id)
        ]

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

    def withdraw(self, rule: str, limit: int, reason: str) -> Sequence[int]:
        """Set open operations of a rule aside."""
        rows = self._sql.rows("withdraw", rule=rule, limit=limit, reason=reason, now=self._now)
        return sorted(row[0] for row in rows)

    def count_open(self, rule: str, at_most: int) -> int:
        """Count the open operations of a rule up to a limit."""
        return int(self._sql.rows("count_open", rule=rule, limit=at_most)[0][0])

    def close(self, operation_ids: Sequence[int], reason: str) -> int:
        """Move operations in review to `record` as closed."""
        ids = [row[0] for row in self._sql.rows("read_in_review", ids=list(operation_ids))]
        if not ids:
            return 0
        count = self._sql.count("close", ids=ids, reason=reason, now=self._now)
        remove_operations(self._sql, ids)
        return count


def _failure(failure_class: str, code: str | None, message: str | None) -> Failure:
    return Failure(FailureClass(failure_class), message or "", code or "")
