"""The SQL ledger: transactions over one session; implements `ports.ledger.Ledger`.

*Invariants*: a boundary is reached just before and just after every commit; a rule is compiled
against the live catalogue, and again after the database refused it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from freehold.adapters.sql.catalogue import columns_of, is_plain_table, quote, quoted
from freehold.adapters.sql.due_by_tenant import Served, SqlDueByTenant
from freehold.adapters.sql.facts import SqlReports
from freehold.adapters.sql.forwards import SqlForwards
from freehold.adapters.sql.guards import ClockMemory, SqlGuards, SqlHostClocks, SqlPauses
from freehold.adapters.sql.holds import SqlHolds
from freehold.adapters.sql.housekeeping import keep_house
from freehold.adapters.sql.inventory import SqlTenants, SqlUnits
from freehold.adapters.sql.loops import SqlActions, SqlRuleStates, SqlTicks, SqlWorkers
from freehold.adapters.sql.mapping import RuleSql, compile_rule
from freehold.adapters.sql.operations import SqlOperations
from freehold.adapters.sql.own_holds import SqlOwnHolds
from freehold.adapters.sql.rates import SqlAttachRates
from freehold.adapters.sql.reading import SqlReading, open_reading
from freehold.adapters.sql.relay import SqlRelay
from freehold.adapters.sql.report_calendar import SqlReportCalendar
from freehold.adapters.sql.restoring import SqlRestoring
from freehold.adapters.sql.retention import SqlRetention
from freehold.adapters.sql.reviews import SqlReviews
from freehold.adapters.sql.sends import SqlSends
from freehold.adapters.sql.session import Runner, Session
from freehold.adapters.sql.statements import fill, load
from freehold.adapters.sql.straight import SqlStraight
from freehold.adapters.sql.strays import SqlStrays
from freehold.adapters.sql.summaries import SqlSummaries
from freehold.adapters.sql.tenant_source import SqlSourcedTenants, SqlTenantRows
from freehold.adapters.sql.unsubscribed import SqlUnsubscribed
from freehold.adapters.sql.windows import SqlWindows
from freehold.domain.clocks import ClockReading
from freehold.domain.due import DueKind
from freehold.domain.errors import RuleRefused
from freehold.domain.rules import Rule
from freehold.domain.tenant_mapping import TenantMapping
from freehold.ports.handlers import ExpiredBatch, ExpiredHold, Handler
from freehold.ports.system import Boundary, Checkpoint, HostClock


@dataclass(frozen=True, slots=True)
class WatchedClock:
    """A host by its name, and its clocks."""

    host: str
    clock: HostClock


class SqlTransaction:
    """One open transaction; implements `ports.ledger.Transaction`."""

    def __init__(
        self, ledger: SqlLedger, runner: Runner, now: datetime, clocks: SqlHostClocks
    ) -> None:
        self.now = now
        self._ledger = ledger
        self.operations = SqlOperations(runner, now)
        self.windows = SqlWindows(runner, now, self.operations)
        self.rules = SqlRuleStates(runner, now)
        self.ticks = SqlTicks(runner, now)
        self.workers = SqlWorkers(runner, now)
        self.actions = SqlActions(runner, now)
        self.reviews = SqlReviews(runner, now)
        self.guards = SqlGuards(runner, now)
        self.pauses = SqlPauses(runner, now)
        self.rates = SqlAttachRates(runner, now)
        self.clocks = clocks

    def due_by_tenant(self, rule: Rule) -> SqlDueByTenant:
        """Return the rule's due rows, tenant by tenant."""
        ledger = self._ledger
        compiled = ledger.compiled(rule)
        return SqlDueByTenant(ledger.session, compiled, self.now, ledger.served_by_tenant)

    @property
    def summaries(self) -> SqlSummaries:
        """Return the account of asking a language model."""
        return SqlSummaries(self._ledger.runner, self.now)

    @property
    def tenants(self) -> SqlTenants:
        """Return the tenants."""
        return SqlTenants(self._ledger.session, self.now)

    @property
    def sourced_tenants(self) -> SqlSourcedTenants:
        """Return our tenants that came from the customer's table."""
        return SqlSourcedTenants(self._ledger.runner, self.now)

    def tenant_rows(self, mapping: TenantMapping) -> SqlTenantRows:
        """Return the customer's table of tenants."""
        return SqlTenantRows(self._ledger.session, mapping)

    @property
    def restoring(self) -> SqlRestoring:
        """Return the doubts that a restored database leaves."""
        return SqlRestoring(self._ledger.runner, self.now)

    @property
    def unsubscribed(self) -> SqlUnsubscribed:
        """Return who wants no more reports."""
        return SqlUnsubscribed(self._ledger.runner, self.now)

    @property
    def units(self) -> SqlUnits:
        """Return the units of our own."""
        return SqlUnits(self._ledger.session, self.now)

    @property
    def own_holds(self) -> SqlOwnHolds:
        """Return the holds of our own table."""
        return SqlOwnHolds(self._ledger.session, self.now)

    @property
    def reports(self) -> SqlReports:
        """Return the facts of the daily reports."""
        return SqlReports(self._ledger.runner, self.now)

    @property
    def relay(self) -> SqlRelay:
        """Return the outbox as the relay sees it."""
        return SqlRelay(self._ledger.runner, self.now)

    @property
    def forwards(self) -> SqlForwards:
        """Return what a person may do to forwards."""
        return SqlForwards(self._ledger.runner, self.now)

    @property
    def strays(self) -> SqlStrays:
        """Return the payloads that nobody can read, and how much queues brought."""
        return SqlStrays(self._ledger.runner, self.now)

    def holds(self, rule: Rule) -> SqlHolds:
        """Return the customer's rows under a rule."""
        return SqlHolds(self._ledger.session, self._ledger.compiled(rule), self.now)

    @property
    def report_calendar(self) -> SqlReportCalendar:
        """Return whose day ends when, and what closes a window."""
        return SqlReportCalendar(self._ledger.session, self.now)

    @property
    def retention(self) -> SqlRetention:
        """Return what removes old rows."""
        return SqlRetention(self._ledger.runner, self.now)

    def call(self, handler: Handler, rule: Rule, holds: Sequence[ExpiredHold]) -> None:
        """Call a rule's handler inside this transaction."""
        with self._ledger.session.lent(handler.seconds_max) as lent:
            handler.run(ExpiredBatch(rule.name, lent.connection, self.now, holds), lent.cancel)

    @property
    def sends(self) -> SqlSends:
        """Return the send ledger."""
        return SqlSends(self._ledger.runner, self.now)

    def straight(self, rule: Rule) -> SqlStraight:
        """Return the customer's rows under a rule, to be released without operation rows."""
        return SqlStraight(self._ledger.session, self._ledger.compiled(rule), self.now)


class SqlLedger:
    """One connection's view of ledger and customer's table; belongs to one thread."""

    def __init__(
        self, session: Session, checkpoint: Checkpoint, watched: WatchedClock | None = None
    ) -> None:
        """Work on this session.

        Args:
            watched: the host's clock that the database's is compared with; None compares nothing,
                for a clock that a test sets.
        """
        self.session = session
        self._checkpoint = checkpoint
        self._watched = watched
        self._memory = ClockMemory()
        self._runner = Runner(session)
        self._compiled: dict[str, RuleSql] = {}
        self.served_by_tenant: Served = {}

    @contextmanager
    def transaction(self) -> Iterator[SqlTransaction]:
        """Open a transaction; commit at the end of the block, roll back on any exception."""
        try:
            now, reading = self._begin()
            clocks = SqlHostClocks(self._runner, self._memory, reading)
            yield SqlTransaction(self, self._runner, now, clocks)
            self._checkpoint.reach(Boundary.BEFORE_COMMIT)
            self.session.commit()
        except BaseException as error:
            if isinstance(error, RuleRefused):
                self._compiled.clear()
            self.session.rollback()
            raise
        self._checkpoint.reach(Boundary.COMMITTED)

    @contextmanager
    def glance(self) -> Iterator[SqlTransaction]:
        """Read beside what others write: no lock is taken, and nothing may be written."""
        now = self.session.begin(read_only=True)
        try:
            clocks = SqlHostClocks(self._runner, self._memory, None)
            yield SqlTransaction(self, self._runner, now, clocks)
        finally:
            self.session.rollback()

    @property
    def runner(self) -> Runner:
        """Return what runs the ledger's own statements."""
        return self._runner

    def _begin(self) -> tuple[datetime, ClockReading | None]:
        """Begin, and read the host's clocks just before and just after."""
        if self._watched is None:
            return self.session.begin(), None
        clock = self._watched.clock
        asked = clock.monotonic()
        now = self.session.begin()
        answered = clock.monotonic()
        return now, ClockReading(self._watched.host, now, clock.wall(), asked, answered)

    @contextmanager
    def reading(self, *, whole_tables: bool = False) -> Iterator[SqlReading]:
        """Open a read-only snapshot; implements `ports.insight.Readable`."""
        try:
            with open_reading(self.session, self.compiled, whole_tables=whole_tables) as reading:
                yield reading
        except RuleRefused:
            self._compiled.clear()
            raise

    def compiled(self, rule: Rule) -> RuleSql:
        """Return the rule compiled against the live catalogue.

        While a textual due column has no value to take its spelling from, it is compiled each time.
        """
        known = self._compiled.get(rule.name)
        if known is None or known.rule != rule:
            columns = columns_of(self.session, rule)
            spelled = self._spells_due(rule)
            sample = self._sample_due(rule) if spelled else None
            known = compile_rule(rule, columns, self.session.dialect, sample_due=sample)
            if known.slots["due_instant"]:
                known = replace(known, is_plain=is_plain_table(self.session, rule.table))
            if sample is not None or not spelled:
                self._compiled[rule.name] = known
        return known

    def _spells_due(self, rule: Rule) -> bool:
        return self.session.dialect == "sqlite" and rule.due.kind is DueKind.NAIVE

    def _sample_due(self, rule: Rule) -> str | None:
        slots = {"table": quoted(rule.table), "due": f"h.{quote(rule.due.column)}"}
        rows, _ = self.session.run(fill(load("sqlite")["sample_due"], slots), {})
        return str(rows[0][0]) if rows else None

    def keep_house(self) -> None:
        """Do what the tables need from time to time."""
        keep_house(self.session)

    @property
    def server_started_at(self) -> datetime | None:
        """Return when the server was started, as of the last transaction."""
        return self.session.server_started_at

    @property
    def batch_limit(self) -> int | None:
        """Return the largest batch that leaves the host application room."""
        return self.session.batch_limit

    @property
    def one_writer(self) -> bool:
        """Tell whether a writing transaction keeps all others waiting."""
        return self.session.one_writer

    def close(self) -> None:
        """Give the connection back."""
        self.session.close()
