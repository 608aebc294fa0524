"""The open work of all rules, inside one transaction: enqueue, claim, lease, fail, finish.

*Invariants*: an operation is claimed by one transaction or one lease at a time; every write under
a lease names its token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from freehold.domain.operations import Claim, NewOperation
from freehold.domain.retries import Failure
from freehold.domain.tallies import Tally


@dataclass(frozen=True, slots=True)
class PastRecord:
    """How often one identity ended before: what a new generation is counted from.

    Attributes:
        expired: one of these records, not only the newest, ended expired.
    """

    hold_key: str
    digest: UUID
    generation: int
    expired: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """An operation that ends without a change."""

    operation_id: int
    tally_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Put:
    """An operation put off: it stays open and spends no attempt."""

    operation_id: int
    reason: str
    available_at: datetime
    deferrals: int


@dataclass(frozen=True, slots=True)
class ReadyAfter:
    """The place (available_at, id) after which a reading of ready operations goes on."""

    available_at: datetime
    operation_id: int


@dataclass(frozen=True, slots=True)
class ReadyOperation:
    """An operation that a message may name.

    Attributes:
        attempt: the attempt that handling it would make, from 1.
    """

    operation_id: int
    rule: str
    digest: UUID
    hold_key: str
    due_at: datetime
    available_at: datetime
    attempt: int


class Operations(Protocol):
    """The open work of all rules."""

    def enqueue(
        self, new: Sequence[NewOperation], tick_id: int | None, fingerprint: str | None = None
    ) -> int:
        """Write open operations.

        Args:
            fingerprint: of the mapping that they were built by.

        Returns:
            How many were new; an identity that is open already is left as it is.
        Again: adds nothing.
        """
        ...

    def rebuild(self, built: Mapping[int, NewOperation], fingerprint: str) -> None:
        """Give claimed operations the identity, fence and due that another mapping reads.

        Generation and attempts stay.

        Args:
            built: what each is from now on, by operation id.

        Raises:
            ChangeLost: one of them had left the ledger already.
            RowRefused: an operation of the same identity is open.
        """
        ...

    def renumber(self, following: Sequence[NewOperation]) -> None:
        """Give operations written in this transaction their generation, or a reason to be dead.

        One that has that generation already, or a later one, stays as it is.
        """
        ...

    def past(
        self, rule: str, found: Sequence[tuple[str, UUID]], since: datetime
    ) -> Sequence[PastRecord]:
        """Sum up the records of each (hold_key, digest) that ended at or after `since`."""
        ...

    def claim(self, rule: str, max_count: int, floor: datetime | None) -> Sequence[Claim]:
        """Lock claimable operations of one rule for this transaction.

        The oldest by `available_at` are taken, and come back in any order; operations that another
        transaction holds are passed over.

        Args:
            floor: nothing available before this instant is looked at; None reads all.
        Crash: the lock ends with the connection; no attempt is counted.
        """
        ...

    def newest(self, rule: str, max_count: int) -> Sequence[Claim]:
        """Lock the claimable operations that were written last; a sample of the rule's rows."""
        ...

    def claim_these(
        self, operation_ids: Sequence[int], lease_token: int | None = None
    ) -> Sequence[Claim]:
        """Lock these operations, as far as they are still claimable, or leased under the token.

        A window is no hold, and is given only under its lease.
        """
        ...

    def lease(
        self, rule: str, max_count: int, floor: datetime | None, until: datetime
    ) -> Sequence[Claim]:
        """Claim for longer than this transaction: counts an attempt and draws a fencing token.

        Crash: after the commit the operations come back when the lease ends.
        """
        ...

    def lease_these(self, operation_ids: Sequence[int], until: datetime) -> Sequence[Claim]:
        """Lease these operations, as far as they are still claimable; counts an attempt."""
        ...

    def lease_claimed(self, claims: Sequence[Claim], until: datetime) -> Sequence[Claim]:
        """Lease operations that this transaction has claimed; counts an attempt."""
        ...

    def still_leased(self, operation_ids: Sequence[int], lease_token: int) -> set[int]:
        """Lock these operations, as far as they are still leased under the token; return their ids.

        What was taken back by the sweep, claimable or not, is left out.
        """
        ...

    def any_leased(self) -> bool:
        """Tell whether an operation of any rule is under a lease that has not ended."""
        ...

    def renew(self, lease_token: int, until: datetime) -> int:
        """Prolong a lease; return how many operations it still covers (0 means that it is lost)."""
        ...

    def count_ready(self, rule: str, at_most: int, floor: datetime | None = None) -> int:
        """Count claimable operations, and stop counting at `at_most`.

        Args:
            floor: nothing available before this instant is looked at; None reads all.
        """
        ...

    def oldest_ready(self, rule: str, floor: datetime | None) -> datetime | None:
        """Return since when the oldest claimable operation is claimable; None when none is.

        Args:
            floor: nothing available before this instant is looked at; None reads all.
        """
        ...

    def find_ready(
        self, rule: str, after: ReadyAfter | None, limit: int
    ) -> Sequence[ReadyOperation]:
        """Read claimable operations in the order (available_at, id), without claiming them.

        Returns:
            At most `limit`; fewer mean that the end is reached. Others may be at them already.
        """
        ...

    def still_ready(self, operation_ids: Sequence[int]) -> Sequence[ReadyOperation]:
        """Read those of the operations that are claimable, in the order of `find_ready`."""
        ...

    def put_off(self, put: Sequence[Put]) -> None:
        """Defer claimed operations; an attempt that a lease counted is given back.

        Raises:
            ChangeLost: one of them had left the ledger already.
        """
        ...

    def bring_back(self, rule: str, tenant: str, max_count: int) -> int:
        """Make operations of a tenant claimable now that were put off as paused; return how many."""
        ...

    def fail(self, claim: Claim, failure: Failure, attempt: int, retry_at: datetime | None) -> bool:
        """Record a failed attempt; a `retry_at` of None makes the operation dead.

        Returns:
            False when the claim no longer holds (fenced): nothing was written.
        """
        ...

    def bury(self, claims: Sequence[Claim], reason: str, failure: Failure) -> None:
        """Make claimed operations dead, for a person to look at."""
        ...

    def add_tallies(self, tallies: Sequence[Tally]) -> Sequence[int]:
        """Write tallies; return their ids in order."""
        ...

    def finish_skipped(self, skipped: Sequence[Skipped]) -> None:
        """Move operations to `record` with outcome skipped.

        Raises:
            ChangeLost: one of them had left the ledger already.
        """
        ...

    def tell_skipped(self, skipped: Sequence[Skipped]) -> None:
        """Write the event `hold.skipped.v1` of operations, before `finish_skipped`.

        What it carries is the reason; its tokens are empty, since the row may be gone. Like every
        event it waits while a target is active, else it is kept.

        Raises:
            ChangeLost: one of them had left the ledger already.
        """
        ...

    def return_lapsed(self, max_count: int) -> Sequence[Claim]:
        """Make operations ready again whose lease has ended; the attempt stays counted.

        The caller buries those whose attempts are used up.
        """
        ...
