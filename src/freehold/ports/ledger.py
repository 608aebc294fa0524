"""The ledger: open operations, insert-only records, and what belongs to one transaction.

*Invariants*: `now` is read once per transaction from the database; all that one transaction wrote
becomes visible at its commit, or nothing does.
*Not here*: reading for people (`ports.insight`), the customer's rows (`ports.holds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from freehold.domain.operations import Claim, NewOperation
from freehold.domain.retries import Failure
from freehold.domain.rules import Rule
from freehold.domain.tallies import Tally
from freehold.ports.holds import Holds


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

    def enqueue(self, new: Sequence[NewOperation], tick_id: int | None) -> int:
        """Write open operations.

        Returns:
            How many were new; an identity that is open already is left as it is.
        Again: adds nothing.
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
        """Lock these operations, as far as they are still claimable, or leased under the token."""
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

    def renew(self, lease_token: int, until: datetime) -> int:
        """Prolong a lease; return how many operations it still covers (0 means that it is lost)."""
        ...

    def count_ready(self, rule: str, at_most: int) -> int:
        """Count claimable operations, and stop counting at `at_most`."""
        ...

    def find_ready(
        self, rule: str, after: ReadyAfter | None, limit: int
    ) -> Sequence[ReadyOperation]:
        """Read claimable operations in the order (available_at, id), without claiming them.

        Returns:
            At most `limit`; fewer mean that the end is reached. Others may be at them already.
        """
        ...

    def put_off(self, put: Sequence[Put]) -> None:
        """Defer claimed operations; an attempt that a lease counted is given back.

        Raises:
            ChangeLost: one of them had left the ledger already.
        """
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

    def return_lapsed(self, max_count: int) -> Sequence[Claim]:
        """Make operations ready again whose lease has ended; the attempt stays counted.

        The caller buries those whose attempts are used up.
        """
        ...


class RuleCondition(StrEnum):
    """Whether a rule may work."""

    WAITING = "waiting"
    ACTIVE = "active"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class RuleState:
    """What the ledger knows about a rule.

    Attributes:
        reason: why it waits or is paused, in a sentence.
        batch_limit: the largest batch while the rule is handled with care; None is no limit.
        leased: claims take a committed lease first, since a batch took a backend down.
        probe_at: when a paused rule is tried again by itself; None waits for a person.
        crash_count: how often the whole server restarted with this rule in hand.
        scan_paused: who paused the rule's schedule and why; None lets it run.
    """

    rule: str
    fingerprint: str
    condition: RuleCondition
    reason: str | None = None
    batch_limit: int | None = None
    leased: bool = False
    probe_at: datetime | None = None
    probe_count: int = 0
    crash_count: int = 0
    scan_paused: str | None = None


class RuleStates(Protocol):
    """One row a rule."""

    def read(self, rule: str) -> RuleState | None:
        """Return the rule's state, or None for a rule never met."""
        ...

    def write(self, state: RuleState) -> None:
        """Write the whole state; the last writer wins."""
        ...

    def lock(self, rule: str) -> RuleState | None:
        """Read the state and keep others from writing it until the transaction ends.

        Returns:
            None for a rule never met; then there is nothing to lock, and nobody is kept away.
        """
        ...

    def alone(self, rule: str) -> bool:
        """Try to be the only transaction that runs this rule's companions; False if another is."""
        ...


@dataclass(frozen=True, slots=True)
class Tick:
    """A firing of a schedule.

    Attributes:
        logical_time: the instant that the schedule names; with the schedule it is the key.
        taken_over: an earlier run began and never finished.
        run: counts the runs of this row; what a runner that was replaced does is told apart by it.
    """

    id: int
    schedule: str
    logical_time: datetime
    taken_over: bool = False
    run: int = 1


class Ticks(Protocol):
    """Runs of schedules; a tick row is a lease on its logical time."""

    def start(
        self,
        schedule: str,
        logical_time: datetime,
        runner: str,
        host_at: datetime,
        *,
        rolled_up: bool = False,
    ) -> Tick | None:
        """Begin a run, or take over one that began over 30 s ago and never finished.

        Args:
            rolled_up: several runs share this row; a finished one is opened again.

        Returns:
            None when the tick is done, or another runner is at it.
        Crash: the next start after 30 s takes it over.
        """
        ...

    def finish(self, tick: Tick, found_count: int, new_count: int, outcome: str) -> None:
        """Close the run; adds to the counts where several runs share one row.

        A runner that was replaced meanwhile changes nothing.
        Again: changes nothing.
        """
        ...

    def last(self, schedule: str) -> datetime | None:
        """Return the newest logical time that finished."""
        ...

    def oldest_unfinished(self, schedule: str) -> datetime | None:
        """Return the oldest logical time that began over 30 s ago and never finished."""
        ...


class Workers(Protocol):
    """Heartbeats: who is alive, and with what in hand."""

    def beat(
        self, worker: str, roles: str, host: str, pid: int, host_at: datetime, in_hand: str | None
    ) -> None:
        """Say that the worker lives; `in_hand` names rule and batch size."""
        ...

    def leave(self, worker: str) -> None:
        """Take the worker's row out after a clean stop."""
        ...

    def forget_silent(self, since: datetime) -> Sequence[str]:
        """Take out workers silent since then; return what each had in hand."""
        ...


@dataclass(frozen=True, slots=True)
class Act:
    """What a person did."""

    actor: str
    action: str
    subject: str
    reason: str
    before: str | None = None
    after: str | None = None


class Actions(Protocol):
    """The action log, hash-chained."""

    def record(self, act: Act) -> None:
        """Append an act to the chain, in this transaction."""
        ...


@dataclass(frozen=True, slots=True)
class InReview:
    """One operation that waits for a person.

    Attributes:
        attempt: attempts made so far since it was last requeued.
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


class Transaction(Protocol):
    """One transaction; commits when its `with` block ends, rolls back on any exception."""

    @property
    def now(self) -> datetime:
        """Return the database's clock, read once at the beginning."""
        ...

    @property
    def operations(self) -> Operations:
        """Return the open work."""
        ...

    @property
    def rules(self) -> RuleStates:
        """Return the rules' states."""
        ...

    @property
    def ticks(self) -> Ticks:
        """Return the runs of schedules."""
        ...

    @property
    def workers(self) -> Workers:
        """Return the heartbeats."""
        ...

    @property
    def actions(self) -> Actions:
        """Return the action log."""
        ...

    @property
    def reviews(self) -> Reviews:
        """Return what a person may do to dead operations."""
        ...

    def holds(self, rule: Rule) -> Holds:
        """Return the customer's rows under a rule."""
        ...


class Ledger(Protocol):
    """One database that holds both ledger and customer's table, through one connection.

    Not shared between threads: each thread opens its own.
    """

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Open a transaction.

        Raises:
            DatabaseAway: there is no connection, or it broke; at COMMIT the outcome is unknown.
            DatabaseBusy: repeat the whole transaction.
        """
        ...

    def keep_house(self) -> None:
        """Do what the tables need from time to time: partitions ahead, statistics, checkpoints."""
        ...

    @property
    def server_started_at(self) -> datetime | None:
        """Return when the server was started, or None where there is no server."""
        ...

    @property
    def batch_limit(self) -> int | None:
        """Return the largest batch that leaves the host application room, or None for any."""
        ...

    def close(self) -> None:
        """Give the connection back; a second call does nothing."""
        ...
