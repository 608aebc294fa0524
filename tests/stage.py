"""A customer's database with Freehold attached: a raw back door, a clock that stands still, passes.

Not here: the host's tables, which every test makes for itself in its own SQL.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg

from freehold.adapters.sql import migrations
from freehold.adapters.system import Onwards, StopRequest, SystemClock, SystemDice
from freehold.application.attach import attach
from freehold.application.audit import audit
from freehold.application.doctor import examine
from freehold.application.doctor.findings import Code, Finding, Severity
from freehold.application.release import BatchResult
from freehold.application.scan import Scanner, ScanResult
from freehold.application.schedule import Scheduler
from freehold.application.sweep import Sweeper
from freehold.application.work import PassEnd, PassResult, Worker
from freehold.bootstrap import open_inspection, open_ledger, open_session
from freehold.domain.rules import Rule
from freehold.settings import DatabaseSettings, Settings, load_settings
from freehold.testing.clock import SetClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.ports.system import Checkpoint
    from tests.servers import PostgresServer

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
Rows = list[tuple[Any, ...]]


def utc(text: str) -> datetime:
    """Read an instant that is written without an offset."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def wall(instant: datetime) -> str:
    """Write an instant as a naive UTC column holds it."""
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


@dataclass
class Door:
    """A raw connection of the host's own: no code of Freehold between it and the database."""

    connection: Any
    dialect: str

    def run(self, sql: str, **parameters: Any) -> Rows:
        """Execute one statement with `:name` parameters and return its rows."""
        if self.dialect == "postgres":
            sql = re.sub(r"(?<![:\w]):([a-z]\w*)", r"%(\1)s", sql.replace("%", "%%"))
        cursor = self.connection.execute(sql, parameters)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def count(self, sql: str, **parameters: Any) -> int:
        """Execute one statement and return how many rows it changed."""
        if self.dialect == "postgres":
            sql = re.sub(r"(?<![:\w]):([a-z]\w*)", r"%(\1)s", sql.replace("%", "%%"))
        return int(self.connection.execute(sql, parameters).rowcount)

    def script(self, sql: str) -> None:
        """Execute statements that end in a semicolon at the end of a line."""
        for statement in re.split(r";\s*$", sql, flags=re.MULTILINE):
            if statement.strip():
                self.connection.execute(statement)

    def insert(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows, all with the same columns."""
        if not rows:
            return
        names = list(rows[0])
        columns = ", ".join(f'"{name}"' for name in names)
        mark = "%s" if self.dialect == "postgres" else "?"
        sql = f"insert into {table} ({columns}) values ({', '.join([mark] * len(names))})"
        values = [[row[name] for name in names] for row in rows]
        if self.dialect == "postgres":
            with self.connection.cursor() as cursor:
                cursor.executemany(sql, values)
        else:
            self.connection.execute("begin")
            self.connection.executemany(sql, values)
            self.connection.execute("commit")


@dataclass
class Stage:
    """One customer's database, migrated, with rules attached by configuration alone."""

    url: str
    folder: Path
    clock: SetClock = field(default_factory=lambda: SetClock(NOON))
    settings: Settings = field(default_factory=Settings)
    checkpoint: Checkpoint = field(default_factory=Onwards)
    _opened: list[Any] = field(default_factory=list)
    _host: Door | None = None
    _own: tuple[Settings, Checkpoint, SqlLedger] | None = None

    # ------------------------------------------------------------------------------ the host

    @property
    def dialect(self) -> str:
        """The name of the database's dialect."""
        return "sqlite" if self.url.startswith("sqlite") else "postgres"

    @property
    def prefix(self) -> str:
        """What stands before the names of the ledger's tables."""
        return "freehold." if self.dialect == "postgres" else "freehold_"

    @property
    def host(self) -> Door:
        """The host application's connection, kept open."""
        if self._host is None:
            self._host = self.door()
        return self._host

    def door(self) -> Door:
        """Open another raw connection; it is closed with the stage."""
        connection: Any
        if self.dialect == "postgres":
            connection = psycopg.connect(self.url, autocommit=True)
        else:
            path = urlsplit(self.url).path[1:]
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            connection.execute("pragma foreign_keys = on")
            connection.execute("pragma synchronous = off")
        self._opened.append(connection)
        return Door(connection, self.dialect)

    def tables(self) -> list[str]:
        """Return the quoted names of all tables but the loops' own bookkeeping."""
        if self.dialect == "postgres":
            rows = self.host.run(
                "select format('%I.%I', schemaname, tablename) from pg_tables "
                "where schemaname not in ('pg_catalog', 'information_schema') "
                "and tablename not like 'record\\_%' order by 1"
            )
        else:
            rows = self.host.run(
                "select '\"' || name || '\"' from sqlite_schema "
                "where type = 'table' and name not like 'sqlite%' order by 1"
            )
        return [row[0] for row in rows]

    def digest(self) -> dict[str, str]:
        """Return a digest of every table's content."""
        found = {}
        for table in self.tables():
            rows = sorted(map(repr, self.host.run(f"select * from {table}")))
            found[table] = hashlib.sha256("\n".join(rows).encode()).hexdigest()
        return found

    # ------------------------------------------------------------------------------ freehold

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that are attached."""
        return self.settings.rules

    def attach(self, toml: str) -> Rule:
        """Configure rules by the text of a file, and by nothing else; return the first."""
        file = self.folder / "freehold.toml"
        file.write_text(f'[database]\nurl = "{self.url}"\nlock_timeout = "200ms"\n{toml}')
        self.settings = load_settings(file, {})
        return self.settings.rules[0]

    def confirm(self, count: int) -> None:
        """Let the first rule work, as a person who looked at the overdue count does."""
        attach(self.own(), self.rules[0], count, "Ada", "looked at the plan")

    def ledger(self, checkpoint: Checkpoint | None = None) -> SqlLedger:
        """Open a ledger connection under the stage's clock; it is closed with the stage."""
        ledger = open_ledger(
            self.settings, checkpoint=checkpoint or self.checkpoint, clock=self.clock
        )
        self._opened.append(ledger)
        return ledger

    def scanner(self, checkpoint: Checkpoint | None = None) -> Scanner:
        """Make a scanner as a fresh process has it."""
        return Scanner(self.ledger(checkpoint), checkpoint or self.checkpoint)

    def worker(self, checkpoint: Checkpoint | None = None) -> Worker:
        """Make a worker as a fresh process has it."""
        checkpoint = checkpoint or self.checkpoint
        return Worker(self.ledger(checkpoint), checkpoint, SystemDice(), StopRequest())

    def scheduler(self, name: str = "one", checkpoint: Checkpoint | None = None) -> Scheduler:
        """Make a scheduler as a fresh process of that name has it."""
        ledger, checkpoint = self.ledger(checkpoint), checkpoint or self.checkpoint
        return Scheduler(ledger, Scanner(ledger, checkpoint), SystemClock(), name, checkpoint)

    def own(self) -> SqlLedger:
        """Return the connection that the stage's own passes share."""
        if self._own is None or self._own[:2] != (self.settings, self.checkpoint):
            self._own = (self.settings, self.checkpoint, self.ledger())
        return self._own[2]

    def forget(self) -> None:
        """Leave the shared connection to the process that opened it."""
        self._own = None

    def scan(self, rule: Rule | None = None) -> ScanResult:
        """Scan one rule from the beginning."""
        return Scanner(self.own(), self.checkpoint).scan(rule or self.rules[0])

    def work(self, rule: Rule | None = None) -> PassResult:
        """Take one batch."""
        worker = Worker(self.own(), self.checkpoint, SystemDice(), StopRequest())
        return worker.work(rule or self.rules[0])

    def sweep(self) -> None:
        """Sweep all rules once."""
        scanner = Scanner(self.own(), self.checkpoint)
        Sweeper(self.own(), self.checkpoint, scanner).sweep(self.rules)

    def drain(self) -> BatchResult:
        """Do what a crontab's one-shot does: scan and work every rule until nothing is left."""
        total = BatchResult()
        scanner = Scanner(self.own(), self.checkpoint)
        worker = Worker(self.own(), self.checkpoint, SystemDice(), StopRequest())
        self.sweep()
        for rule in self.rules:
            total.add(_drained(scanner, worker, rule))
        return total

    def advance(self, **spans: float) -> None:
        """Move the clock forward."""
        self.clock.instant += timedelta(**spans)

    # ------------------------------------------------------------------------------ evidence

    def ends(self) -> Counter[str]:
        """Count the records: `expired`, or the reason of a skip."""
        rows = self.host.run(
            "select case when outcome = 'skipped' then reason else outcome end, count(*) "
            f"from {self.prefix}record group by 1"
        )
        return Counter(dict(rows))

    def ended(self, outcome: str = "expired") -> list[str]:
        """Return the keys whose record ends so, sorted, with repeats."""
        rows = self.host.run(
            f"select hold_key from {self.prefix}record "
            "where case when outcome = 'skipped' then reason else outcome end = :outcome",
            outcome=outcome,
        )
        return sorted((row[0] for row in rows), key=_natural)

    def open(self) -> Counter[str]:
        """Count the open operations by state."""
        sql = f"select state, count(*) from {self.prefix}operation group by 1"
        return Counter(dict(self.host.run(sql)))

    def events(self) -> list[str]:
        """Return the keys of all events, sorted, with repeats."""
        rows = self.host.run(f"select hold_key from {self.prefix}outbox")
        return sorted((row[0] for row in rows), key=_natural)

    def audit(self) -> dict[str, list[str]]:
        """Ask every check of `freehold audit`; return what is not clean."""
        return {
            one.check.value: [str(violation) for violation in one.violations]
            for one in audit(self.own(), self.rules)
            if not one.clean
        }

    def doctor(self) -> dict[Code, Finding]:
        """Ask `freehold doctor`; return what is refused or warned of, by its code."""
        with closing(open_inspection(self.settings)) as inspection:
            found = examine(inspection, self.rules, SystemClock())
        return {one.code: one for one in found if one.severity is not Severity.OK}

    def close(self) -> None:
        """Close every connection that was opened."""
        for opened in self._opened:
            opened.close()


def _natural(key: str) -> tuple[int, str]:
    return (int(key), "") if key.removeprefix("-").isdigit() else (0, key)


def _drained(scanner: Scanner, worker: Worker, rule: Rule) -> BatchResult:
    total = BatchResult()
    while True:
        scan = scanner.scan(rule)
        while (done := worker.work(rule)).end is PassEnd.WORKED:
            total.add(done.batch)
        if scan.finished or not scan.admitted:
            return total


# ------------------------------------------------------------------------------ making them

_ready: dict[str, str] = {}


def postgres_stage(server: PostgresServer, folder: Path) -> Iterator[Stage]:
    """Yield a stage on a server: one database, migrated once and emptied for every test."""
    key = server.url()
    if key not in _ready:
        _ready[key] = server.create_database()
        _migrate(_ready[key])
    stage = Stage(_ready[key], folder)
    _empty(stage)
    yield from _opened(stage)


def _empty(stage: Stage) -> None:
    """Drop what the host made, and delete what the ledger holds; far cheaper than a new database."""
    host = stage.host
    for (schema,) in host.run(
        "select quote_ident(nspname) from pg_namespace "
        "where nspname not in ('freehold', 'information_schema') and nspname not like 'pg\\_%'"
    ):
        host.script(f"drop schema {schema} cascade")
    host.script("create schema public")
    for table in stage.tables():
        if "migration" not in table:
            host.script(f"delete from {table}")


def sqlite_stage(folder: Path) -> Iterator[Stage]:
    """Yield a stage on a file, copied from one that is migrated once."""
    template = Path(_ready.get("sqlite", "/nowhere"))
    if not template.exists():
        template = folder / "migrated.db"
        with closing(sqlite3.connect(template)) as connection:
            connection.execute("pragma journal_mode = wal")
        _migrate(f"sqlite:///{template}")
        _ready["sqlite"] = str(template)
    path = folder / "host.db"
    shutil.copy(template, path)
    yield from _opened(Stage(f"sqlite:///{path}", folder))


def _opened(stage: Stage) -> Iterator[Stage]:
    try:
        yield stage
    finally:
        stage.close()


def _migrate(url: str) -> None:
    with closing(open_session(Settings(database=DatabaseSettings(url=url)))) as session:
        migrations.upgrade(session)
