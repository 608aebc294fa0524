"""The ledger: open operations, insert-only records, and what belongs to one transaction.

*Invariants*: `now` is read once per transaction from the database; all that one transaction wrote
becomes visible at its commit, or nothing does.
*Not here*: reading for people (`ports.insight`), the customer's rows (`ports.holds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from freehold.domain.rules import Rule
from freehold.domain.tenant_mapping import TenantMapping
from freehold.ports.due_by_tenant import DueByTenant
from freehold.ports.forwards import Forwards
from freehold.ports.guards import Guard, GuardKind, Guards, HostClocks, Pauses
from freehold.ports.handlers import ExpiredHold, Handler
from freehold.ports.holds import Holds
from freehold.ports.inventory import OwnHolds, Tenants, Units
from freehold.ports.loops import Act, Actions, Tick, Ticks, Workers
from freehold.ports.operations import (
    Operations,
    PastRecord,
    Put,
    ReadyAfter,
    ReadyOperation,
    Skipped,
)
from freehold.ports.rates import AttachRates
from freehold.ports.relay import Relay
from freehold.ports.report_calendar import ReportCalendar
from freehold.ports.reports import Reports
from freehold.ports.restoring import Restoring
from freehold.ports.retention import Retention
from freehold.ports.reviews import FailedAttempt, InReview, Reviews
from freehold.ports.rulestates import RuleCondition, RuleState, RuleStates
from freehold.ports.sends import Sends
from freehold.ports.straight import StraightHolds
from freehold.ports.strays import Strays
from freehold.ports.summary import Summaries
from freehold.ports.tenant_source import SourcedTenants, TenantRows
from freehold.ports.unsubscribed import Unsubscribed
from freehold.ports.windows import Windows

__all__ = [
    "Act",
    "Actions",
    "FailedAttempt",
    "Guard",
    "GuardKind",
    "Guards",
    "HostClocks",
    "InReview",
    "Ledger",
    "Operations",
    "PastRecord",
    "Pauses",
    "Put",
    "ReadyAfter",
    "ReadyOperation",
    "Retention",
    "Reviews",
    "RuleCondition",
    "RuleState",
    "RuleStates",
    "Skipped",
    "Tick",
    "Ticks",
    "Transaction",
    "Workers",
]


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
    def rates(self) -> AttachRates:
        """Return how fast rules take up what was overdue when they were attached."""
        ...

    @property
    def windows(self) -> Windows:
        """Return the operations of mode `window`."""
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
    def summaries(self) -> Summaries:
        """Return the account of asking a language model."""
        ...

    @property
    def reviews(self) -> Reviews:
        """Return what a person may do to dead operations."""
        ...

    @property
    def retention(self) -> Retention:
        """Return what removes the ledger's old rows."""
        ...

    @property
    def report_calendar(self) -> ReportCalendar:
        """Return whose day ends when, and what closes a window."""
        ...

    @property
    def guards(self) -> Guards:
        """Return what froze releases."""
        ...

    @property
    def pauses(self) -> Pauses:
        """Return what people paused."""
        ...

    @property
    def clocks(self) -> HostClocks:
        """Return what the clocks say, for the guard that watches them."""
        ...

    @property
    def tenants(self) -> Tenants:
        """Return the tenants."""
        ...

    @property
    def sourced_tenants(self) -> SourcedTenants:
        """Return our tenants that came from the customer's table."""
        ...

    def tenant_rows(self, mapping: TenantMapping) -> TenantRows:
        """Return the customer's table of tenants.

        Raises:
            RuleRefused: the table or a column is not there.
        """
        ...

    @property
    def restoring(self) -> Restoring:
        """Return the doubts that a restored database leaves."""
        ...

    @property
    def unsubscribed(self) -> Unsubscribed:
        """Return who wants no more reports."""
        ...

    @property
    def units(self) -> Units:
        """Return the units of our own."""
        ...

    @property
    def own_holds(self) -> OwnHolds:
        """Return the holds of our own table."""
        ...

    @property
    def reports(self) -> Reports:
        """Return the facts of the daily reports."""
        ...

    @property
    def sends(self) -> Sends:
        """Return the send ledger."""
        ...

    @property
    def relay(self) -> Relay:
        """Return the outbox as the relay sees it."""
        ...

    @property
    def forwards(self) -> Forwards:
        """Return what a person may do to forwards."""
        ...

    @property
    def strays(self) -> Strays:
        """Return the payloads that nobody can read, and how much queues brought."""
        ...

    def holds(self, rule: Rule) -> Holds:
        """Return the customer's rows under a rule."""
        ...

    def due_by_tenant(self, rule: Rule) -> DueByTenant:
        """Return the rule's due rows, to be read tenant by tenant."""
        ...

    def straight(self, rule: Rule) -> StraightHolds:
        """Return the customer's rows under a rule, to be released without operation rows."""
        ...

    def call(self, handler: Handler, rule: Rule, holds: Sequence[ExpiredHold]) -> None:
        """Call a rule's handler inside this transaction, after all else was written.

        Raises:
            HandlerFailed: it raised, or left the transaction unusable.
            HandlerTimedOut: it was stopped at its time limit.
            StatementTimedOut: a statement of its own ran into the database's limit.
            DatabaseBusy: the database asked it to repeat; repeat the whole transaction.
            DatabaseAway: the connection broke.
            TransactionEnded: it ended the transaction, which may stand.
        """
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

    def glance(self) -> AbstractContextManager[Transaction]:
        """Read one snapshot beside what others write: takes no lock, and nothing may be written.

        Raises:
            DatabaseAway: there is no connection, or it broke.
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

    @property
    def one_writer(self) -> bool:
        """Tell whether a writing transaction keeps all others waiting."""
        ...

    def close(self) -> None:
        """Give the connection back; a second call does nothing."""
        ...
