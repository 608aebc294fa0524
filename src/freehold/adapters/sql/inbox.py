"""The inbox's table over the consumer's own connection, one class a driver.

*Invariants*: nothing here begins, commits or rolls back a transaction of the consumer's, but for
SQLite's BEGIN IMMEDIATE where none is open. *Not here*: what a key may be (`freehold.inbox`).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol

from freehold.adapters.sql.statements import fill, load, to_psycopg
from freehold.domain.errors import UsageError

if TYPE_CHECKING:
    import psycopg

_TABLE = re.compile(r"(?:(?P<schema>[A-Za-z_]\w{0,62})\.)?(?P<name>[A-Za-z_]\w{0,51})", re.ASCII)
NO_TRANSACTION = (
    "The connection is in autocommit mode and no transaction is open on it; "
    "open one, since the key and your effect must commit together."
)


class Keys(Protocol):
    """The table, as `freehold.inbox` uses it."""

    def add(self, consumer: str, keys: Sequence[str]) -> list[int]:
        """Write new keys; return their places in the batch, each key's first, in order."""
        ...

    def prune(self, consumer: str, before: datetime, limit: int) -> int:
        """Delete keys received before an instant, the oldest first; return how many."""
        ...


def keys_over(connection: object, table: str) -> Keys:
    """Return the table over an open connection.

    Raises:
        UsageError: the connection is of another driver, or asynchronous; the table has no plain
            name.
    """
    if isinstance(connection, sqlite3.Connection):
        return SqliteKeys(connection, table)
    if any(base.__module__.partition(".")[0] == "psycopg" for base in type(connection).__mro__):
        from freehold.adapters.sql.joined_postgres import checked

        return PostgresKeys(checked(connection), table)
    raise UsageError(
        "The connection must be an open one of psycopg 3 or of sqlite3; "
        f"{type(connection).__name__} is neither. For other drivers there is examples/inbox."
    )


def create_script(dialect: str, table: object) -> str:
    """Return the script that makes the table and its index, where they are missing."""
    text = files(__package__).joinpath("schema", "inbox", f"{dialect}.sql").read_text()
    return fill(text, _slots(table))


class PostgresKeys:
    """The table over psycopg; one round trip a batch."""

    def __init__(self, connection: psycopg.Connection[Any], table: str) -> None:
        self._connection = connection
        self._slots = _slots(table)

    def add(self, consumer: str, keys: Sequence[str]) -> list[int]:
        """Write new keys; waits for a transaction that has written the same one."""
        with self._run("inbox_add", {"consumer": consumer, "keys": list(keys)}) as cursor:
            return [place - 1 for (place,) in cursor]

    def prune(self, consumer: str, before: datetime, limit: int) -> int:
        """Delete the oldest keys."""
        given = {"consumer": consumer, "before": before, "limit": limit}
        with self._run("inbox_prune", given) as cursor:
            return sum(count for (count,) in cursor)

    def _run(self, name: str, given: dict[str, Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        import psycopg

        status = self._connection.info.transaction_status
        if self._connection.autocommit and status is psycopg.pq.TransactionStatus.IDLE:
            raise UsageError(NO_TRANSACTION)
        cursor = psycopg.Cursor(self._connection, row_factory=psycopg.rows.tuple_row)
        return cursor.execute(to_psycopg(fill(load("postgres")[name], self._slots)).encode(), given)


class SqliteKeys:
    """The table over sqlite3."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection = connection
        self._slots = _slots(table)

    def add(self, consumer: str, keys: Sequence[str]) -> list[int]:
        """Write new keys; the first write takes the file's one write lock, or waits for it."""
        return [
            place
            for place, key in enumerate(keys)
            if self._run("inbox_add", {"consumer": consumer, "key": key})
        ]

    def prune(self, consumer: str, before: datetime, limit: int) -> int:
        """Delete the oldest keys."""
        text = before.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        return self._run("inbox_prune", {"consumer": consumer, "before": text, "limit": limit})

    def _run(self, name: str, given: dict[str, Any]) -> int:
        cursor = sqlite3.Cursor(self._connection)
        if not self._connection.in_transaction:
            if self._connection.isolation_level is None or _autocommits(self._connection):
                raise UsageError(NO_TRANSACTION)
            # The driver would begin a deferred one, which can fail later for what it has read.
            cursor.execute("begin immediate")
        return cursor.execute(fill(load("sqlite")[name], self._slots), given).rowcount


def _autocommits(connection: sqlite3.Connection) -> bool:
    """Tell whether Python 3.12's own autocommit mode is on; earlier ones have none."""
    return getattr(connection, "autocommit", None) is True


def _slots(table: object) -> dict[str, str]:
    """Return the quoted names of the table and its index.

    Raises:
        UsageError: it is no plain name, with or without a schema.
    """
    found = _TABLE.fullmatch(table) if isinstance(table, str) else None
    if found is None:
        raise UsageError(
            "The inbox's table needs a plain name of at most 52 letters, digits and _, "
            "such as freehold_inbox or billing.freehold_inbox."
        )
    schema = f'"{found["schema"]}".' if found["schema"] else ""
    name = f'"{found["name"]}"'
    index = f'"{found["name"]}_received"'
    return {"inbox": schema + name, "schema": schema, "name": name, "index": index}
