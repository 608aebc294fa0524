"""Which adapter reads the configured database, and each thread's own ledger.

*Invariants*: a driver is imported only when its database is named.
"""

from __future__ import annotations

import socket
import sqlite3
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from freehold.adapters.sql.ledger import SqlLedger, WatchedClock
from freehold.adapters.sql.migrations import problems
from freehold.adapters.sql.session import Clock, Limits, Session
from freehold.adapters.system import Onwards, SystemClock
from freehold.domain.errors import RefusedByState, UsageError
from freehold.ports.inspection import Inspection
from freehold.ports.system import Checkpoint
from freehold.settings import Settings

POSTGRES_SCHEMES = ("postgresql", "postgres")


def limits_of(settings: Settings) -> Limits:
    """Return the database limits in the unit of the adapters."""
    database = settings.database
    return Limits(
        lock_timeout_ms=_ms(database.lock_timeout),
        statement_timeout_ms=_ms(database.statement_timeout),
        idle_timeout_ms=_ms(database.idle_in_transaction),
        connect_timeout_s=max(1, round(database.connect_timeout.total_seconds())),
    )


def _ms(span: timedelta) -> int:
    return max(1, round(span.total_seconds() * 1000))


def open_session(
    settings: Settings,
    *,
    clock: Clock | None = None,
    create: bool = True,
    considerate: bool = True,
) -> Session:
    """Return a session of the configured database; it connects at its first transaction.

    Args:
        create: make a missing SQLite file.
        considerate: on SQLite, pause between write transactions for the host application's sake.

    Raises:
        UsageError: the URL names no database that we know, or its driver is not installed.
    """
    url = settings.database.url
    scheme = urlsplit(url).scheme
    if scheme in POSTGRES_SCHEMES:
        return _open_postgres(settings, clock)
    if scheme == "sqlite":
        from freehold.adapters.sql.sqlite import SqliteSession

        return SqliteSession(
            str(sqlite_path(url)),
            SystemClock(),
            limits=limits_of(settings),
            clock=clock,
            create=create,
            considerate=considerate,
        )
    raise UsageError(
        "The database URL must begin with sqlite:/// or postgresql://; "
        "set [database] url in freehold.toml or FREEHOLD_DATABASE__URL."
    )


def _open_postgres(settings: Settings, clock: Clock | None) -> Session:
    try:
        from freehold.adapters.sql.postgres import PostgresSession
    except ImportError as error:
        raise UsageError(
            "PostgreSQL needs an extra package; run: pip install 'freehold[postgres]'"
        ) from error
    return PostgresSession(
        settings.database.url,
        search_path=settings.database.search_path or search_path_of(settings),
        limits=limits_of(settings),
        clock=clock,
    )


def search_path_of(settings: Settings) -> str:
    """Return the pinned search path: the schemas of the rules, then public, never a temporary one.

    The customer's triggers and companions run under it too, and may name their tables bare.
    """
    schemas = [
        rule.table.schema
        for rule in settings.rules
        if rule.table.schema and rule != settings.built_in  # ours is always named in full
    ]
    quoted = ['"' + name.replace('"', '""') + '"' for name in dict.fromkeys([*schemas, "public"])]
    return ", ".join([*quoted, "pg_temp"])


def sqlite_path(url: str) -> Path:
    """Return the file that an `sqlite:///` URL names: three slashes relative, four absolute.

    Raises:
        UsageError: the URL names a host or no file.
    """
    parts = urlsplit(url)
    if parts.netloc or not parts.path.removeprefix("/"):
        raise UsageError(
            "An SQLite URL is sqlite:///relative/path.db or sqlite:////absolute/path.db."
        )
    return Path(unquote(parts.path[1:]))


def open_ledger(
    settings: Settings,
    *,
    checkpoint: Checkpoint | None = None,
    clock: Clock | None = None,
    create: bool = True,
    considerate: bool = True,
    watched: WatchedClock | None = None,
) -> SqlLedger:
    """Return a ledger of its own connection, for one thread.

    Args:
        clock: replaces the database's; then no host's clock is compared with it, unless `watched`
            gives one.
    """
    session = open_session(settings, clock=clock, create=create, considerate=considerate)
    if watched is None and clock is None:
        watched = WatchedClock(socket.gethostname(), SystemClock())
    return SqlLedger(session, checkpoint or Onwards(), watched)


def join(
    connection: object, *, clock: Clock | None = None, watched: WatchedClock | None = None
) -> SqlLedger:
    """Return a ledger inside the open transaction of a caller's connection.

    Its transactions begin and end nothing; they give the connection back as it was.

    Args:
        connection: of psycopg 3, or of `sqlite3`.
        clock: replaces the database's, as in `open_ledger`.

    Raises:
        UsageError: the connection is of another driver.
    """
    if watched is None and clock is None:
        watched = WatchedClock(socket.gethostname(), SystemClock())
    if isinstance(connection, sqlite3.Connection):
        from freehold.adapters.sql.joined_sqlite import JoinedSqlite

        return SqlLedger(JoinedSqlite(connection, SystemClock(), clock=clock), Onwards(), watched)
    if any(base.__module__ == "psycopg" for base in type(connection).__mro__):
        from freehold.adapters.sql.joined_postgres import JoinedPostgres, checked

        return SqlLedger(JoinedPostgres(checked(connection), clock=clock), Onwards(), watched)
    raise UsageError(
        "The connection must be an open one of psycopg 3 or of sqlite3; "
        f"{type(connection).__name__} is neither."
    )


def require_schema(ledger: SqlLedger) -> None:
    """Check that the ledger's tables are there and as this program knows them.

    Raises:
        RefusedByState: they are not; the sentence says what to do.
    """
    found = problems(ledger.session)
    if found:
        raise RefusedByState(found[0])


def open_inspection(settings: Settings, *, clock: Clock | None = None) -> Inspection:
    """Return a look at the configured database for doctor and plan; it connects at its first read.

    Raises:
        UsageError: the URL names no database that we know, or its driver is not installed.
    """
    ledger = open_ledger(settings, clock=clock, create=False)
    url = settings.database.url
    if urlsplit(url).scheme in POSTGRES_SCHEMES:
        from freehold.adapters.sql.inspection.postgres import PostgresInspection

        return PostgresInspection(ledger, url)
    from freehold.adapters.sql.inspection.sqlite import SqliteInspection

    return SqliteInspection(ledger, sqlite_path(url))
