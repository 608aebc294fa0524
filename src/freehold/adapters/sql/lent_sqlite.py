"""An SQLite connection lent to a handler: its authorizer refuses to end the transaction.

*Limits*: a handler that opens the file a second time finds it locked, by us.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from freehold.adapters.sql.lending import MUST_NOT_END, Lent, causes, raise_as
from freehold.domain.errors import DatabaseError, HandlerFailed, StatementTimedOut

OWN_CONNECTION = (
    "the database is locked by this very transaction: write through the connection of the batch"
)


class _Guard:
    """Refuses BEGIN, COMMIT and ROLLBACK; savepoints are another matter, and allowed."""

    def __init__(self) -> None:
        self.refused = False

    def __call__(self, action: int, *_: str | None) -> int:
        """Decide about one action of a statement that is prepared."""
        if action != sqlite3.SQLITE_TRANSACTION:
            return sqlite3.SQLITE_OK
        self.refused = True
        return sqlite3.SQLITE_DENY


@contextmanager
def lend(connection: sqlite3.Connection) -> Iterator[Lent]:
    """Lend the connection of the open transaction, and see what comes back.

    Raises:
        HandlerFailed: as the handler said it, or since it left no transaction.
        StatementTimedOut: a statement of the handler was interrupted.
    """
    guard = _Guard()
    factories = connection.row_factory, connection.text_factory
    connection.set_authorizer(guard)
    try:
        yield Lent(connection, connection.interrupt)
    except HandlerFailed as failed:
        raise_as(_of_database(failed, guard), failed)
    finally:
        with suppress(sqlite3.Error):  # a closed connection says so, and is seen below
            _take_back(connection)
            connection.row_factory, connection.text_factory = factories
    if not _is_in_transaction(connection):
        raise HandlerFailed(f"the handler lost the transaction; {MUST_NOT_END}")


def _take_back(connection: sqlite3.Connection) -> None:
    if connection.isolation_level is not None:
        with suppress(sqlite3.Error):
            connection.isolation_level = None  # which tries to commit: while that is refused
    connection.set_authorizer(None)


def _is_in_transaction(connection: sqlite3.Connection) -> bool:
    try:
        return connection.in_transaction
    except sqlite3.ProgrammingError:
        return False


def _of_database(failed: HandlerFailed, guard: _Guard) -> DatabaseError | None:
    """Return what the database did, where that is behind the handler's failure."""
    for error in causes(failed):
        code = getattr(error, "sqlite_errorname", "") or ""
        if code.startswith("SQLITE_AUTH") and guard.refused:
            return HandlerFailed(MUST_NOT_END, failed.place)
        if code.startswith("SQLITE_INTERRUPT"):
            return StatementTimedOut(str(error), code)
        if code.startswith("SQLITE_BUSY"):
            return HandlerFailed(OWN_CONNECTION, failed.place)
    return None
