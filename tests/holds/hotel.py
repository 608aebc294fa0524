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
from freehold.domain.inventory import NewHold, NewUnit, Stay, Tenant, built_in_rule
from freehold.settings import DatabaseSettings, Settings
from freehold.testing.clock import SetClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from freehold.adapters.sql.ledger import SqlTransaction
    from freehold.application.granting import Granted
    from freehold.domain.inventory import Hold
    from freehold.domain.rules import Rule
    from freehold.testing.backdoor import BackDoor

T = TypeVar("T")
NOON = datetime(2031, 5, 6, 12, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
NIGHT = Stay(NOON + timedelta(days=1), NOON + timedelta(days=2))


def dialect_of(url: str) -> str:
    """Return the dialect that a URL names."""
    return "sqlite" if url.startswith("sqlite") else "postgres"


def prepare(url: str, unit_count: int = 3) -> list[int]:
    """Make the ledger, one tenant and its units; return the units' ids."""
    session = open_session(Settings(DatabaseSettings(url)), considerate=False)
    upgrade(session)
    session.close()
    with host_of(url) as connection:
        with join(connection).transaction() as tx:
            tx.tenants.add([Tenant("anna", "Anna")])
            tx.units.add([NewUnit("anna", f"room {n}") for n in range(unit_count)])
            ids = [unit.id for unit in tx.units.find("anna", 0, unit_count)]
        connection.commit()
    return ids


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
            with join(connection, clock=self.clock).transaction() as tx:
                done = step(tx)
            connection.commit()
            return done


def desk_at(url: str, now: datetime = NOON, **options: Any) -> Desk:
    """Open a desk over a prepared database."""
    return Desk(url, SetClock(now), built_in_rule(dialect_of(url), **options))


def events(door: BackDoor) -> list[str]:
    """Return the types of all events, in order."""
    return [row[0] for row in door.rows("select type from {s}outbox order by id")]


def statuses(door: BackDoor) -> list[str]:
    """Return the statuses of all holds, in order."""
    return [row[0] for row in door.rows("select status from {s}hold order by id")]
