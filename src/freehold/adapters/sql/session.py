"""One connection to one database, with the few things in which the dialects differ.

*Invariants*: every error that leaves a session is one of `domain.errors`; a failed transaction is
rolled back before the error is seen.
*Not here*: SQL text (`statements`), what a transaction offers (`ledger`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from freehold.adapters.sql.lending import Lent
from freehold.adapters.sql.statements import fill, load

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one transaction may take, in milliseconds (DESIGN section 8's defaults)."""

    lock_timeout_ms: int = 2_000
    statement_timeout_ms: int = 30_000
    idle_timeout_ms: int = 10_000
    connect_timeout_s: int = 10


class Clock(Protocol):
    """Where a transaction's `now` comes from, once the database's own reading is known."""

    def read(self, database_now: datetime) -> datetime:
        """Return the instant that the transaction decides by."""
        ...


class DatabaseClock:
    """The clock of production: the database's own reading."""

    def read(self, database_now: datetime) -> datetime:
        """Return the reading as it is."""
        return database_now


class Session(Protocol):
    """A connection; belongs to one thread."""

    dialect: str
    prefix: str
    server_started_at: datetime | None
    batch_limit: int | None
    one_writer: bool

    def begin(self, *, read_only: bool = False) -> datetime:
        """Open a transaction and return the clock's reading.

        Args:
            read_only: refuse every write, see one snapshot to the end, and keep no writer waiting.
        """
        ...

    def commit(self) -> None:
        """Commit, and raise unless the database says that it did."""
        ...

    def rollback(self) -> None:
        """Roll back; never raises, since the error that led here matters more."""
        ...

    def run(self, sql: str, parameters: Mapping[str, Any]) -> tuple[list[Row], int]:
        """Execute one statement; return its rows and the count of rows that it changed."""
        ...

    def run_many(self, sql: str, rows: Sequence[Row], parameters: Mapping[str, Any]) -> int:
        """Execute a batch statement over rows, whose columns are `c0`, `c1`, ...; return changes."""
        ...

    def run_each(self, sql: str, each: Sequence[Mapping[str, Any]]) -> list[int]:
        """Execute one statement once for each set of parameters; return the changed rows of each."""
        ...

    def lent(self, seconds: float) -> AbstractContextManager[Lent]:
        """Lend the open transaction to customer's code, which may take so long over it.

        Raises:
            HandlerFailed: it failed, or left the transaction unusable.
            TransactionEnded: it ended the transaction.
        """
        ...

    def instant(self, value: Any) -> datetime | None:
        """Read an instant as the database returned it."""
        ...

    def sure_instant(self, value: Any) -> datetime:
        """Read an instant of a column that is never NULL."""
        ...

    def uuid(self, value: Any) -> UUID:
        """Read a 128-bit name as the database returned it."""
        ...

    def close(self) -> None:
        """Close the connection; never raises."""
        ...


class Runner:
    """Runs named statements of one session's dialect."""

    def __init__(self, session: Session, slots: Mapping[str, str] | None = None) -> None:
        self.session = session
        self._texts = load(session.dialect)
        self._slots = {"s": session.prefix, **(slots or {})}
        self._filled: dict[str, str] = {}

    def text(self, name: str) -> str:
        """Return a statement with its slots filled."""
        if name not in self._filled:
            self._filled[name] = fill(self._texts[name], self._slots)
        return self._filled[name]

    def rows(self, name: str, /, **parameters: Any) -> list[Row]:
        """Execute a statement and return its rows."""
        return self.session.run(self.text(name), parameters)[0]

    def count(self, name: str, /, **parameters: Any) -> int:
        """Execute a statement and return how many rows it changed."""
        return self.session.run(self.text(name), parameters)[1]

    def many(self, name: str, rows: Sequence[Row], /, **parameters: Any) -> int:
        """Execute a batch statement; return how many rows it changed, 0 for an empty batch."""
        return self.session.run_many(self.text(name), rows, parameters) if rows else 0
