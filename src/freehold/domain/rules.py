"""A rule: one mapping of one table, and what expiring means there.

*Invariants*: a rule is complete and consistent once built; nothing in it depends on a database.
*Not here*: reading rules from a file (`freehold.settings`), checking them against a live table
(`freehold.application.doctor`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from freehold.domain.due import DueSpec
from freehold.domain.retries import RetryPolicy
from freehold.domain.schedule import Precise, Schedule

Literal = str | int | float | bool | None


class Test(StrEnum):
    """How one column is compared in a predicate."""

    __test__ = False
    EQUALS = "="
    IN = "in"
    LESS = "<"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of one column; `values` is empty for the two NULL tests."""

    column: str
    test: Test
    values: tuple[Literal, ...] = ()


@dataclass(frozen=True, slots=True)
class Predicate:
    """Alternatives of ANDs. No alternative at all means every row: the row is the hold."""

    alternatives: tuple[tuple[Condition, ...], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns named, each once, in the order of first use."""
        named = (condition.column for alternative in self.alternatives for condition in alternative)
        return tuple(dict.fromkeys(named))


@dataclass(frozen=True, slots=True)
class TableName:
    """Where the holds live; both parts are exact names, quoted wherever they are used."""

    name: str
    schema: str | None = None

    def __str__(self) -> str:
        """Return the name as a person writes it."""
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class TenantSource:
    """Who a hold belongs to: a column, a constant, or nobody (both None)."""

    column: str | None = None
    constant: str | None = None


@dataclass(frozen=True, slots=True)
class Now:
    """The instant of release, written in the column's own kind."""


@dataclass(frozen=True, slots=True)
class SetColumns:
    """Expire by writing columns."""

    assignments: tuple[tuple[str, Literal | Now], ...]


@dataclass(frozen=True, slots=True)
class DeleteRow:
    """Expire by deleting the row."""


Action = SetColumns | DeleteRow


@dataclass(frozen=True, slots=True)
class Companion:
    """Operator's SQL that runs once for each changed hold, in the releasing transaction.

    Attributes:
        rows_min: the fewest rows that it may change, inclusive.
        rows_max: the most rows, inclusive; None is no limit.
        before: run ahead of the release, for children that must go first.
        lock_by: a parameter of the statement; companions run in the order of its values.
    """

    sql: str
    rows_min: int = 0
    rows_max: int | None = None
    before: bool = False
    lock_by: str | None = None


@dataclass(frozen=True, slots=True)
class HandlerSpec:
    """A Python function that runs with the releases of a rule, in their transaction.

    Attributes:
        target: `package.module:function`.
        time_limit: how long one call may take; shorter than a lease.
    """

    target: str
    time_limit: timedelta


class Mode(StrEnum):
    """How due holds become work."""

    DIRECT = "direct"
    WINDOW = "window"
    RESERVATION = "reservation"


class Again(StrEnum):
    """What happens to a hold that is due again with the identity of one already expired."""

    REVIEW = "review"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Rule:
    """One mapping of one table; see docs/reference/settings.md for every field.

    Attributes:
        fence: token columns, compared at commit beside key, due and every predicate column.
        promise: the longest lag from due to commit that the operator accepts.
        hold_window: how long a hold usually lasts, for the age alert.
        attach_limit: overdue rows that the first scan may take without being confirmed.
        batch_size: holds in one transaction, at most.
        one_holder: a row is one holder's for life, so that a new token means more time for him.
        handler: called with the holds that a transaction released, before its commit.
        tell_skips: an operation that ends as skipped leaves an event too.
        unit: the column that names the unit of a hold, for reports; it says nothing about what
            expiring means, so that it may be named or changed at any time.
    """

    name: str
    table: TableName
    key: tuple[str, ...]
    held: Predicate
    due: DueSpec
    action: Action
    tenant: TenantSource = TenantSource()
    fence: tuple[str, ...] = ()
    confirmed: Predicate | None = None
    cancelled: Predicate | None = None
    companions: tuple[Companion, ...] = ()
    carry: tuple[str, ...] = ()
    schedule: Schedule = field(default_factory=Precise)
    mode: Mode = Mode.RESERVATION
    promise: timedelta = timedelta(seconds=60)
    hold_window: timedelta | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    again: Again = Again.REVIEW
    attach_limit: int = 1_000
    batch_size: int = 500
    one_holder: bool = False
    handler: HandlerSpec | None = None
    tell_skips: bool = False
    unit: str | None = None

    @property
    def identity_columns(self) -> tuple[str, ...]:
        """Return due and token columns: with rule and key they name one granting of a hold."""
        return tuple(dict.fromkeys((self.due.column, *self.fence)))

    @property
    def guard_columns(self) -> tuple[str, ...]:
        """Return the predicate columns that identity and key leave out; the fence's second part."""
        taken = {*self.identity_columns, *self.key}
        return tuple(column for column in self.held.columns if column not in taken)

    @property
    def mapped_columns(self) -> tuple[str, ...]:
        """Return every column that the rule names: the before-image of a record."""
        set_columns = self.action.assignments if isinstance(self.action, SetColumns) else ()
        tenant = () if self.tenant.column is None else (self.tenant.column,)
        optional = [p.columns for p in (self.confirmed, self.cancelled) if p is not None]
        return tuple(
            dict.fromkeys(
                (
                    *self.key,
                    *tenant,
                    *self.identity_columns,
                    *self.held.columns,
                    *(column for columns in optional for column in columns),
                    *(column for column, _ in set_columns),
                    *self.carry,
                    *(() if self.unit is None else (self.unit,)),
                )
            )
        )

    @property
    def fingerprint(self) -> str:
        """Return a digest of what the mapping means; schedules, sizes and units do not count."""
        meaning = (
            self.table,
            self.key,
            self.held,
            self.due,
            self.action,
            self.tenant,
            self.fence,
            self.companions,
            self.carry,
        )
        return hashlib.sha256(repr(meaning).encode()).hexdigest()[:16]
