"""A psycopg connection that can be lent to a handler, and refuses to end the transaction then.

*Limits*: what one text holds behind its first statement is not read; a transaction that was ended
so is noticed after the call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import pq, sql
from psycopg.types.array import ListDumper

from freehold.adapters.sql.lending import MUST_NOT_END, SWALLOWED, Lent, causes, raise_as
from freehold.adapters.sql.statements import load, to_psycopg
from freehold.domain.errors import (
    DatabaseAway,
    DatabaseBusy,
    DatabaseError,
    HandlerFailed,
    StatementTimedOut,
    TransactionEnded,
)

CANCEL_SECONDS = 5.0
_ENDS = re.compile(
    r"\s*(commit|end|abort|prepare\s+transaction|rollback(?!\s+(work\s+|transaction\s+)?to\b))\b",
    re.IGNORECASE,
)
Translate = Callable[[psycopg.Error], DatabaseError]


class LendableCursor(psycopg.Cursor[Any]):
    """Looks at the first word of what a handler executes."""

    def execute(self, query: Any, *arguments: Any, **named: Any) -> LendableCursor:
        """Execute, unless it would end a transaction that is lent."""
        if getattr(self.connection, "lent", False) and _ENDS.match(_text(query, self)):
            raise psycopg.ProgrammingError(MUST_NOT_END)
        super().execute(query, *arguments, **named)
        return self


def _text(query: Any, cursor: LendableCursor) -> str:
    if isinstance(query, sql.Composable):
        return query.as_string(cursor)
    return query.decode(errors="replace") if isinstance(query, bytes) else str(query)


class LendableConnection(psycopg.Connection[Any]):
    """A connection that cannot be committed, rolled back or closed while it is lent."""

    lent = False

    def commit(self) -> None:
        """Commit, unless it is lent."""
        self._refuse_lent()
        super().commit()

    def rollback(self) -> None:
        """Roll back, unless it is lent."""
        self._refuse_lent()
        super().rollback()

    def close(self) -> None:
        """Close, unless it is lent."""
        self._refuse_lent()
        super().close()

    def _refuse_lent(self) -> None:
        if self.lent:
            raise psycopg.ProgrammingError(MUST_NOT_END)

    @contextmanager
    def lending(self, list_dumper: type[Any]) -> Iterator[None]:
        """Be as the driver makes its connections, and afterwards as ours must be."""
        factories = self.row_factory, self.cursor_factory, self.server_cursor_factory
        self.adapters.register_dumper(list, ListDumper)
        self.lent = True
        try:
            yield
        finally:
            self.lent = False
            self.row_factory, self.cursor_factory, self.server_cursor_factory = factories
            self.adapters.register_dumper(list, list_dumper)


@contextmanager
def lend(
    connection: LendableConnection, idle_ms: int, list_dumper: type[Any], translate: Translate
) -> Iterator[Lent]:
    """Lend the connection of the open transaction, and see what comes back.

    Args:
        idle_ms: how long the transaction may do nothing while it is lent.

    Raises:
        HandlerFailed: as the handler said it, or since it left the transaction unusable.
        DatabaseBusy: the database asked the handler to repeat.
        StatementTimedOut: a statement of the handler took too long.
        DatabaseAway: the connection broke.
        TransactionEnded: the handler ended the transaction.
    """
    text = to_psycopg(load("postgres")["lend"]).encode()
    row = connection.execute(text, {"idle_ms": str(idle_ms)}).fetchone()
    xact = None if row is None else row[0]
    try:
        with connection.lending(list_dumper):
            yield Lent(connection, partial(connection.cancel_safe, timeout=CANCEL_SECONDS))
    except HandlerFailed as failed:
        _look(connection, xact, failed=True)
        raise_as(_of_database(connection, failed, translate), failed)
    _look(connection, xact, failed=False)


def _look(connection: LendableConnection, xact: str | None, *, failed: bool) -> None:
    """See whether the transaction is still the one that was lent."""
    status = connection.info.transaction_status
    if status is pq.TransactionStatus.INTRANS:
        row = connection.execute(load("postgres")["lent_transaction"].encode()).fetchone()
        if row is not None and row[0] == xact:
            return
    elif status is pq.TransactionStatus.UNKNOWN:
        raise DatabaseAway("the connection broke while the handler had it", "08006")
    elif status is not pq.TransactionStatus.IDLE:
        if failed:
            return
        raise HandlerFailed(SWALLOWED)
    raise TransactionEnded(f"the handler ended the transaction; {MUST_NOT_END}")


def _of_database(
    connection: LendableConnection, failed: HandlerFailed, translate: Translate
) -> DatabaseError | None:
    """Return what the database asks for, where that is behind the handler's failure."""
    for error in causes(failed):
        if isinstance(error, psycopg.Error):
            ours = translate(error)
            lost = isinstance(ours, DatabaseAway) and connection.closed
            if lost or isinstance(ours, DatabaseBusy | StatementTimedOut):
                return ours
    return None
