"""An SQLite session: the standard library's driver, WAL, FULL, one immediate transaction a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from freehold.adapters.sql.lending import Lent
from freehold.adapters.sql.lent_sqlite import lend
from freehold.adapters.sql.session import Clock, DatabaseClock, Limits, Row
from freehold.adapters.sql.write_turn import WriteTurn
from freehold.domain.errors import (
    DatabaseAway,
    DatabaseBusy,
    DatabaseError,
    RowRefused,
    RuleRefused,
    StatementTimedOut,
)
from freehold.ports.system import HostClock

PREFIX = "freehold_"
STEPS_BETWEEN_LOOKS = 100_000  # of SQLite's virtual machine; 2 ms when measured
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
_AWAY = (
    "SQLITE_CANTOPEN",
    "SQLITE_IOERR",
    "SQLITE_FULL",
    "SQLITE_READONLY",
    "SQLITE_NOTADB",
    "SQLITE_CORRUPT",
    "SQLITE_NOMEM",
    "SQLITE_PERM",
)
_RULE = ("SQLITE_ERROR", "SQLITE_AUTH", "SQLITE_SCHEMA")


def translate(error: sqlite3.Error) -> DatabaseError:
    """Turn a driver's error into ours, by its symbolic result code."""
    code = getattr(error, "sqlite_errorname", "") or ""
    message = str(error)
    for codes, ours in (
        (_BUSY, DatabaseBusy),
        (_AWAY, DatabaseAway),
        (("SQLITE_INTERRUPT",), StatementTimedOut),
        (_RULE, RuleRefused),
    ):
        if code.startswith(codes):
            return ours(message, code)
    return RowRefused(message, code)


@contextmanager
def translated() -> Iterator[None]:
    """Let only our own errors out."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error) from error


def write_instant(instant: datetime) -> str:
    """Write an instant so that text order is time order."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat("T", "microseconds") + "Z"


def encode(value: Any) -> Any:
    """Turn a value into what SQLite can be given; lists travel as JSON."""
    if isinstance(value, datetime):
        return write_instant(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, list | tuple):
        return _WRITE_JSON(value)
    return value


def _unhex(text: str | None) -> bytes | None:
    """Turn hex back into a blob, as engines from 3.41 on do by themselves."""
    try:
        return None if text is None else bytes.fromhex(text)
    except ValueError:
        return None


_WRITE_JSON = json.JSONEncoder(ensure_ascii=False, default=encode).encode


def read_text(raw: bytes) -> str:
    """Read text that may not be UTF-8: one bad value must not stop a scan."""
    return raw.decode(errors="replace")


class SqliteSession:
    """One connection to one file, opened at the first transaction."""

    dialect = "sqlite"
    prefix = PREFIX
    server_started_at: datetime | None = None
    batch_limit: int | None = 200  # rows; keeps a write transaction near 20 ms
    one_writer = True

    def __init__(
        self,
        path: str,
        host_clock: HostClock,
        *,
        limits: Limits = Limits(),
        clock: Clock | None = None,
        create: bool = True,
        considerate: bool = True,
    ) -> None:
        """Name the file.

        Args:
            create: make the file when it is missing, in WAL mode and for its owner alone.
            considerate: take turns with all our connections to this file, and leave the host
                application time after each write; off while nothing but a quick end matters.
        """
        self._path = path
        self._create = create
        self._turn = WriteTurn(path, host_clock) if considerate else None
        self._statement_ends = inf
        self._limits = limits
        self._clock = clock or DatabaseClock()
        self._host_clock = host_clock
        self._connection: sqlite3.Connection | None = None
        self._read_only = False
        self._was_lent = False

    def begin(self, *, read_only: bool = False) -> datetime:
        """Take the write lock, or only a snapshot; the host's clock is the database's."""
        with translated():
            connection = self._connected()
            if read_only is not self._read_only:
                connection.execute(f"pragma query_only={int(read_only)}")
                self._read_only = read_only
            if read_only:
                connection.execute("begin deferred")
            else:
                self._begin_write(connection)
        return self._clock.read(self._host_clock.wall())

    def _begin_write(self, connection: sqlite3.Connection) -> None:
        """Take the turn first, so that nobody waits for it with the write lock in hand."""
        if self._turn is None:
            connection.execute("begin immediate")
            return
        try:
            self._turn.take()
            connection.execute("begin immediate")
            self._turn.begun()
        except BaseException:
            self._turn.leave()
            raise

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            new = self._create and not Path(self._path).exists()
            if new:
                self._make_file()
            connection = sqlite3.connect(
                f"file:{quote(self._path)}?mode=rw",
                uri=True,
                timeout=self._limits.lock_timeout_ms / 1000,
                isolation_level=None,
                cached_statements=256,
                check_same_thread=False,
            )
            try:
                pragmas = ("synchronous=full", "foreign_keys=on", "cache_size=-16000")
                for pragma in (*pragmas, *(["journal_mode=wal"] if new else [])):
                    connection.execute(f"pragma {pragma}")
            except sqlite3.Error:
                connection.close()
                raise
            connection.text_factory = read_text
            connection.set_progress_handler(self._is_over_time, STEPS_BETWEEN_LOOKS)
            connection.create_function("unhex", 1, _unhex, deterministic=True)
            self._connection = connection
            self._read_only = False
        return self._connection

    def _make_file(self) -> None:
        try:
            Path(self._path).touch(mode=0o600)
        except OSError as error:
            why = f"cannot make the database file {self._path}: {error.strerror}"
            raise DatabaseAway(why, "SQLITE_CANTOPEN") from error

    def _open(self) -> sqlite3.Connection:
        """Return the connection of the open transaction; a new one would not be in it."""
        if self._connection is None:
            raise DatabaseAway("the connection was closed within a transaction", "SQLITE_MISUSE")
        limit_seconds = self._limits.statement_timeout_ms / 1000
        self._statement_ends = self._host_clock.monotonic() + limit_seconds
        return self._connection

    def _is_over_time(self) -> bool:
        """Interrupt a statement, a trigger's included, that runs into its limit."""
        return self._host_clock.monotonic() > self._statement_ends

    def commit(self) -> None:
        """Commit; a deferred constraint may still refuse here."""
        with translated():
            self._open().execute("commit")
        self._drop_lent()
        self._leave_room()

    def _leave_room(self) -> None:
        """Let our next write wait at least as long as this one kept the host application waiting."""
        if self._turn is not None:
            self._turn.leave()

    def rollback(self) -> None:
        """Roll back, if a transaction is open."""
        if self._connection is not None and self._in_transaction():
            with suppress(sqlite3.Error):
                self._connection.execute("rollback")
        self._drop_lent()
        self._leave_room()

    def _drop_lent(self) -> None:
        """Close a connection that a handler had: what it left on it would reach our statements."""
        if self._was_lent and self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        self._was_lent = False

    def _in_transaction(self) -> bool:
        """Tell whether a transaction is open; drop a connection that a handler closed."""
        assert self._connection is not None
        try:
            return self._connection.in_transaction
        except sqlite3.ProgrammingError:
            self._connection = None
            return False

    def run(self, sql: str, parameters: Mapping[str, Any]) -> tuple[list[Row], int]:
        """Execute one statement."""
        encoded = {name: encode(value) for name, value in parameters.items()}
        with translated():
            cursor = self._open().execute(sql, encoded)
            rows = cursor.fetchall()
        return rows, cursor.rowcount

    def run_many(self, sql: str, rows: Sequence[Row], parameters: Mapping[str, Any]) -> int:
        """Execute one statement once for each row."""
        shared = {name: encode(value) for name, value in parameters.items()}
        filled = [
            {**shared, **{f"c{n}": encode(value) for n, value in enumerate(row)}} for row in rows
        ]
        with translated():
            return self._open().executemany(sql, filled).rowcount

    def run_each(self, sql: str, each: Sequence[Mapping[str, Any]]) -> list[int]:
        """Execute one statement for each set of parameters."""
        return [self.run(sql, parameters)[1] for parameters in each]

    @contextmanager
    def lent(self, seconds: float) -> Iterator[Lent]:
        """Lend the open transaction; the handler's own time limit is that of its statements."""
        connection = self._open()
        self._statement_ends = inf
        self._was_lent = True
        with lend(connection) as lent:
            yield lent

    def instant(self, value: Any) -> datetime | None:
        """Read what `write_instant` wrote."""
        return None if value is None else datetime.fromisoformat(value)

    def sure_instant(self, value: Any) -> datetime:
        """Read what `write_instant` wrote."""
        return datetime.fromisoformat(value)

    def uuid(self, value: Any) -> UUID:
        """Read a 128-bit name from its text."""
        return UUID(value)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        if self._turn is not None:
            self._turn.close()
