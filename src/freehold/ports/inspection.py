"""Facts about a live database for `doctor` and `plan`, read and never written.

*Invariants*: no method takes a lock of the host or changes a row; what costs by row is bounded by
an argument. *Not here*: what a fact means for a rule (`freehold.application.doctor`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from freehold.domain.rules import Companion, Literal, Rule, TableName


class Shape(StrEnum):
    """What kinds of value a column's type holds; several types share one."""

    INSTANT = "instant"
    WALL = "local time"
    DAY = "date"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    JSON = "json"
    FREE = "anything"  # an SQLite column without affinity
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """One column.

    Attributes:
        type: as its database writes it, with length and precision.
        bits: the width of an integer type; 64 where it does not matter.
        length: the most characters that it takes; None is no limit.
        labels: the values of an enum.
        readable: this role may select it.
        writable: this role may update it.
    """

    name: str
    type: str
    shape: Shape
    nullable: bool = True
    bits: int = 64
    length: int | None = None
    labels: tuple[str, ...] = ()
    readable: bool = True
    writable: bool = True


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """One usable index; a part that is an expression has an empty name."""

    name: str
    columns: tuple[str, ...]
    unique: bool
    partial: bool


class TableKind(StrEnum):
    """What stands behind a name."""

    TABLE = "table"
    PARTITIONED = "partitioned table"
    WITHOUT_ROWID = "table without rowid"
    VIEW = "view"
    FOREIGN = "foreign or virtual table"


@dataclass(frozen=True, slots=True)
class TableRights:
    """What the current role may do to the whole table."""

    use_schema: bool
    delete: bool
    insert: bool
    truncate: bool
    owner: bool


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One table.

    Attributes:
        row_security: row-level security filters what this role sees.
        has_pages: the table has stored something, as far as the catalogue knows.
        row_estimate: from statistics; None where there are none.
        rights: None where the database has no roles.
    """

    kind: TableKind
    columns: Mapping[str, ColumnFacts]
    indexes: tuple[IndexFacts, ...] = ()
    triggers: tuple[str, ...] = ()
    row_security: bool = False
    has_pages: bool = True
    row_estimate: int | None = None
    rights: TableRights | None = None


@dataclass(frozen=True, slots=True)
class RoleFacts:
    """Who we are to the server."""

    name: str
    superuser: bool
    bypasses_row_security: bool


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The file of an embedded database.

    Attributes:
        mode: permission bits.
        network: the kind of network file system that it lies on, or None.
    """

    path: str
    mode: int
    directory_writable: bool
    journal_mode: str
    network: str | None


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The database as a whole.

    Attributes:
        now: its clock.
        zone: the time zone that it uses by default, if it is known.
        pooler: what in the address hints at a pooler, or None.
        synchronous_commit: the default of this role, before we pin it.
    """

    engine: str
    version: tuple[int, ...]
    now: datetime
    zone: str | None = None
    role: RoleFacts | None = None
    file: FileFacts | None = None
    pooler: str | None = None
    synchronous_commit: str | None = None


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """How the database would read due holds.

    Attributes:
        text: the planner's words.
        due_indexes: indexes led by the due column that the scan's predicate can use.
    """

    text: str
    due_indexes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TenantDue:
    """Due holds of one tenant."""

    tenant: str | None
    due_count: int


@dataclass(frozen=True, slots=True)
class DueNow:
    """Due holds, counted up to a limit in due order.

    Attributes:
        capped: counting stopped at the limit; there may be more.
        tenants: those with most, first.
        oldest_due: the oldest instant, without the grace; None when nothing is due.
    """

    due_count: int
    capped: bool
    tenant_count: int
    tenants: tuple[TenantDue, ...] = field(default=())
    oldest_due: datetime | None = None


class Mends(Protocol):
    """SQL that would mend a finding; shown to a person, never run."""

    def due_index(self, rule: Rule) -> str:
        """Return the index led by due, for held rows only where the database can use that."""
        ...

    def tenant_index(self, rule: Rule) -> str:
        """Return the index led by tenant and due, for held rows only; the key orders equal dues."""
        ...

    def unique_key(self, rule: Rule) -> str:
        """Return the unique index on the key."""
        ...

    def not_null(self, rule: Rule, column: str) -> str | None:
        """Return what forbids NULL in a column, or None where that needs a new table."""
        ...

    def grants(self, rule: Rule) -> str:
        """Return the rights that the rule needs, for the current role."""
        ...

    def only_needed(self, rule: Rule) -> str:
        """Return what takes every other right away from the current role."""
        ...

    def one_separator(self, rule: Rule) -> str:
        """Return what writes every textual due with a blank between date and time."""
        ...

    def write_ahead(self) -> str:
        """Return what switches the file to write-ahead logging."""
        ...


class Inspection(Protocol):
    """One connection's look at one database; each method reads in a transaction of its own.

    Methods that take a rule and no table facts need a table and columns that exist.

    Raises:
        DatabaseAway: there is no connection.
    """

    @property
    def mends(self) -> Mends:
        """Return the mending SQL of this database."""
        ...

    def server(self) -> ServerFacts:
        """Read what the database is."""
        ...

    def table(self, name: TableName) -> TableFacts | None:
        """Read a table's facts; None when it is not there."""
        ...

    def table_names(self) -> Sequence[str]:
        """Return names of tables, to guess what was meant; at most 2,000."""
        ...

    def sees_rows(self, rule: Rule) -> bool:
        """Tell whether this role sees any row."""
        ...

    def literal_problem(self, column: ColumnFacts, literal: Literal) -> str | None:
        """Return why a literal does not fit a column's type, or None."""
        ...

    def change_problem(self, rule: Rule) -> str | None:
        """Return why the release could not be planned, in the database's words, or None."""
        ...

    def companion_parameters(self, companion: Companion) -> Sequence[str]:
        """Return the parameters that a companion names."""
        ...

    def companion_problem(self, companion: Companion) -> str | None:
        """Return why a companion could not be planned, in the database's words, or None."""
        ...

    def scan_plan(self, rule: Rule, facts: TableFacts) -> ScanPlan:
        """Ask the planner how it would scan; nothing is executed."""
        ...

    def serves_tenants(self, rule: Rule) -> bool:
        """Tell whether an index led by tenant and due serves a scan by turns."""
        ...

    def count_due(self, rule: Rule, at_most: int) -> int:
        """Count due holds up to a limit; rules compared bare only."""
        ...

    def count_empty(self, rule: Rule, at_most: int) -> int:
        """Count held rows whose due is NULL or zero, up to a limit."""
        ...

    def sample_due(self, rule: Rule, at_most: int) -> Sequence[str]:
        """Return due values of held rows as text, in no order, NULL left out."""
        ...

    def due_now(
        self, rule: Rule, at_most: int | None, top: int, only_tenant: str | None = None
    ) -> DueNow:
        """Count due holds by tenant.

        Args:
            at_most: stop counting there; None counts all, without a time limit.
            top: tenants to name.
            only_tenant: leave out the holds of all others.
        """
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...
