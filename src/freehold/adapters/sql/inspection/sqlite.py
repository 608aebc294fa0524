"""Facts about an SQLite file and its tables; implements `ports.inspection.Inspection`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from freehold.adapters.sql.catalogue import quote
from freehold.adapters.sql.inspection.files import file_facts, host_zone
from freehold.adapters.sql.inspection.mends import SqliteMends
from freehold.adapters.sql.inspection.reading import Reader, SqlInspection
from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.sql.session import Row
from freehold.domain.errors import RuleRefused
from freehold.domain.rules import Literal, Rule, TableName
from freehold.ports.inspection import (
    ColumnFacts,
    IndexFacts,
    ScanPlan,
    ServerFacts,
    Shape,
    TableFacts,
    TableKind,
)

_KINDS = {"table": TableKind.TABLE, "view": TableKind.VIEW}
PRIMARY_KEY = "primary key"


class SqliteInspection(SqlInspection):
    """One connection's look at an SQLite file."""

    def __init__(self, ledger: SqlLedger, path: Path) -> None:
        super().__init__(ledger)
        self._path = path
        self._mends = SqliteMends()

    @property
    def mends(self) -> SqliteMends:
        """Return the mending SQL."""
        return self._mends

    def server(self) -> ServerFacts:
        """Read the engine and the file."""
        with self._reading() as now:
            version = self._sql.rows("server_facts")[0][0]
            journal = self._sql.rows("journal_mode")[0][0]
        return ServerFacts(
            engine="SQLite",
            version=tuple(int(part) for part in version.split(".")),
            now=now,
            zone=host_zone(),
            file=file_facts(self._path, journal),
        )

    def table(self, name: TableName) -> TableFacts | None:
        """Read a table's facts; a schema other than main is an attached file, which we have not."""
        if name.schema not in (None, "main"):
            return None
        with self._reading():
            rows = self._sql.rows("table_facts", table=name.name)
            if not rows:
                return None
            columns = self._sql.rows("column_facts", table=name.name)
            parts = self._sql.rows("index_facts", table=name.name)
            triggers = self._sql.rows("trigger_names", table=name.name)
        return TableFacts(
            kind=_kind(*rows[0]),
            columns={row[0]: _column(row) for row in columns},
            indexes=(*_rowid_index(columns), *_indexes(parts)),
            triggers=tuple(row[0] for row in triggers),
        )

    def table_names(self) -> Sequence[str]:
        """Return names of tables."""
        with self._reading():
            return [row[0] for row in self._sql.rows("table_names")]

    def literal_problem(self, column: ColumnFacts, literal: Literal) -> str | None:
        """Compare the literal with the column's affinity: a number never equals a word here."""
        if not isinstance(literal, str) or column.shape not in (Shape.INTEGER, Shape.NUMBER):
            return None
        try:
            float(literal)
        except ValueError:
            return f"{literal!r} is no number"
        return None

    def scan_plan(self, rule: Rule, facts: TableFacts) -> ScanPlan:
        """Plan the scan, and once more with each index led by due made compulsory."""
        led = [one.name for one in facts.indexes if one.columns[:1] == (rule.due.column,)]
        with self._rule(rule, indexed_by="") as reader:
            text = _plan(reader)
        return ScanPlan(text, tuple(name for name in led if self._serves(rule, name)))

    def _serves(self, rule: Rule, index: str) -> bool:
        if index == PRIMARY_KEY:
            return True
        try:
            with self._rule(rule, indexed_by=f"indexed by {quote(index)}") as reader:
                return "SEARCH" in _plan(reader)
        except RuleRefused:
            return False


def _plan(reader: Reader) -> str:
    return "\n".join(row[3] for row in reader.rows("plan_scan"))


def _kind(kind: str, without_rowid: int) -> TableKind:
    if kind == "table" and without_rowid:
        return TableKind.WITHOUT_ROWID
    return _KINDS.get(kind, TableKind.FOREIGN)


def affinity(declared: str) -> Shape:
    """Return what a declared type makes of values, NUMERIC only where it is named as a number.

    Source: https://www.sqlite.org/datatype3.html section 3.1. A DATETIME is NUMERIC there and
    keeps date text as text, so that it counts as text here.
    """
    kind = declared.lower()
    if "int" in kind:
        return Shape.INTEGER
    if any(word in kind for word in ("char", "clob", "text")):
        return Shape.TEXT
    if not kind or "blob" in kind:
        return Shape.FREE
    if any(word in kind for word in ("real", "floa", "doub", "num", "dec")):
        return Shape.NUMBER
    return Shape.WALL if "date" in kind or "time" in kind else Shape.OTHER


def _column(row: Row) -> ColumnFacts:
    name, declared, nullable, key_place = row
    shape = affinity(declared)
    is_rowid = bool(key_place) and declared.lower() == "integer"
    return ColumnFacts(name, declared, shape, nullable=bool(nullable) and not is_rowid)


def _rowid_index(columns: list[Row]) -> list[IndexFacts]:
    """Return the table's own tree as an index; a longer primary key has one in the list."""
    key = [row[0] for row in columns if row[3]]
    return [IndexFacts(PRIMARY_KEY, tuple(key), unique=True, partial=False)] if key else []


def _indexes(parts: list[Row]) -> list[IndexFacts]:
    return [
        IndexFacts(name, tuple(row[3] for row in rows), bool(unique), bool(partial))
        for (name, unique, partial), rows in groupby(parts, key=lambda row: row[:3])
    ]
