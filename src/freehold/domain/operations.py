"""The life of an operation: the durable row of open work, and the record of how it ended.

*Invariants*: an operation is open (in `operation`) or ended (in `record`), never both; only the
moves of `MOVES` happen. Drawn in docs/explanation/architecture.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from freehold.domain.names import operation_key

GENERATIONS_MAX = 10  # a hold that comes due again more often than this goes to review


class OperationState(StrEnum):
    """Where an open operation stands."""

    READY = "ready"
    LEASED = "leased"
    RETRYING = "retrying"
    DEFERRED = "deferred"
    DEAD = "dead"
    DISCARDED = "discarded"


class Outcome(StrEnum):
    """How an operation ended."""

    EXPIRED = "expired"
    SKIPPED = "skipped"
    CLOSED = "closed"


CLAIMABLE = (OperationState.READY, OperationState.RETRYING, OperationState.DEFERRED)

# Where an operation may go from the hands of a worker; DISCARDED is for a rule that was detached.
_FROM_WORK: tuple[OperationState | Outcome, ...] = (
    OperationState.RETRYING,
    OperationState.DEFERRED,
    OperationState.DEAD,
    OperationState.DISCARDED,
    Outcome.EXPIRED,
    Outcome.SKIPPED,
)

MOVES: dict[OperationState, tuple[OperationState | Outcome, ...]] = {
    **dict.fromkeys(CLAIMABLE, (OperationState.LEASED, *_FROM_WORK)),
    OperationState.LEASED: (OperationState.READY, *_FROM_WORK, Outcome.CLOSED),  # closed: a window
    OperationState.DEAD: (OperationState.READY, OperationState.DISCARDED, Outcome.CLOSED),
    OperationState.DISCARDED: (OperationState.READY, Outcome.CLOSED),
}


@dataclass(frozen=True, slots=True)
class NewOperation:
    """Open work about to be written.

    Attributes:
        identity: packed due and token texts, exactly as the database wrote them.
        guard: packed texts of the other predicate columns.
        due_at: None only where the due could not be read; such an operation starts dead.
        dead_reason: not None for an operation that starts in review.
    """

    rule: str
    tenant: str | None
    hold_key: str
    digest: UUID
    identity: str
    guard: str
    due_at: datetime | None
    generation: int = 1
    after_expired: bool = False
    dead_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """One operation that this transaction or lease holds.

    Attributes:
        attempt: attempts that were counted so far; under a lease the current one is included.
        lease_token: the fencing token; None where the row lock is the claim.
        deferrals: how often in a row it was put off as busy.
        available_at: since when it is claimable; None where it was not read.
        fingerprint: of the mapping that it was built by; None where nobody noted it.
    """

    id: int
    rule: str
    tenant: str | None
    hold_key: str
    digest: UUID
    due_at: datetime
    generation: int
    after_expired: bool
    attempt: int
    deferrals: int = 0
    lease_token: int | None = None
    available_at: datetime | None = None
    fingerprint: str | None = None

    @property
    def failed_count(self) -> int:
        """Return how many attempts ended badly before the current one."""
        return self.attempt if self.lease_token is None else self.attempt - 1

    def leased(self, lease_token: int) -> Claim:
        """Return the claim as it is under a lease, with one attempt more.

        Written out, since `dataclasses.replace` takes twice as long.
        """
        return Claim(
            self.id,
            self.rule,
            self.tenant,
            self.hold_key,
            self.digest,
            self.due_at,
            self.generation,
            self.after_expired,
            self.attempt + 1,
            self.deferrals,
            lease_token,
            self.available_at,
            self.fingerprint,
        )

    @property
    def operation_key(self) -> str:
        """Return the text form of the identity."""
        return operation_key(self.rule, self.digest)
