"""The raw back door: a plain driver connection, so that reads and writes are checked apart.

Nothing of the SQL adapters runs here but the spelling of parameters. A statement may name a ledger
table as `{s}operation`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from freehold.adapters.sql.statements import to_psycopg
from freehold.bootstrap import sqlite_path

Row = tuple[Any, ...]


class BackDoor:
    """One autocommitting connection, opened by `with` and closed at its end."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.dialect = "sqlite" if url.startswith("sqlite") else "postgres"
        self.prefix = "freehold_" if self.dialect == "sqlite" else "freehold."
        self._connection: Any = None

    def __enter__(self) -> Self:
        if self.dialect == "sqlite":
            path = str(sqlite_path(self.url))
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=20)
            self._connection.execute("pragma foreign_keys = on")
        else:
            import psycopg

            self._connection = psycopg.connect(self.url, autocommit=True)
            self._connection.execute("set timezone = 'UTC'")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    @property
    def connection(self) -> Any:
        """The driver's own connection, for code that joins the transaction of a host."""
        return self._connection

    def _run(self, sql: str, parameters: Mapping[str, Any]) -> Any:
        text = sql.replace("{s}", self.prefix)
        if self.dialect == "sqlite":
            return self._connection.execute(text, parameters)
        return self._connection.execute(to_psycopg(text), parameters)

    def rows(self, sql: str, /, **parameters: Any) -> list[Row]:
        """Return all rows of a query; parameters stand as `:name`."""
        return [tuple(row) for row in self._run(sql, parameters).fetchall()]

    def one(self, sql: str, /, **parameters: Any) -> Any:
        """Return the first column of the only row."""
        ((value, *_),) = self.rows(sql, **parameters)
        return value

    def execute(self, sql: str, /, **parameters: Any) -> int:
        """Run a statement; return how many rows it changed."""
        return int(self._run(sql, parameters).rowcount)

    def script(self, sql: str) -> None:
        """Run several statements."""
        text = sql.replace("{s}", self.prefix)
        if self.dialect == "sqlite":
            self._connection.executescript(text)
        else:
            self._connection.execute(text)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let what runs in the block commit as one."""
        self._connection.execute("begin")
        try:
            yield
            self._connection.execute("commit")
        except BaseException:
            self._connection.execute("rollback")
            raise

    def wait_until_alone(self) -> None:
        """Block until no session of Freehold is in a transaction.

        The server notices a moment late that a process was killed, and holds its locks until then.
        """
        if self.dialect == "sqlite":
            return
        while self.one(
            "select count(*) from pg_stat_activity, pg_sleep(0.001)"
            " where datname = current_database() and application_name = 'freehold'"
            " and state <> 'idle'"
        ):
            pass

    def local(self, instant: datetime) -> Any:
        """Write an instant the way the tables of `tables` hold it."""
        if self.dialect == "postgres":
            return instant
        return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")

    def ledger(self, instant: datetime) -> Any:
        """Write an instant the way the ledger holds it."""
        if self.dialect == "postgres":
            return instant
        return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
