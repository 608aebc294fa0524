"""What the contract suites of the ledger stand on: an adapter, a clock to set, and a back door.

*Invariants*: the back door never goes through the adapter under test, so that what it wrote is read
by other means, and what it reads was written by other means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Protocol

from freehold.domain.errors import FreeholdError
from freehold.domain.names import digest, pack
from freehold.domain.operations import Claim, NewOperation
from freehold.domain.rules import Rule
from freehold.domain.tallies import Tally
from freehold.ports.ledger import Ledger, Transaction

NOW = datetime(2031, 5, 6, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class RawDoor(Protocol):
    """The database through its plain driver, each call committed at once."""

    def rows(self, table: str) -> Sequence[Mapping[str, Any]]:
        """Read one of the ledger's tables in the order of writing.

        Args:
            table: its bare name, such as operation or outbox; or `note`: the table
                `companion_note` (side, id, status, all text) that companions may write.

        Returns:
            Instants as aware datetimes, digests as UUID, truth as bool, JSON as objects.
        """
        ...

    def add_hold(self, key: int, due: datetime | None, *, token: str = "a") -> None:
        """Add a row in its held state, of tenant `t`."""
        ...

    def change_hold(self, key: int, column: str, value: str | None) -> None:
        """Write one text column of a row: status, tenant or token."""
        ...

    def index_tenants(self, columns: str, where: str | None = None) -> None:
        """Give the table one more index; it goes with the ground."""
        ...

    def hold(self, key: int) -> Mapping[str, Any] | None:
        """Read status, tenant and token of a row."""
        ...

    def remove_hold(self, key: int) -> None:
        """Delete a row."""
        ...

    def add_event(self, key: int, *, state: str = "pending", rule: str = "r") -> None:
        """Add an event of type `hold.expired.v1` and tenant `t`, made at `NOW`; the key is its id."""
        ...

    def remove_event(self, key: int) -> None:
        """Delete an event."""
        ...

    def put_forward(self, key: int, state: str) -> None:
        """Bring all forwards of an event into a state, without a lease."""
        ...

    def suppress_changes(self) -> None:
        """Give the table a trigger that drops every update without an error."""
        ...

    def restore_changes(self) -> None:
        """Give the table a trigger that puts each updated row back as it was."""
        ...

    def refuse_changes(self) -> None:
        """Give the table a trigger that raises at every update."""
        ...

    def break_table(self) -> None:
        """Take the token column away, as a host's migration would."""
        ...

    def lock_hold(self, key: int) -> AbstractContextManager[None]:
        """Hold a row locked, or the database, as an open transaction of the host does."""
        ...


class Ground(Protocol):
    """One empty ledger beside one empty table of holds."""

    @property
    def rule(self) -> Rule:
        """Return the rule `r` over the table of holds.

        Key `id`, held while status is `held`, fence `token`, tenant from `tenant`; it expires by
        setting status to `expired`, and carries `tenant`.
        """
        ...

    @property
    def back(self) -> RawDoor:
        """Return the way in that does not use the adapter."""
        ...

    def open(self) -> Ledger:
        """Open one more connection; the ground closes it at the end."""
        ...

    def open_on(self, host: str) -> Ledger:
        """Open one as a process on a host does whose clocks agree with the database's."""
        ...

    def open_unreachable(self) -> Ledger:
        """Return a ledger whose database cannot be reached."""
        ...

    def set_now(self, now: datetime) -> None:
        """Make every transaction that begins from here on read this instant; `NOW` at first."""
        ...

    def transactions_overlap(self) -> bool:
        """Tell whether two writing transactions can be open at once; else the second is busy."""
        ...

    def has_server(self) -> bool:
        """Tell whether there is a server that could restart."""
        ...


class raised:  # noqa: N801 - reads as a statement: `with raised(ChangeLost):`
    """Assert that the block raises exactly this kind of our errors."""

    def __init__(self, kind: type[FreeholdError]) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if kind is not None and not issubclass(kind, FreeholdError):
            return False
        said = "nothing" if kind is None else f"{kind.__name__}: {error}"
        assert kind is self._kind, f"{self._kind.__name__} was to be raised, not {said}"
        return True


class Abandoned(FreeholdError):
    """Raised by a suite to leave a transaction without a commit."""


def identity_of(due: datetime, token: str = "a") -> str:
    """Return some identity; suites without rows of the host need no true one."""
    return pack((due.isoformat(), token))


def new_operation(rule: str, key: int, due: datetime = NOW, **changes: Any) -> NewOperation:
    """Make an operation that names no row of the host."""
    identity = identity_of(due)
    made = NewOperation(
        rule=rule,
        tenant="t",
        hold_key=str(key),
        digest=digest(rule, str(key), identity),
        identity=identity,
        guard="[]",
        due_at=due,
    )
    return replace(made, **changes)


def enqueue(ledger: Ledger, *new: NewOperation) -> None:
    """Write operations and commit."""
    with ledger.transaction() as tx:
        tx.operations.enqueue(new, None)


def lease(ledger: Ledger, rule: str, until: datetime, max_count: int = 10) -> Sequence[Claim]:
    """Lease operations and commit."""
    with ledger.transaction() as tx:
        return tx.operations.lease(rule, max_count, None, until)


def claimed_keys(tx: Transaction, rule: str, max_count: int = 10) -> list[str]:
    """Claim, and name what was claimed, sorted."""
    return sorted(one.hold_key for one in tx.operations.claim(rule, max_count, None))


def tally_id(tx: Transaction, rule: str) -> int:
    """Write an empty tally and return its id."""
    return tx.operations.add_tallies([Tally(rule, "t")])[0]


def only(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the only row."""
    assert len(rows) == 1, rows
    return rows[0]
