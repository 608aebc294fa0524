"""A small customer's database that has been worked on, to look at and to plant violations in."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg

from freehold.adapters.sql import migrations
from freehold.adapters.system import Onwards, StopRequest, SystemDice
from freehold.application.scan import Scanner
from freehold.application.work import PassEnd, Worker
from freehold.bootstrap import open_ledger, open_session
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.rules import (
    Condition,
    Predicate,
    Rule,
    SetColumns,
    TableName,
    TenantSource,
    Test,
)
from freehold.ports.ledger import Act
from freehold.settings import DatabaseSettings, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehold.adapters.sql.ledger import SqlLedger
    from tests.servers import Servers

CART = Rule(
    name="cart",
    table=TableName("res"),
    key=("id",),
    held=Predicate(((Condition("status", Test.EQUALS, ("held",)),),)),
    due=DueSpec("hold_until", DueKind.NAIVE, "UTC"),
    action=SetColumns((("status", "expired"),)),
    tenant=TenantSource("tenant"),
    fence=("token",),
    promise=timedelta(hours=1),  # no slow machine makes what waits here overdue
)
TABLE = """create table res (id {key} primary key, tenant text, status text, token text,
    hold_until {due})"""


@dataclass(frozen=True)
class Shop:
    """One database: rows 1 to 3 are released, 4 was renewed, 8 is ready, 9 is not due yet."""

    url: str
    rule: Rule = CART

    @property
    def prefix(self) -> str:
        """What stands before the names of the ledger's tables."""
        return "freehold_" if self.url.startswith("sqlite") else "freehold."

    @property
    def settings(self) -> Settings:
        """What a file for this database says."""
        return Settings(database=DatabaseSettings(url=self.url), rules=(self.rule,))

    @contextmanager
    def raw(self) -> Iterator[Any]:
        """Open a connection of the host's own."""
        if self.url.startswith("sqlite"):
            with closing(sqlite3.connect(file_of(self.url), isolation_level=None)) as connection:
                yield connection
            return
        with psycopg.connect(self.url, autocommit=True) as connection:
            yield connection

    def run(self, *statements: str) -> None:
        """Execute SQL by the back door; `{s}` stands before our own tables."""
        with self.raw() as connection:
            for statement in statements:
                connection.execute(statement.replace("{s}", self.prefix))

    def hold(self, key: int, due: timedelta, *, status: str = "held") -> None:
        """Let the host make a hold that is due so long from now."""
        at = (datetime.now(UTC) + due).strftime("%Y-%m-%d %H:%M:%S.%f")
        self.run(f"insert into res values ({key}, 't{key % 2}', '{status}', 'k{key}', '{at}')")

    @contextmanager
    def ledger(self) -> Iterator[SqlLedger]:
        """Open a ledger connection."""
        with closing(open_ledger(self.settings)) as ledger:
            yield ledger

    def scan(self) -> None:
        """Scan once, as a fresh process does."""
        with self.ledger() as ledger:
            Scanner(ledger, Onwards()).scan(self.rule)

    def work(self) -> None:
        """Release what is ready."""
        with self.ledger() as ledger:
            worker = Worker(ledger, Onwards(), SystemDice(), StopRequest())
            while worker.work(self.rule).end is PassEnd.WORKED:
                pass


def file_of(url: str) -> Path:
    """Return the file of an SQLite URL."""
    return Path(urlsplit(url).path[1:])


def open_shop(url: str) -> Shop:
    """Make the table and the ledger of a fresh database."""
    shop = Shop(url)
    with closing(open_session(shop.settings)) as session:
        migrations.upgrade(session)
    kinds = ("integer", "text") if url.startswith("sqlite") else ("bigint", "timestamp")
    shop.run(
        TABLE.format(key=kinds[0], due=kinds[1]),
        "create index res_due on res (hold_until) where status = 'held'",
    )
    return shop


def worked_shop(url: str) -> Shop:
    """Make a shop and let a day pass in it."""
    shop = open_shop(url)
    for key in (1, 2, 3, 4):
        shop.hold(key, timedelta(hours=-2))
    shop.scan()
    shop.run("update res set hold_until = '2200-01-01 00:00:00.000000' where id = 4")
    shop.work()
    shop.hold(8, timedelta(hours=-2))
    shop.hold(9, timedelta(hours=2))
    shop.scan()
    with shop.ledger() as ledger, ledger.transaction() as tx:
        for action in ("attach", "pause"):
            tx.actions.record(Act("ann", action, "cart", "because"))
    return shop


_worked: dict[str, str] = {}


def copied_shop(kind: str, servers: Servers, folder: Path) -> Iterator[Shop]:
    """Yield a copy of a worked shop that is made once for each kind of database."""
    if kind == "sqlite":
        yield _sqlite_copy(folder)
        return
    server = servers.read(kind)
    if kind not in _worked:
        _worked[kind] = worked_shop(server.create_database()).url
    url = server.create_database(_worked[kind].rpartition("/")[2])
    yield Shop(url)
    server.drop_database(url)


def _sqlite_copy(folder: Path) -> Shop:
    if "sqlite" not in _worked:
        shop = worked_shop(f"sqlite:///{folder / 'worked.db'}")
        shop.run("pragma wal_checkpoint(truncate)")
        _worked["sqlite"] = shop.url
    path = folder / "shop.db"
    shutil.copy(file_of(_worked["sqlite"]), path)
    return Shop(f"sqlite:///{path}")
