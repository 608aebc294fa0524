"""Tenants and units of our own, in SQL; implements `ports.inventory`.

*Not here*: the holds (`own_holds`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from freehold.adapters.sql.session import Row, Runner, Session
from freehold.domain.inventory import NewUnit, Tenant, Unit
from freehold.ports.inventory import Written

T = TypeVar("T", Tenant, Unit)

# Expressions: a converter that the caller's driver has for a declared type does not see them.
_SLOTS = {
    "postgres": {
        "tenant": "id, name, zone, report_hour, recipients::text, locale, active",
        "unit": "id, tenant, name, active",
        "hold": "id, tenant, unit_id, status, starts_at, ends_at, hold_until, hold_token, reference,"
        " created_at, changed_at, expired_at,"
        " array_to_json(array[hold_until::text, hold_token::text])::text",
    },
    "sqlite": {
        "tenant": "+id, +name, +zone, +report_hour, +recipients, +locale, +active",
        "unit": "+id, +tenant, +name, +active",
        "hold": "+id, +tenant, +unit_id, +status, +starts_at, +ends_at, +hold_until, +hold_token,"
        " +reference, +created_at, +changed_at, +expired_at, json_array(hold_until, hold_token)",
    },
}


def inventory_runner(session: Session) -> Runner:
    """Return a runner of the statements over our own tables."""
    return Runner(session, _SLOTS[session.dialect])


def written_instant(session: Session, instant: datetime | None) -> Any:
    """Write an instant the way our own tables hold it."""
    if instant is None or session.dialect == "postgres":
        return instant
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")


def batch(session: Session, rows: Sequence[Row]) -> dict[str, Any]:
    """Bind a batch as the dialect wants it: one JSON array of rows, or an array a column."""
    if session.dialect == "sqlite":
        return {"rows": rows}
    return {f"c{n}": list(column) for n, column in enumerate(zip(*rows, strict=True))}


class SqlTenants:
    """The tenants inside one transaction."""

    def __init__(self, session: Session, now: datetime) -> None:
        self._sql = inventory_runner(session)
        self._now = written_instant(session, now)

    def add(self, tenants: Sequence[Tenant]) -> Sequence[Written]:
        """Write tenants that are not there yet."""
        new = set(self._write("add_tenants", tenants))
        there = {one.id: one for one in self.read([one.id for one in tenants])}
        return [_added(one.id, new, one == there[one.id]) for one in tenants]

    def set(self, tenants: Sequence[Tenant]) -> Sequence[Written]:
        """Write tenants whole, there or not."""
        answers: list[Written] = []
        for part in _parts(tenants):
            new = set(self._write("add_tenants", part))
            changed = set(self._write("change_tenants", part))
            answers += [_set(one.id, new, changed) for one in part]
        return answers

    def _write(self, name: str, tenants: Sequence[Tenant]) -> list[str]:
        if not tenants:
            return []
        rows = batch(self._sql.session, [_tenant_row(one) for one in tenants])
        return [row[0] for row in self._sql.rows(name, now=self._now, **rows)]

    def find(self, after_id: str, limit: int) -> Sequence[Tenant]:
        """Return tenants in id order."""
        return [
            tenant_of(row)
            for row in self._sql.rows("find_own_tenants", after_id=after_id, limit=limit)
        ]

    def read(self, ids: Sequence[str]) -> Sequence[Tenant]:
        """Return those of the tenants that are there."""
        return [tenant_of(row) for row in self._sql.rows("read_tenants", ids=list(ids))]

    def lock(self, ids: Sequence[str]) -> Sequence[Tenant]:
        """Read tenants, and keep others from changing them."""
        return [tenant_of(row) for row in self._sql.rows("lock_tenants", ids=list(ids))]


class SqlUnits:
    """The units inside one transaction."""

    def __init__(self, session: Session, now: datetime) -> None:
        self._sql = inventory_runner(session)
        self._now = written_instant(session, now)

    def add(self, units: Sequence[NewUnit]) -> Sequence[Written]:
        """Write units that are not there yet."""
        if not units:
            return []
        rows = batch(self._sql.session, [(one.tenant, one.name, one.active) for one in units])
        new = {(row[0], row[1]) for row in self._sql.rows("add_units", now=self._now, **rows)}
        there = {(one.tenant, one.name): one for one in self._named(units)}
        return [_unit_added(one, new, there.get((one.tenant, one.name))) for one in units]

    def _named(self, units: Sequence[NewUnit]) -> Iterator[Unit]:
        for tenant in dict.fromkeys(one.tenant for one in units):
            yield from self.named(tenant, [one.name for one in units if one.tenant == tenant])

    def set(self, units: Sequence[Unit]) -> Sequence[Written]:
        """Write name and active of units."""
        answers: list[Written] = []
        for part in _parts(units):
            rows = [(one.id, one.tenant, one.name, one.active) for one in part]
            given = batch(self._sql.session, rows)
            changed = {row[0] for row in self._sql.rows("change_units", now=self._now, **given)}
            there = {(one.id, one.tenant) for one in self.read([one.id for one in part])}
            answers += [
                _set(one.id, set(), changed) if (one.id, one.tenant) in there else Written.MISSING
                for one in part
            ]
        return answers

    def find(self, tenant: str | None, after_id: int, limit: int) -> Sequence[Unit]:
        """Return units in id order."""
        if tenant is None:
            rows = self._sql.rows("find_units", after_id=after_id, limit=limit)
        else:
            rows = self._sql.rows(
                "find_units_of_tenant", tenant=tenant, after_id=after_id, limit=limit
            )
        return [_unit(row) for row in rows]

    def read(self, ids: Sequence[int]) -> Sequence[Unit]:
        """Return those of the units that are there."""
        return [_unit(row) for row in self._sql.rows("read_units", ids=list(ids))]

    def named(self, tenant: str, names: Sequence[str]) -> Sequence[Unit]:
        """Return those of a tenant's units that have one of the names."""
        rows = self._sql.rows("read_units_named", tenant=tenant, names=list(names))
        return [_unit(row) for row in rows]


def _parts(things: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut a batch before each thing that it names again, so that a statement names each once."""
    part: dict[object, T] = {}
    for one in things:
        if one.id in part:
            yield list(part.values())
            part = {}
        part[one.id] = one
    if part:
        yield list(part.values())


def _added(key: object, new: set[Any], same: bool) -> Written:
    """Answer for one thing, and take it out of the new ones: the next of its name is a repeat."""
    if key in new:
        new.remove(key)
        return Written.NEW
    return Written.EXISTS if same else Written.DIFFERS


def _set(key: object, new: set[Any], changed: set[Any]) -> Written:
    if key in new:
        return Written.NEW
    return Written.CHANGED if key in changed else Written.EXISTS


def _unit_added(one: NewUnit, new: set[Any], there: Unit | None) -> Written:
    if there is None:
        return Written.MISSING
    return _added((one.tenant, one.name), new, one.active == there.active)


def _tenant_row(one: Tenant) -> Row:
    recipients = json.dumps(one.recipients, ensure_ascii=False)
    return (one.id, one.name, one.zone, one.report_hour, recipients, one.locale, one.active)


def tenant_of(row: Row) -> Tenant:
    """Read one tenant; see the slot `tenant`."""
    return Tenant(
        id=row[0],
        name=row[1],
        zone=row[2],
        report_hour=row[3],
        recipients=tuple(json.loads(row[4])),
        locale=row[5],
        active=bool(row[6]),
    )


def _unit(row: Row) -> Unit:
    return Unit(id=row[0], tenant=row[1], name=row[2], active=bool(row[3]))
