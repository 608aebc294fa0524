"""Our connection in the hands of a handler: what it may not do, and how that is said.

*Invariants*: a loan ends before our next statement; a handler that ended or spoilt the transaction
is told apart from one that only failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from freehold.domain.errors import DatabaseError, HandlerFailed, UsageError

CHAIN_MAX = 20  # exceptions, each the cause or the context of the one before
MUST_NOT_END = (
    "a handler must not commit, roll back or close: the transaction belongs to the release"
)
SWALLOWED = (
    "the handler caught an error of the database and went on in a transaction that is lost: "
    "let it raise, or put the statement into a savepoint"
)


@dataclass(frozen=True, slots=True)
class Lent:
    """A connection on loan.

    Attributes:
        connection: the driver's own.
        cancel: ends the statement that it is at; for another thread.
    """

    connection: Any
    cancel: Callable[[], None]


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what a handler's failure came from, the nearest first."""
    found = error.__cause__ or error.__context__
    for _ in range(CHAIN_MAX):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def raise_as(ours: DatabaseError | None, failed: HandlerFailed) -> None:
    """Raise what the database did instead of what the handler made of it."""
    if ours is not None:
        raise ours from failed
    raise failed


def refused() -> Iterator[Lent]:
    """Refuse to lend a transaction that is another application's own.

    Raises:
        UsageError: always.
    """
    raise UsageError("A handler does not run inside another application's transaction.")
