"""Every adapter is what its port asks for; mypy reads this, nothing runs it.

A line with an ignored error is the proof that mypy would say something: an ignore that is not
needed is an error too.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import assert_type

from freehold.adapters.handlers import PythonHandler
from freehold.adapters.logs import LogLines
from freehold.adapters.sql.holds import SqlHolds
from freehold.adapters.sql.inventory import SqlTenants, SqlUnits
from freehold.adapters.sql.joined_postgres import JoinedPostgres
from freehold.adapters.sql.joined_sqlite import JoinedSqlite
from freehold.adapters.sql.ledger import SqlLedger, SqlTransaction
from freehold.adapters.sql.loops import SqlActions, SqlRuleStates, SqlTicks, SqlWorkers
from freehold.adapters.sql.operations import SqlOperations
from freehold.adapters.sql.own_holds import SqlOwnHolds
from freehold.adapters.sql.postgres import PostgresSession
from freehold.adapters.sql.report_insight import SqlReportsInSight
from freehold.adapters.sql.retention import SqlRetention
from freehold.adapters.sql.reviews import SqlReviews
from freehold.adapters.sql.sends import SqlSends
from freehold.adapters.sql.session import Clock, DatabaseClock, Session
from freehold.adapters.sql.sqlite import SqliteSession
from freehold.adapters.system import Onwards, StopRequest, SystemClock, SystemDice
from freehold.adapters.telling import Everybody
from freehold.domain.messages import Message, Unreadable
from freehold.domain.rules import Rule
from freehold.ports.handlers import Handler
from freehold.ports.holds import Holds
from freehold.ports.inventory import OwnHolds, Tenants, Units
from freehold.ports.ledger import (
    Actions,
    Ledger,
    Operations,
    Reviews,
    RuleStates,
    Ticks,
    Transaction,
    Workers,
)
from freehold.ports.mail import Transport
from freehold.ports.queue import Delivery, Queue
from freehold.ports.report_insight import ReportsInSight
from freehold.ports.retention import Retention
from freehold.ports.sends import Sends
from freehold.ports.system import Checkpoint, Dice, HostClock, Pause
from freehold.ports.telemetry import UNHEARD, Telemetry
from freehold.testing.clock import SetClock, SteadyDice
from freehold.testing.contracts.ground import NOW
from freehold.testing.dice import SeededDice
from freehold.testing.faulty_queue import FaultyQueue
from freehold.testing.mailbox import DeclaredProvider


def ledger_is_its_port(ledger: SqlLedger) -> Ledger:
    return ledger


def transaction_is_its_port(transaction: SqlTransaction) -> Transaction:
    return transaction


def facets_are_their_ports(
    holds: SqlHolds,
    operations: SqlOperations,
    rules: SqlRuleStates,
    ticks: SqlTicks,
    workers: SqlWorkers,
    actions: SqlActions,
    reviews: SqlReviews,
) -> tuple[Holds, Operations, RuleStates, Ticks, Workers, Actions, Reviews]:
    return holds, operations, rules, ticks, workers, actions, reviews


def inventory_is_its_ports(
    tenants: SqlTenants, units: SqlUnits, holds: SqlOwnHolds
) -> tuple[Tenants, Units, OwnHolds]:
    return tenants, units, holds


def sessions_are_their_port(
    sqlite: SqliteSession,
    postgres: PostgresSession,
    joined_sqlite: JoinedSqlite,
    joined_postgres: JoinedPostgres,
) -> list[Session]:
    return [sqlite, postgres, joined_sqlite, joined_postgres]


def clocks_are_their_port() -> list[Clock]:
    return [DatabaseClock(), SetClock(NOW)]


def handler_is_its_port(handler: PythonHandler) -> Handler:
    return handler


def retention_is_its_port(retention: SqlRetention) -> Retention:
    return retention


def listeners_are_their_port(logs: LogLines, everybody: Everybody) -> list[Telemetry]:
    return [logs, everybody, UNHEARD]


def reports_are_their_port(reports: SqlReportsInSight) -> ReportsInSight:
    return reports


def sends_are_their_port(sends: SqlSends) -> Sends:
    return sends


def declared_provider_is_its_port(provider: DeclaredProvider) -> Transport:
    return provider


def queue_is_its_port(queue: FaultyQueue) -> Queue:
    return queue


def process_is_its_ports() -> tuple[Checkpoint, Pause, HostClock, list[Dice]]:
    return Onwards(), StopRequest(), SystemClock(), [SystemDice(), SteadyDice(), SeededDice(0)]


def what_a_caller_gets(ledger: Ledger, rule: Rule, delivery: Delivery) -> None:
    assert_type(ledger.transaction(), AbstractContextManager[Transaction, bool | None])
    with ledger.transaction() as tx:
        assert_type(tx.now, datetime)
        assert_type(tx.holds(rule), Holds)
        tx.now = tx.now  # type: ignore[misc] # a transaction's instant cannot be set
    assert_type(delivery.message, Message | Unreadable)
    assert_type(ledger.server_started_at, datetime | None)


class HalfQueue:
    """Can publish only."""

    publish = FaultyQueue.publish


def half_a_queue_is_none(queue: HalfQueue, ledger: Ledger) -> None:
    whole: Queue = queue  # type: ignore[assignment] # receive, settle, depth, close are missing
    other: Queue = ledger  # type: ignore[assignment] # a ledger is no queue
    del whole, other
