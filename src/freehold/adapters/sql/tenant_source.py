"""Tenants that a table of the customer's names, in SQL; implements `ports.tenant_source`.

*Invariants*: identifiers enter a statement only after the live catalogue has named them; values
are read as text, and nothing is cast that a row could make fail.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from freehold.adapters.sql.catalogue import Column, quote, quoted, read_columns
from freehold.adapters.sql.fragments import Fragments
from freehold.adapters.sql.inventory import SqlTenants, written_instant
from freehold.adapters.sql.session import Runner, Session
from freehold.adapters.sql.spelling import PostgresSpelling, Spelling, SqliteSpelling
from freehold.domain.errors import RuleRefused
from freehold.domain.inventory import Tenant
from freehold.domain.tenant_mapping import TenantMapping, TenantRow
from freehold.ports.inventory import Written
from freehold.ports.tenant_source import Taken

_ARRAY = "A"  # the catalogue's category


class SqlTenantRows:
    """The customer's table inside one transaction."""

    def __init__(self, session: Session, mapping: TenantMapping) -> None:
        fragments = Fragments(_columns(session, mapping), _spelling(session.dialect))
        slots = _slots(fragments, mapping)
        self._session = session
        self._first = Runner(session, {**slots, "place": f"h.{quote(mapping.id)} is not null"})
        self._next = Runner(session, slots)
        self._fixed = fragments.parameters

    def find(self, after_id: str | None, limit: int) -> Sequence[TenantRow]:
        """Return rows in the order of the id column."""
        if after_id is None:
            rows = self._first.rows("find_tenant_rows", **self._fixed, limit=limit)
        else:
            rows = self._next.rows(
                "find_tenant_rows", **self._fixed, after_id=after_id, limit=limit
            )
        return [TenantRow(row[0], _values(row[1]), bool(row[2])) for row in rows]

    def standing(self, ids: Sequence[str]) -> Mapping[str, bool]:
        """Tell of those ids that have a row whether they are active."""
        rows = self._next.rows("standing_tenant_rows", **self._fixed, ids=list(ids))
        return {row[0]: bool(row[1]) for row in rows}


def _values(image: Any) -> Mapping[str, str | None]:
    found: Mapping[str, str | None] = json.loads(image) if isinstance(image, str) else image
    return found


def _columns(session: Session, mapping: TenantMapping) -> Mapping[str, Column]:
    """Read the columns that are mapped.

    Raises:
        RuleRefused: the table or one of them is not there; helps after the mend.
    """
    found = read_columns(session, mapping.table)
    if not found:
        raise RuleRefused(f"table {mapping.table} of [tenants] is not there", "42P01")
    missing = [name for name in mapping.columns if name not in found]
    if missing:
        names = ", ".join(missing)
        raise RuleRefused(f"table {mapping.table} of [tenants] has no column {names}", "42703")
    return found


def _spelling(dialect: str) -> Spelling:
    return SqliteSpelling() if dialect == "sqlite" else PostgresSpelling()


def _slots(fragments: Fragments, mapping: TenantMapping) -> dict[str, str]:
    spelling, column = fragments.spelling, fragments.columns[mapping.id]
    image = spelling.image(
        [(field, _text(fragments, name)) for field, name in mapping.fields.items()]
    )
    after = spelling.key_part(column, spelling.text_parameter("after_id"), 0, 1)
    active = mapping.active
    return {
        "table": quoted(mapping.table),
        "id": f"h.{quote(mapping.id)}",
        "id_text": fragments.text(mapping.id),
        "image": image,
        "active": spelling.true if active is None else fragments.optional(active),
        "place": f"h.{quote(mapping.id)} > {after}",
        "one_id": spelling.key_part(column, "n.value", 0, 1),
    }


def _text(fragments: Fragments, name: str) -> str:
    """Return a column as text; an array as JSON, which has one spelling only."""
    column = fragments.columns[name]
    if column.category == _ARRAY:
        return f"array_to_json(h.{quote(name)})::text"
    return fragments.text(name)


class SqlSourcedTenants:
    """Our tenants that came from there, inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._tenants = SqlTenants(runner.session, now)
        self._now = written_instant(runner.session, now)

    def find(self, after_id: str, limit: int) -> Sequence[str]:
        """Return the ids of active ones in order."""
        rows = self._sql.rows("find_sourced_tenants", after_id=after_id, limit=limit)
        return [row[0] for row in rows]

    def among(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that came from there."""
        return {row[0] for row in self._sql.rows("sourced_among", ids=list(ids))}

    def write(self, tenants: Sequence[Tenant]) -> Sequence[Taken]:
        """Write tenants whole, as coming from there."""
        written = self._tenants.set(tenants)
        ids = [one.id for one in tenants]
        marked = {row[0] for row in self._sql.rows("mark_sourced", ids=ids)} if ids else set()
        return [_taken(one.id, did, marked) for one, did in zip(tenants, written, strict=True)]

    def retire(self, ids: Sequence[str]) -> int:
        """Make those of the ids inactive that came from there."""
        return self._sql.count("retire_sourced", ids=list(ids), now=self._now)


def _taken(tenant_id: str, written: Written, marked: set[str]) -> Taken:
    if written is Written.NEW:
        return Taken.NEW
    if tenant_id in marked:
        return Taken.TAKEN_OVER
    return Taken.CHANGED if written is Written.CHANGED else Taken.SAME
