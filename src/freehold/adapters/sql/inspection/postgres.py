"""Facts about a PostgreSQL server and its tables; implements `ports.inspection.Inspection`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from freehold.adapters.sql.inspection.mends import PostgresMends
from freehold.adapters.sql.inspection.reading import Reader, SqlInspection
from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.sql.session import Row, Runner
from freehold.domain.errors import DatabaseAway
from freehold.domain.rules import Literal, Rule, TableName
from freehold.ports.inspection import (
    ColumnFacts,
    IndexFacts,
    RoleFacts,
    ScanPlan,
    ServerFacts,
    Shape,
    TableFacts,
    TableKind,
    TableRights,
)

_KINDS = {"r": TableKind.TABLE, "p": TableKind.PARTITIONED, "f": TableKind.FOREIGN}
_SHAPES = {
    "timestamp with time zone": Shape.INSTANT,
    "timestamp without time zone": Shape.WALL,
    "date": Shape.DAY,
    "smallint": Shape.INTEGER,
    "integer": Shape.INTEGER,
    "bigint": Shape.INTEGER,
    "numeric": Shape.NUMBER,
    "real": Shape.NUMBER,
    "double precision": Shape.NUMBER,
    "json": Shape.JSON,
    "jsonb": Shape.JSON,
}
_BITS = {"smallint": 16, "integer": 32}
_UNCHECKED = (Shape.JSON, Shape.TEXT)
_NAMED_INDEX = re.compile(r'\busing ("(?:[^"]|"")+"|\S+) on ', re.IGNORECASE)
_POOLERS = ("pgbouncer", "pooler", "pgpool")
POOLER_PORT = 6432  # where PgBouncer listens unless told otherwise


class PostgresInspection(SqlInspection):
    """One connection's look at a PostgreSQL database."""

    def __init__(self, ledger: SqlLedger, url: str) -> None:
        super().__init__(ledger)
        self._url = url
        self._mends: PostgresMends | None = None

    @property
    def mends(self) -> PostgresMends:
        """Return the mending SQL."""
        if self._mends is None:
            role = self.server().role
            self._mends = PostgresMends(role.name if role else "current_user", self._is_partitioned)
        return self._mends

    def _is_partitioned(self, table: TableName) -> bool:
        facts = self.table(table)
        return facts is not None and facts.kind is TableKind.PARTITIONED

    def server(self) -> ServerFacts:
        """Read version, clock, role and defaults."""
        with self._reading() as now:
            rows = self._sql.rows("server_facts")
        if not rows:
            raise DatabaseAway("the server does not know the current role")
        number, role, superuser, bypasses, durable, zone = rows[0]
        return ServerFacts(
            engine="PostgreSQL",
            version=divmod(number, 10_000),
            now=now,
            zone=zone,
            role=RoleFacts(role, superuser, bypasses),
            pooler=pooler_hint(self._url),
            synchronous_commit=durable,
        )

    def table(self, name: TableName) -> TableFacts | None:
        """Read a table's facts from the catalogue, also where the role may not read the table."""
        with self._reading():
            rows = self._sql.rows("table_facts", table=name.name, schema=name.schema)
            if not rows:
                return None
            oid, kind, estimate, row_security, pages, schema, delete, insert, truncate, own = rows[
                0
            ]
            return TableFacts(
                kind=_KINDS.get(kind, TableKind.VIEW),
                columns={row[0]: _column(row) for row in self._sql.rows("column_facts", oid=oid)},
                indexes=tuple(
                    IndexFacts(index, tuple(columns), unique, partial)
                    for index, unique, partial, columns in self._sql.rows("index_facts", oid=oid)
                ),
                triggers=tuple(row[0] for row in self._sql.rows("trigger_names", oid=oid)),
                row_security=row_security,
                has_pages=pages,
                row_estimate=None if estimate < 0 else estimate,
                rights=TableRights(schema, delete, insert, truncate, own),
            )

    def table_names(self) -> Sequence[str]:
        """Return names of tables."""
        with self._reading():
            return [row[0] for row in self._sql.rows("table_names")]

    def literal_problem(self, column: ColumnFacts, literal: Literal) -> str | None:
        """Cast the literal to the column's type; enums and numbers refuse what they do not know."""
        if literal is None or column.shape in _UNCHECKED:
            return None
        text = str(literal).lower() if isinstance(literal, bool) else str(literal)
        with self._refusal() as problem, self._reading():
            Runner(self._session, {"type": column.type}).rows("cast_literal", value=text)
        return problem.text

    def scan_plan(self, rule: Rule, facts: TableFacts) -> ScanPlan:
        """Plan the scan as production would, and once more with a sort made dear."""
        led = [one.name for one in facts.indexes if one.columns[:1] == (rule.due.column,)]
        with self._rule(rule) as reader:
            text = _plan(reader)
            reader.rows("prefer_order")
            used = _index_names(_plan(reader))
        if facts.kind is TableKind.PARTITIONED:
            used = led  # the plan names the partitions' own indexes
        return ScanPlan(text, tuple(name for name in led if name in used))


def _plan(reader: Reader) -> str:
    return "\n".join(row[0] for row in reader.rows("plan_scan"))


def _index_names(plan: str) -> list[str]:
    found = _NAMED_INDEX.findall(plan)
    return [
        name[1:-1].replace('""', '"') if name.startswith('"') else name for name in map(str, found)
    ]


def _column(row: Row) -> ColumnFacts:
    name, full, base, category, nullable, length, labels, readable, writable = row
    shape = _SHAPES.get(base, Shape.TEXT if category == "S" else Shape.OTHER)
    return ColumnFacts(
        name=name,
        type=full,
        shape=shape,
        nullable=nullable,
        bits=_BITS.get(base, 64),
        length=length,
        labels=tuple(labels),
        readable=readable,
        writable=writable,
    )


def pooler_hint(url: str) -> str | None:
    """Return what in an address hints at a pooler in front of the server."""
    parts = urlsplit(url)
    try:
        if parts.port == POOLER_PORT:
            return f"port {POOLER_PORT}"
    except ValueError:
        return None
    host = (parts.hostname or "").lower()
    return next((f"the host name {host}" for word in _POOLERS if word in host), None)
