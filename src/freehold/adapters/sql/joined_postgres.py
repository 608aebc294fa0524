"""A session inside the caller's open psycopg transaction, which it neither begins nor ends.

*Invariants*: settings, row factories, adapters and prepared statements of the caller's connection
do not reach our statements, and are as before when a block of ours ends.
*Limits*: time-outs stay the caller's; after an error of the database the transaction is lost, and
the caller's ROLLBACK, which then has to come, also brings the settings back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg import postgres, pq
from psycopg.adapt import AdaptersMap
from psycopg.rows import tuple_row
from psycopg.types.datetime import TimestamptzLoader

from freehold.adapters.sql.lending import Lent, refused
from freehold.adapters.sql.postgres import ArrayDumper, PostgresSession, translated
from freehold.adapters.sql.session import Clock, Row
from freehold.adapters.sql.statements import load, to_psycopg
from freehold.domain.errors import DatabaseAway, UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_TRANSACTION = (
    "The connection is in autocommit mode and no transaction is open on it; "
    "open one, since a hold and its event must commit together."
)


def _our_adapters() -> AdaptersMap:
    """Return the driver's own conversions, whatever the caller registered for all connections."""
    ours = AdaptersMap(types=postgres.types)
    postgres.register_default_adapters(ours)
    ours.register_loader("timestamptz", TimestamptzLoader)
    ours.register_dumper(list, ArrayDumper)
    return ours


_ADAPTERS = _our_adapters()


class _OwnCursor(psycopg.Cursor[Row]):
    """A cursor that converts values our way, whatever the connection's way is."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__(connection, row_factory=tuple_row)
        self._adapters = AdaptersMap(_ADAPTERS)


def checked(connection: object) -> psycopg.Connection[Any]:
    """Return the connection as what it is.

    Raises:
        UsageError: it is an asynchronous one.
    """
    if not isinstance(connection, psycopg.Connection):
        raise UsageError("The connection is asynchronous; use one of psycopg.Connection.")
    return connection


class JoinedPostgres(PostgresSession):
    """The caller's connection for the length of one call."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        *,
        clock: Clock | None = None,
    ) -> None:
        super().__init__("", clock=clock)
        self._callers = connection
        self._before: dict[str, str] = {}

    def begin(self, *, read_only: bool = False) -> datetime:
        """Read the clock, and pin what our statements depend on until the block ends.

        Raises:
            UsageError: no transaction is open, and the driver would open none.
        """
        if not read_only:
            self._require_transaction()
        row = self.run(load("postgres")["join_caller"], {})[0][0]
        self._before = json.loads(row[1])
        return self._clock.read(_EPOCH + timedelta(microseconds=row[0]))

    def _require_transaction(self) -> None:
        status = self._callers.info.transaction_status
        if self._callers.autocommit and status is pq.TransactionStatus.IDLE:
            raise UsageError(NO_TRANSACTION)

    def commit(self) -> None:
        """Give the caller's settings back; the transaction is the caller's to commit."""
        names, values = list(self._before), list(self._before.values())
        self.run(load("postgres")["leave_caller"], {"names": names, "values": values})

    def rollback(self) -> None:
        """Give the caller's settings back, unless the transaction is lost."""
        if self._callers.info.transaction_status is pq.TransactionStatus.INTRANS and self._before:
            with suppress(psycopg.Error, DatabaseAway):
                self.commit()

    def run(self, sql: str, parameters: Mapping[str, Any]) -> tuple[list[Row], int]:
        """Execute one statement."""
        with translated(), _OwnCursor(self._callers) as cursor:
            with self._answered():
                cursor.execute(to_psycopg(sql).encode(), parameters, prepare=False)
            rows = cursor.fetchall() if cursor.description else []
            return rows, cursor.rowcount

    def _answered(self) -> AbstractContextManager[object]:
        """Wait for the answer within the block, where the caller has a pipeline open."""
        is_off = self._callers.pgconn.pipeline_status == pq.PipelineStatus.OFF
        return nullcontext() if is_off else self._callers.pipeline()

    def run_each(self, sql: str, each: Sequence[Mapping[str, Any]]) -> list[int]:
        """Execute one statement for each set of parameters."""
        return [self.run(sql, parameters)[1] for parameters in each]

    @contextmanager
    def lent(self, seconds: float) -> Iterator[Lent]:
        """Refuse: a handler runs in Freehold's own transactions only."""
        yield from refused()

    def close(self) -> None:
        """Do nothing: the connection is the caller's."""
