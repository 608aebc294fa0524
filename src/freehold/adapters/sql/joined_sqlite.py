"""A session inside the caller's open `sqlite3` transaction, which it never ends.

*Invariants*: row and text factories of the caller's connection do not reach our statements, and are
as before when a block of ours ends.
*Limits*: a converter that the caller registered for TEXT or INTEGER columns reaches some of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from freehold.adapters.sql.lending import Lent, refused
from freehold.adapters.sql.session import Clock, Row
from freehold.adapters.sql.sqlite import SqliteSession, encode, read_text, translated
from freehold.adapters.sql.statements import fill, load
from freehold.domain.errors import UsageError
from freehold.ports.system import HostClock

NO_TRANSACTION = (
    "The connection is in autocommit mode and no transaction is open on it; "
    "begin one, since a hold and its event must commit together."
)


class JoinedSqlite(SqliteSession):
    """The caller's connection for the length of one call."""

    def __init__(
        self, connection: sqlite3.Connection, host_clock: HostClock, *, clock: Clock | None = None
    ) -> None:
        super().__init__("", host_clock, clock=clock, create=False, considerate=False)
        self._callers = connection
        self._text_factory: Any = str

    def begin(self, *, read_only: bool = False) -> datetime:
        """Take the write lock within the caller's transaction, and read the clock.

        The lock comes first, so that nothing that was read can have changed before the write.

        Raises:
            UsageError: no transaction is open, and the driver would open none.
        """
        self._text_factory = self._callers.text_factory
        self._callers.text_factory = read_text
        if not read_only:
            self._take_lock()
        return self._clock.read(self._host_clock.wall())

    def _take_lock(self) -> None:
        if self._callers.in_transaction:
            self.run(fill(load("sqlite")["join_caller"], {"s": self.prefix}), {})
        elif self._callers.isolation_level is None or _autocommits(self._callers):
            raise UsageError(NO_TRANSACTION)
        else:
            # The driver would begin one at the first write, and end it at the caller's commit.
            self.run("begin immediate", {})

    def commit(self) -> None:
        """Give the factories back; the transaction is the caller's to commit."""
        self._callers.text_factory = self._text_factory

    def rollback(self) -> None:
        """Give the factories back."""
        self._callers.text_factory = self._text_factory

    def run(self, sql: str, parameters: Mapping[str, Any]) -> tuple[list[Row], int]:
        """Execute one statement."""
        given = {name: _plain(encode(value)) for name, value in parameters.items()}
        with translated():
            cursor = sqlite3.Cursor(self._callers)
            cursor.execute(sql, given)
            rows = cursor.fetchall()
            return rows, cursor.rowcount

    def run_many(self, sql: str, rows: Sequence[Row], parameters: Mapping[str, Any]) -> int:
        """Execute one statement once for each row."""
        each = [{**parameters, **{f"c{n}": one for n, one in enumerate(row)}} for row in rows]
        return sum(self.run_each(sql, each))

    @contextmanager
    def lent(self, seconds: float) -> Iterator[Lent]:
        """Refuse: a handler runs in Freehold's own transactions only."""
        yield from refused()

    def close(self) -> None:
        """Do nothing: the connection is the caller's."""


def _autocommits(connection: sqlite3.Connection) -> bool:
    """Tell whether Python 3.12's own autocommit mode is on; earlier ones have none."""
    return getattr(connection, "autocommit", None) is True


def _plain(value: Any) -> Any:
    """Keep the caller's adapters of bool out."""
    return int(value) if isinstance(value, bool) else value
