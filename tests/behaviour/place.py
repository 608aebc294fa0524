"""A customer's database beside a migrated ledger: the host's raw connection, and a stopped clock."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg

from freehold.adapters.sql import migrations
from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.sql.postgres import PostgresSession
from freehold.adapters.sql.session import Limits
from freehold.adapters.sql.sqlite import SqliteSession
from freehold.adapters.system import Onwards, SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from freehold.adapters.sql.session import Session
    from freehold.ports.system import Checkpoint
    from tests.servers import PostgresServer

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
SHORT = Limits(lock_timeout_ms=100)
Rows = list[tuple[Any, ...]]


@dataclass
class StoppedClock:
    """The transactions' clock; moves only when a test moves it."""

    at: datetime = NOON

    def read(self, database_now: datetime) -> datetime:
        """Return the test's instant, whatever the database says."""
        return self.at


@dataclass
class Door:
    """A connection of the host's own, on which no code of Freehold runs."""

    connection: Any
    dialect: str

    def run(self, sql: str, **parameters: Any) -> Rows:
        """Execute one statement with `:name` parameters and return its rows."""
        if self.dialect == "postgres":
            sql = re.sub(r"(?<!:):(\w+)", r"%(\1)s", sql.replace("%", "%%")) if parameters else sql
            cursor = self.connection.execute(sql, parameters or None)
        else:
            cursor = self.connection.execute(sql, parameters)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def insert(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows, all with the same columns, in one transaction."""
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in rows[0])
        mark = "%s" if self.dialect == "postgres" else "?"
        columns = columns.replace("%", "%%") if self.dialect == "postgres" else columns
        sql = f"insert into {table} ({columns}) values ({', '.join([mark] * len(rows[0]))})"
        cursor = self.connection.cursor()
        self.connection.execute("begin")
        cursor.executemany(sql, [list(row.values()) for row in rows])
        self.connection.execute("commit")


@dataclass
class Place:
    """One customer's database, migrated."""

    target: str
    dialect: str
    clock: StoppedClock = field(default_factory=StoppedClock)
    _opened: list[Any] = field(default_factory=list)
    _host: Door | None = None

    @property
    def prefix(self) -> str:
        """What stands before the names of the ledger's tables."""
        return "freehold." if self.dialect == "postgres" else "freehold_"

    @property
    def host(self) -> Door:
        """The host application's connection, kept open."""
        self._host = self._host or self.door()
        return self._host

    def door(self) -> Door:
        """Open another raw connection; it is closed with the place."""
        connection: Any
        if self.dialect == "postgres":
            connection = psycopg.connect(self.target, autocommit=True)
        else:
            connection = sqlite3.connect(
                self.target, isolation_level=None, check_same_thread=False, timeout=10
            )
            connection.execute("pragma foreign_keys = on")
        self._opened.append(connection)
        return Door(connection, self.dialect)

    def session(self, limits: Limits = SHORT, **more: Any) -> Session:
        """Open a session of Freehold's under the stopped clock; it is closed with the place."""
        session: Session
        if self.dialect == "postgres":
            session = PostgresSession(self.target, limits=limits, clock=self.clock, **more)
        else:
            session = SqliteSession(self.target, SystemClock(), limits=limits, clock=self.clock)
        self._opened.append(session)
        return session

    def ledger(
        self, checkpoint: Checkpoint | None = None, limits: Limits = SHORT, **more: Any
    ) -> SqlLedger:
        """Open a ledger connection."""
        return SqlLedger(self.session(limits, **more), checkpoint or Onwards())

    def advance(self, span: timedelta) -> None:
        """Move the clock forward."""
        self.clock.at += span

    def close(self) -> None:
        """Close every connection that was opened."""
        for opened in self._opened:
            opened.close()

    # --------------------------------------------------------------------------- evidence

    def ends(self) -> Counter[str]:
        """Count the records: `expired`, or the reason of a skip."""
        sql = f"select coalesce(reason, outcome), count(*) from {self.prefix}record group by 1"
        return Counter(dict(self.host.run(sql)))

    def events(self) -> list[str]:
        """Return the keys of all events, sorted, with repeats."""
        return sorted(row[0] for row in self.host.run(f"select hold_key from {self.prefix}outbox"))

    def table(self, table: str, columns: str) -> Rows:
        """Return columns of one of the ledger's tables, sorted."""
        return sorted(self.host.run(f"select {columns} from {self.prefix}{table}"))

    def rule(self, columns: str, name: str = "cart") -> tuple[Any, ...]:
        """Return columns of what the ledger knows about a rule."""
        sql = f"select {columns} from {self.prefix}rule_state where rule = :rule"
        return self.host.run(sql, rule=name)[0]


_migrated: dict[int, str] = {}  # by port: a database that is migrated once and copied


def postgres_place(server: PostgresServer) -> Iterator[Place]:
    """Yield a fresh place on a server."""
    if server.port not in _migrated:
        template = server.create_database()
        _migrate(PostgresSession(template))
        _migrated[server.port] = template.rpartition("/")[2]
    url = server.create_database(_migrated[server.port])
    place = Place(url, "postgres")
    yield place
    place.close()
    server.drop_database(url)


def sqlite_place(folder: Path) -> Iterator[Place]:
    """Yield a fresh place in a file."""
    path = str(folder / "host.db")
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode = wal")
    connection.close()
    _migrate(SqliteSession(path, SystemClock()))
    place = Place(path, "sqlite")
    yield place
    place.close()


def _migrate(session: Session) -> None:
    migrations.upgrade(session)
    session.close()
