"""A hotel without a table of its own: tenant, units, and a host application's plain connections."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from freehold.adapters.sql.migrations import upgrade
from freehold.adapters.system import Onwards
from freehold.application import granting
from freehold.bootstrap import join, open_session, sqlite_path
from freehold.domain.inventory import NewHold, Stay, built_in_rule
from freehold.domain.schedule import Every
from freehold.settings import DatabaseSettings, Settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from freehold.adapters.sql.ledger import SqlLedger, SqlTransaction, WatchedClock
    from freehold.application.granting import Granted
    from freehold.domain.inventory import Hold
    from freehold.domain.rules import Rule

T = TypeVar("T")
NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
UNITS = (1, 2, 3)
TABLES = (
    *("operation", "attempt", "record", "tally", "outbox", "tick", "rule_state", "guard"),
    *("host_clock", "hold", "unit", "tenant"),
)
NIGHT = Stay(NOON + timedelta(days=1), NOON + timedelta(days=2))


def dialect_of(url: str) -> str:
    """Return the dialect that a URL names."""
    return "sqlite" if url.startswith("sqlite") else "postgres"


def prepare(url: str) -> None:
    """Make the ledger in a fresh database."""
    session = open_session(Settings(DatabaseSettings(url)), considerate=False)
    upgrade(session)
    session.close()
    if dialect_of(url) == "postgres":
        with BackDoor(url) as door:
            door.execute("alter table {s}unit alter column id restart with 10")


def empty(url: str) -> None:
    """Empty ledger and inventory, and make one tenant with the units 1, 2 and 3."""
    at = "'2031-01-01 00:00:00.000000'"
    units = ", ".join(f"({unit}, 'anna', 'room {unit}', {at}, {at})" for unit in UNITS)
    with BackDoor(url) as door:
        over = "" if door.dialect == "sqlite" else "overriding system value"
        with door.together():
            for name in TABLES:
                door.execute(f"delete from {{s}}{name}")
            columns = "id, name, created_at, changed_at"
            door.execute(f"insert into {{s}}tenant ({columns}) values ('anna', 'Anna', {at}, {at})")
            columns = "id, tenant, name, created_at, changed_at"
            door.execute(f"insert into {{s}}unit ({columns}) {over} values {units}")


def connect(url: str) -> Any:
    """Open a connection as a host application does, with nothing set."""
    if dialect_of(url) == "sqlite":
        return sqlite3.connect(str(sqlite_path(url)), timeout=20)
    return psycopg.connect(url)


@contextmanager
def host_of(url: str) -> Iterator[Any]:
    """Open a host's connection, and close it at the end without a commit."""
    connection = connect(url)
    try:
        yield connection
    finally:
        connection.close()


@dataclass
class Desk:
    """Somebody who grants holds in transactions of his own, by a clock that the test sets."""

    url: str
    clock: SetClock
    rule: Rule
    watched: WatchedClock | None = None

    def grant(self, unit_id: int, token: UUID, **changes: Any) -> Granted:
        """Grant one night for a quarter of an hour, and commit."""
        now = self.clock.instant
        fields = {"stay": NIGHT, "hold_until": now + QUARTER, **changes}
        new = NewHold(tenant="anna", unit_id=unit_id, token=token, **fields)
        return self.act(lambda tx: granting.grant(tx, self.rule, new, Onwards()))

    def confirm(self, token: UUID) -> Hold:
        """Confirm, and commit."""
        return self.act(lambda tx: granting.confirm(tx, self.rule, token))

    def act(self, step: Callable[[SqlTransaction], T]) -> T:
        """Take a step in a transaction; rolled back where it is refused."""
        with host_of(self.url) as connection:
            with self._joined(connection).transaction() as tx:
                done = step(tx)
            connection.commit()
            return done

    def _joined(self, connection: Any) -> SqlLedger:
        return join(connection, clock=self.clock, watched=self.watched)


def desk_at(url: str, now: datetime = NOON, **options: Any) -> Desk:
    """Open a desk over a prepared database."""
    rule = built_in_rule(dialect_of(url), **{"schedule": Every(60), **options})
    return Desk(url, SetClock(now), rule)


def events(door: BackDoor) -> list[str]:
    """Return the types of all events, in order."""
    return [row[0] for row in door.rows("select type from {s}outbox order by id")]


def night(days_later: int) -> Stay:
    """Return the usual night, some days later."""
    days = timedelta(days=days_later)
    return Stay(NIGHT.starts_at + days, NIGHT.ends_at + days)


def statuses(door: BackDoor) -> list[str]:
    """Return the statuses of all holds, in order."""
    return [row[0] for row in door.rows("select status from {s}hold order by id")]
