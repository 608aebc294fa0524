"""A PostgreSQL session: psycopg 3, explicit transactions, settings pinned in each of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper
from psycopg.types.datetime import TimestamptzLoader

from freehold.adapters.sql.lending import Lent
from freehold.adapters.sql.lent_postgres import LendableConnection, LendableCursor, lend
from freehold.adapters.sql.session import Clock, DatabaseClock, Limits, Row
from freehold.adapters.sql.statements import fill, load, to_psycopg
from freehold.domain.errors import (
    DatabaseAway,
    DatabaseBusy,
    DatabaseError,
    RowRefused,
    RuleRefused,
    StatementTimedOut,
)

# The driver warns of pipelines that end in an error, and names host and user; the error itself is
# raised and says enough. An application that wants the warning adds its own handler.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

PREFIX = "freehold."
_TRANSACTIONS = {
    False: "isolation level read committed read write",
    True: "isolation level repeatable read read only",
}
_BUSY = {"40P01", "40001", "55P03"}
# Connection trouble, lack of resources, operator intervention, system errors: not the row's fault.
_AWAY_CLASSES = ("08", "53", "57", "58")
_AWAY_CODES = {"25P03", "25P04"}
_NUL = "\0"
_RULE_CLASSES = ("42", "3F", "28", "0A")


def translate(error: psycopg.Error) -> DatabaseError:
    """Turn a driver's error into ours; the message is the server's primary one, without row data."""
    code = error.sqlstate or ""
    message = error.diag.message_primary or str(error).strip().splitlines()[0]
    if code == "57014":
        return StatementTimedOut(message, code)
    if code in _BUSY:
        return DatabaseBusy(message, code)
    lost = not code and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if lost or code in _AWAY_CODES or code.startswith(_AWAY_CLASSES):
        return DatabaseAway(message, code)
    if code.startswith(_RULE_CLASSES):
        return RuleRefused(message, code)
    return RowRefused(message, code)


@contextmanager
def translated() -> Iterator[None]:
    """Let only our own errors out."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error


class ArrayDumper(Dumper):
    """Writes a list as an array literal in a few passes over the whole text.

    A third of the time of the driver's own dumper, which looks at each element; every statement
    casts its arrays, so that the literal needs no type.
    """

    def dump(self, obj: list[Any]) -> bytes:
        """Quote the elements; NUL, which no text of PostgreSQL holds, keeps them apart."""
        texts = obj if None not in obj else [one for one in obj if one is not None]
        joined = _NUL.join(map(str, texts))
        if joined.count(_NUL) >= max(len(texts), 1):
            raise psycopg.DataError("PostgreSQL text cannot hold NUL")
        if texts is not obj:
            return f"{{{','.join(map(_array_element, obj))}}}".encode()
        return f"{{{_quoted(joined)}}}".encode() if obj else b"{}"


def _array_element(value: Any) -> str:
    return "NULL" if value is None else _quoted(str(value))


def _quoted(text: str) -> str:
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace(_NUL, '","')
    return f'"{inner}"'


class PostgresSession:
    """One connection, opened at the first transaction and again after it was lost."""

    dialect = "postgres"
    prefix = PREFIX
    batch_limit: int | None = None
    one_writer = False

    def __init__(
        self,
        url: str,
        *,
        search_path: str = "public, pg_temp",
        limits: Limits = Limits(),
        clock: Clock | None = None,
    ) -> None:
        self._url = url
        self._limits = limits
        self._clock = clock or DatabaseClock()
        self._connection: LendableConnection | None = None
        self._was_lent = False
        self.server_started_at: datetime | None = None
        literal = "'" + search_path.replace("'", "''") + "'"
        slots = {
            "search_path": literal,
            "lock_timeout_ms": str(limits.lock_timeout_ms),
            "statement_timeout_ms": str(limits.statement_timeout_ms),
            "idle_timeout_ms": str(limits.idle_timeout_ms),
        }
        self._begin_texts = {
            read_only: fill(load("postgres")["database_now"], {**slots, "transaction": kind})
            for read_only, kind in _TRANSACTIONS.items()
        }

    def begin(self, *, read_only: bool = False) -> datetime:
        """Open a transaction and return the clock's reading."""
        with translated():
            cursor = self._connected().execute(self._begin_texts[read_only].encode())
            cursor.nextset()
            row = cursor.fetchone()
        if row is None:
            raise DatabaseAway("the server did not tell the time")
        self.server_started_at = row[1]
        return self._clock.read(row[0])

    def _connected(self) -> LendableConnection:
        if self._connection is None or self._connection.closed:
            self._connection = LendableConnection.connect(
                self._url,
                autocommit=True,
                prepare_threshold=None,
                cursor_factory=LendableCursor,
                connect_timeout=self._limits.connect_timeout_s,
                application_name="freehold",
                keepalives_idle=30,
                tcp_user_timeout=30_000,
            )
            self._connection.adapters.register_loader("timestamptz", TimestamptzLoader)
            self._connection.adapters.register_dumper(list, ArrayDumper)
        return self._connection

    def _open(self) -> LendableConnection:
        """Return the connection of the open transaction; a new one would not be in it."""
        if self._connection is None or self._connection.closed:
            raise DatabaseAway("the connection was closed within a transaction", "08003")
        return self._connection

    def commit(self) -> None:
        """Commit, and raise unless the server says COMMIT (it says ROLLBACK for a failed one)."""
        with translated():
            status = self._open().execute("commit").statusmessage
        if status != "COMMIT":
            raise RowRefused(f"the server answered {status} to COMMIT", "25P02")
        self._forget_handler()

    def rollback(self) -> None:
        """Roll back, or drop a connection that cannot."""
        connection = self._connection
        if connection is None:
            return
        if connection.info.transaction_status is pq.TransactionStatus.UNKNOWN:
            self.close()
            return
        try:
            connection.execute("rollback")
        except psycopg.Error:
            self.close()
        self._forget_handler()

    def _forget_handler(self) -> None:
        """Take back what a handler left in the session: settings, role, locks, temporary tables."""
        if not self._was_lent:
            return
        self._was_lent = False
        if self._connection is not None:
            try:
                self._connection.execute("discard all")
            except psycopg.Error:
                self.close()

    def run(self, sql: str, parameters: Mapping[str, Any]) -> tuple[list[Row], int]:
        """Execute one statement."""
        with translated():
            cursor = self._open().execute(to_psycopg(sql).encode(), parameters)
            rows = cursor.fetchall() if cursor.description else []
        return rows, cursor.rowcount

    def run_many(self, sql: str, rows: Sequence[Row], parameters: Mapping[str, Any]) -> int:
        """Execute one statement over arrays."""
        columns = {f"c{n}": list(column) for n, column in enumerate(zip(*rows, strict=True))}
        return self.run(sql, {**parameters, **columns})[1]

    def run_each(self, sql: str, each: Sequence[Mapping[str, Any]]) -> list[int]:
        """Execute one statement for each set of parameters, in one round trip."""
        text = to_psycopg(sql).encode()
        with translated():
            connection = self._open()
            with connection.pipeline():
                cursors = [connection.execute(text, parameters) for parameters in each]
            return [cursor.rowcount for cursor in cursors]

    @contextmanager
    def lent(self, seconds: float) -> Iterator[Lent]:
        """Lend the open transaction; it may idle for as long as the handler may think."""
        idle_ms = max(self._limits.idle_timeout_ms, round(seconds * 1000))
        self._was_lent = True
        with translated(), lend(self._open(), idle_ms, ArrayDumper, translate) as lent:
            yield lent

    def instant(self, value: Any) -> datetime | None:
        """Return the instant; the driver has read it already."""
        return None if value is None else value

    def sure_instant(self, value: Any) -> datetime:
        """Return the instant; the driver has read it already."""
        return cast("datetime", value)

    def uuid(self, value: Any) -> UUID:
        """Return the UUID; the driver has read it already."""
        return UUID(str(value)) if not isinstance(value, UUID) else value

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None
