"""Operations that wait for a person, and what a person may do to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from freehold.domain.retries import Failure


@dataclass(frozen=True, slots=True)
class InReview:
    """One operation that waits for a person.

    Attributes:
        attempt: attempts made so far since it was last requeued.
        fingerprint: of the mapping that it was built by.
        is_window: it releases all that is due in a span, and names no single hold.
    """

    id: int
    rule: str
    tenant: str | None
    hold_key: str
    digest: UUID
    due_at: datetime | None
    generation: int
    state: str
    reason: str | None
    attempt: int
    failure: Failure | None
    found_at: datetime
    changed_at: datetime
    fingerprint: str | None = None
    is_window: bool = False


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One attempt that ended without a release."""

    attempt: int
    failure: Failure
    failed_at: datetime


class Reviews(Protocol):
    """What a person does to dead operations."""

    def find(self, rule: str, after_id: int, limit: int) -> Sequence[InReview]:
        """Return operations in review of a rule, in id order."""
        ...

    def read(self, operation_ids: Sequence[int]) -> Sequence[InReview]:
        """Return those of the operations that are in review, in id order."""
        ...

    def attempts(self, operation_id: int) -> Sequence[FailedAttempt]:
        """Return the failed attempts of an operation, oldest first; requeues keep them."""
        ...

    def requeue(self, operation_ids: Sequence[int]) -> Sequence[int]:
        """Make dead or discarded operations ready with a fresh count of attempts; return which.

        Those whose due could not be read stay: there is no instant to release them by.
        """
        ...

    def discard(self, operation_ids: Sequence[int], reason: str) -> Sequence[int]:
        """Set dead operations aside; return which. They stay, and stay visible."""
        ...

    def find_open(self, rule: str, after_id: int, limit: int) -> Sequence[int]:
        """Return ids of dead or discarded operations of a rule, in id order."""
        ...

    def close(self, operation_ids: Sequence[int], reason: str) -> int:
        """Move dead or discarded operations to `record` as closed; return how many.

        What is not in review stays as it is.
        """
        ...

    def withdraw(self, rule: str, limit: int, reason: str) -> Sequence[int]:
        """Set open operations of a rule aside, in review or not; return which.

        Those under a live lease, or locked by another transaction, stay as they are.
        Again: goes on with others while there are any; close them before that.
        """
        ...

    def count_open(self, rule: str, at_most: int) -> int:
        """Count the open operations of a rule, and stop counting at `at_most`."""
        ...
