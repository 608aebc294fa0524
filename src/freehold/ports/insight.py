"""Reading for people: one source of figures for command line, API and dashboard.

*Invariants*: nothing here writes, waits for a writer or keeps one waiting; all answers of one
`Reading` come from one snapshot; every count stops at a limit, so that none grows with a table.
*Not here*: operations in review (`ports.ledger.Reviews`), the checks of the audit (`ports.audit`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from freehold.domain.expiry import HoldRow
from freehold.domain.operations import OperationState, Outcome
from freehold.domain.pauses import Pause
from freehold.domain.retries import Failure
from freehold.domain.rules import Rule
from freehold.ports.audit import Audit
from freehold.ports.event_insight import EventsInSight
from freehold.ports.guards import Guard
from freehold.ports.holds import FoundHold, ScanCursor
from freehold.ports.ledger import FailedAttempt, RuleState
from freehold.ports.report_insight import ReportsInSight
from freehold.ports.strays import DeliveryCounts


@dataclass(frozen=True, slots=True)
class Depth:
    """How much open work one rule has, by state.

    Attributes:
        counts: operations by state; each stops at the limit that was asked for, and the three
            claimable states share one limit, oldest first.
        busy_count: deferred operations whose row the host had locked, within the same limit.
        oldest_available_at: since when the oldest claimable operation could have been taken.
        oldest_due_at: the oldest due among the counted operations that are not in review.
    """

    counts: Mapping[OperationState, int] = field(default_factory=dict)
    busy_count: int = 0
    oldest_available_at: datetime | None = None
    oldest_due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LastTick:
    """The newest run of one rule's schedule."""

    logical_time: datetime
    started_at: datetime
    finished_at: datetime | None
    host_at: datetime
    runner: str
    found_count: int
    new_count: int
    outcome: str | None


@dataclass(frozen=True, slots=True)
class Ended:
    """What ended in a span of time, added up from tallies.

    Attributes:
        lag_counts: expired holds by lag, in the buckets of `domain.tallies`.
        lag_max_seconds: the longest lag exactly; None when nothing expired, or where a tally
            of an older schema does not say.
        redelivery_count: attempts beyond the first of the operations that ended.
        since: the instant from which on every tally is counted; later than asked for where the
            limit cut the span short.
    """

    expired_count: int
    skipped: Mapping[str, int]
    lag_counts: Sequence[int]
    since: datetime
    lag_max_seconds: float | None = None
    redelivery_count: int = 0

    @property
    def attempt_count(self) -> int:
        """Return the attempts of all operations that ended."""
        return self.expired_count + sum(self.skipped.values()) + self.redelivery_count


@dataclass(frozen=True, slots=True)
class Outbox:
    """Events that wait for their confirm."""

    pending_count: int
    oldest_at: datetime | None


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """What came over the queue.

    Attributes:
        stray_count: payloads in review that nobody can read.
        counts: what all processes published and took in a span of whole minutes.
    """

    stray_count: int = 0
    counts: DeliveryCounts = field(default_factory=DeliveryCounts)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """One process, as it last said that it lives."""

    worker: str
    roles: str
    host: str
    pid: int
    in_hand: str | None
    host_at: datetime
    started_at: datetime
    beat_at: datetime


class Figures(Protocol):
    """How things stand, for many rules at once."""

    def depths(self, rules: Sequence[str], at_most: int) -> Mapping[str, Depth]:
        """Count the open work of each rule; each count stops at `at_most`."""
        ...

    def last_ticks(self, rules: Sequence[str]) -> Mapping[str, LastTick]:
        """Return the newest run of each rule that ever ran."""
        ...

    def ended(self, since: datetime, at_most: int) -> Mapping[tuple[str, str | None], Ended]:
        """Add up the tallies of every (rule, tenant) since an instant, the newest `at_most`."""
        ...

    def failed(self, since: datetime, at_most: int) -> Mapping[str, int]:
        """Count the attempts that failed since an instant by class, the newest `at_most`."""
        ...

    def guards(self) -> Sequence[Guard]:
        """Return the guards that stand, oldest first."""
        ...

    def pauses(self) -> Sequence[Pause]:
        """Return the pauses that stand, oldest first."""
        ...

    def outbox(self, at_most: int) -> Outbox:
        """Count the events that wait; stops at `at_most`."""
        ...

    def queue(self, since: datetime, at_most: int) -> QueueFigures:
        """Add up what came over the queue since an instant; strays are counted up to `at_most`."""
        ...

    def heartbeats(self, at_most: int) -> Sequence[Heartbeat]:
        """Return the processes that beat, by name."""
        ...

    def states(self, rules: Sequence[str]) -> Mapping[str, RuleState]:
        """Return the state of each rule that the ledger has met."""
        ...


@dataclass(frozen=True, slots=True)
class OpenOperation:
    """One open operation in full, for the person who asks about its hold."""

    id: int
    rule: str
    tenant: str | None
    hold_key: str
    digest: UUID
    due_at: datetime | None
    generation: int
    state: OperationState
    reason: str | None
    attempt: int
    deferrals: int
    available_at: datetime
    leased_until: datetime | None
    failure: Failure | None
    found_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class EndedOperation:
    """One record."""

    operation_id: int
    digest: UUID
    generation: int
    due_at: datetime | None
    outcome: Outcome
    reason: str | None
    attempt: int
    found_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class ToldEvent:
    """One event of the outbox."""

    id: int
    operation_id: int
    type: str
    generation: int
    at: datetime
    state: str
    published_at: datetime | None


@dataclass(frozen=True, slots=True)
class NotedAct:
    """What a person did to one hold, out of the action log."""

    at: datetime
    actor: str
    action: str
    reason: str


class History(Protocol):
    """Everything that the ledger knows about one hold, oldest first."""

    def open_operations(self, rule: str, hold_key: str) -> Sequence[OpenOperation]:
        """Return the open operations of a hold."""
        ...

    def open_windows(self, rule: str) -> Sequence[OpenOperation]:
        """Return the windows of a rule that wait, or are worked on, oldest first."""
        ...

    def records(self, rule: str, hold_key: str, limit: int) -> Sequence[EndedOperation]:
        """Return the newest records of a hold."""
        ...

    def attempts(self, operation_id: int) -> Sequence[FailedAttempt]:
        """Return the failed attempts of one operation, open or ended."""
        ...

    def events(self, operation_ids: Sequence[int]) -> Sequence[ToldEvent]:
        """Return the events of operations."""
        ...

    def acts(self, subjects: Sequence[str], limit: int) -> Sequence[NotedAct]:
        """Return the newest acts on these subjects (operation keys)."""
        ...


@dataclass(frozen=True, slots=True)
class SeenHold:
    """One row of the customer's table, as a rule sees it now.

    Attributes:
        image: texts of the mapped columns, by column.
        due: the due column's text.
    """

    hold_key: str
    due: str | None
    identity: str
    guard: str
    tenant: str | None
    row: HoldRow
    image: Mapping[str, str | None]


class HoldsInSight(Protocol):
    """One rule's rows, for looking only."""

    def look(self, hold_key: str) -> SeenHold | None:
        """Read one row; None when there is none.

        Raises:
            RowRefused: the key cannot be a value of the key columns.
            RuleRefused: table, column or privilege is missing.
        """
        ...

    def find_due(
        self, after: ScanCursor | None, limit: int, since: datetime | None = None
    ) -> Sequence[FoundHold]:
        """Read due rows as `ports.holds.Holds.find_due` does."""
        ...

    def first_due(self, limit: int, since: datetime | None = None) -> Sequence[FoundHold]:
        """Read the rows that came due first, those due by `since` left out, ties in any order.

        A due that cannot be compared bare (ISO text) yields held rows in key order, due or not.
        """
        ...

    def count_empty_due(self, at_most: int) -> int:
        """Count held rows whose due is NULL or at or before 1970; stops at `at_most`.

        Raises:
            StatementTimedOut: no index serves, and the table is large.
        """
        ...


class Reading(Protocol):
    """One snapshot of ledger and customer's tables."""

    @property
    def now(self) -> datetime:
        """Return the database's clock, read once at the beginning."""
        ...

    @property
    def figures(self) -> Figures:
        """Return how things stand."""
        ...

    @property
    def history(self) -> History:
        """Return what happened to one hold."""
        ...

    @property
    def reports(self) -> ReportsInSight:
        """Return the daily reports."""
        ...

    @property
    def events(self) -> EventsInSight:
        """Return events and the targets that are told of them."""
        ...

    @property
    def audit(self) -> Audit:
        """Return the checks of the invariants."""
        ...

    def holds(self, rule: Rule) -> HoldsInSight:
        """Return the customer's rows under a rule."""
        ...


class Readable(Protocol):
    """A database that people may look at: all that status, why, audit and dashboard are given."""

    def reading(self, *, whole_tables: bool = False) -> AbstractContextManager[Reading]:
        """Open a read-only snapshot.

        Args:
            whole_tables: the plan may read whole tables, and a statement may take ten times as
                long; for checks, never for figures.

        Raises:
            DatabaseAway: there is no connection, or it broke; a repeat is safe.
        """
        ...
