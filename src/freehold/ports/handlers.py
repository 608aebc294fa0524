"""A rule's own Python function, which runs with its releases in their transaction.

*Invariants*: a handler sees holds that really changed, and only before their commit; what it writes
through the connection that it is lent is committed with the release, or not at all.
*Not here*: which function belongs to which rule (`settings`), retries (`application.isolate`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ExpiredHold:
    """One hold that this transaction released.

    Attributes:
        key: the hold's key, as `freehold why` takes it.
        due_at: the instant that it was due, grace not added.
        operation_key: the same at every attempt: the idempotency key for effects outside the
            database.
        attempt: which attempt this is, from 1.
        columns: the mapped and carried columns before the change, as text; None for NULL.
    """

    tenant: str | None
    key: str
    due_at: datetime
    operation_key: str
    attempt: int
    columns: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ExpiredBatch:
    """What a handler is given.

    Attributes:
        rule: the rule's name.
        connection: the driver's own (psycopg or sqlite3), inside the releasing transaction; the
            handler reads and writes with it, and neither commits nor rolls back.
        now: the instant that the transaction decides by.
    """

    rule: str
    connection: Any = field(repr=False)
    now: datetime
    holds: Sequence[ExpiredHold]


class Handler(Protocol):
    """The function of one rule."""

    @property
    def seconds_max(self) -> float:
        """Return how long the database must bear with one call: the time limit and its grace."""
        ...

    def run(self, batch: ExpiredBatch, cancel: Callable[[], None]) -> None:
        """Call the function once, under its time limit.

        Args:
            cancel: ends the statement that the connection is at; called from another thread.

        Raises:
            HandlerFailed: the function raised anything at all, which is the cause.
            HandlerTimedOut: it was stopped at its time limit.
        Crash: a function that cannot be stopped ends this process.
        """
        ...
