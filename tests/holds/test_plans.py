"""Every statement over our own tables goes by its index, with the statistics of an empty table."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards, SystemClock
from freehold.application import granting
from freehold.bootstrap import sqlite_path
from freehold.domain.inventory import (
    HoldStatus,
    ImportedHold,
    NewHold,
    NewUnit,
    Renewal,
    Tenant,
    built_in_rule,
)
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock
from tests.behaviour.plans import ExplainedPostgres, ExplainedSqlite, Plans
from tests.holds.hotel import NIGHT, NOON, QUARTER, dialect_of, night

if TYPE_CHECKING:
    from freehold.domain.inventory import Hold

ROWS = 3_000
LATER = NOON + timedelta(days=1)
POSTGRES = {
    "add_tenants": {"tenant_pkey"},
    "change_tenants": {"tenant_pkey"},
    "read_tenants": {"tenant_pkey"},
    "lock_tenants": {"tenant_pkey"},
    "find_own_tenants": {"tenant_pkey"},
    "add_units": {"unit_named", "tenant_pkey"},
    "change_units": {"unit_of_tenant"},
    "read_units": {"unit_pkey"},
    "read_units_named": {"unit_named"},
    "find_units": {"unit_pkey"},
    "find_units_of_tenant": {"unit_of_tenant"},
    "place_own_hold": {"tenant_pkey", "unit_of_tenant"},
    "own_holds_in_way": {"hold_overlap"},
    "lock_own_holds": {"hold_pkey"},
    "renew_own_hold": {"hold_granting"},
    "confirm_own_hold": {"hold_granting"},
    "cancel_own_hold": {"hold_granting"},
    "tell_own_hold": {"hold_pkey"},
    "tokens_held": {"hold_granting"},
    "read_own_holds": {"hold_pkey"},
    "read_granted": {"hold_granting"},
    "read_referenced": {"hold_reference"},
    "find_own_holds": {"hold_pkey"},
    "find_own_holds_of_tenant": {"hold_of_tenant"},
    "find_own_holds_of_unit": {"hold_of_unit"},
    "judge_imports": {"unit_named", "hold_reference"},
    "find_due": {"hold_due"},
    "next_due": {"hold_due"},
}
# One row, or a table with one row a counter.
SMALL = {  # a few rows
    "all of f",
    "all of CONSTANT",
    "all of sqlite_sequence",
    "all of target",
    "all of freehold_target",
}
_SQLITE_NAMES = {
    "tenant_pkey": "sqlite_autoindex_freehold_tenant_1",
    "unit_named": "sqlite_autoindex_freehold_unit_1",
    "unit_of_tenant": "sqlite_autoindex_freehold_unit_2",
    "hold_overlap": "freehold_hold_stays",
    "unit_pkey": "rowid of freehold_unit",
    "hold_pkey": "rowid of freehold_hold",
}
# SQLite explains no search for a conflict, and places by what it looks up first.
SQLITE = {
    **{
        name: {_SQLITE_NAMES.get(one, f"freehold_{one}") for one in wanted}
        for name, wanted in POSTGRES.items()
        if name not in ("add_tenants", "lock_tenants", "read_own_holds")  # two have others' text
    },
    "add_units": {"sqlite_autoindex_freehold_tenant_1"},
    "change_units": {"rowid of freehold_unit"},
    "place_own_hold": {"rowid of u", "freehold_hold_stays"},
    "import_own_hold": {"freehold_hold_stays"},
}


def _fill(url: str) -> None:
    """Write many tenants, units and holds behind the planner's back."""
    with BackDoor(url) as door:
        at = door.local(NOON)
        over = "" if door.dialect == "sqlite" else "overriding system value"
        series = (
            f"generate_series(1, {ROWS}) as s (n)"
            if door.dialect == "postgres"
            else f"(with recursive r (n) as (select 1 union all select n + 1 from r where n < {ROWS})"
            " select n from r) s"
        )
        token = (
            "cast('00000000-0000-0000-0001-' || substr(cast(1000000000000 + n as text), 2) as {})"
        )
        door.execute(
            "insert into {s}tenant (id, name, created_at, changed_at)"
            f" select 't' || n, 'some', :at, :at from {series}",
            at=at,
        )
        door.execute(
            f"insert into {{s}}unit (id, tenant, name, created_at, changed_at) {over}"
            f" select 1000 + n, 'anna', 'u' || n, :at, :at from {series}",
            at=at,
        )
        door.execute(
            "insert into {s}hold (tenant, unit_id, status, hold_until, hold_token, reference,"
            " created_at, changed_at) select 'anna', 1000 + n, 'held', :until,"
            f" {token.format('uuid' if door.dialect == 'postgres' else 'text')}, 'r' || n, :at, :at"
            f" from {series}",
            at=at,
            until=door.local(LATER),
        )


def _ledger(url: str) -> tuple[SqlLedger, Plans]:
    session: ExplainedPostgres | ExplainedSqlite
    if dialect_of(url) == "postgres":
        session = ExplainedPostgres(url, clock=SetClock(NOON))
    else:
        path = str(sqlite_path(url))
        session = ExplainedSqlite(path, SystemClock(), clock=SetClock(NOON), considerate=False)
    session.plans = defaultdict(set)
    return SqlLedger(session, Onwards()), session.plans


def _use_everything(ledger: SqlLedger, url: str) -> None:
    """Run every statement over our own tables once."""
    rule = built_in_rule(dialect_of(url))
    with ledger.transaction() as tx:
        tx.tenants.set([Tenant("berta", "Berta")])
        tx.tenants.add([Tenant("berta", "Berta")])
        tx.tenants.find("", 5)
        tx.tenants.lock(["berta"])
        tx.units.add([NewUnit("berta", "1")])
        (unit,) = tx.units.named("berta", ["1"])
        tx.units.set([unit])
        tx.units.find(None, 0, 5)
        tx.units.find("berta", 0, 5)
        first = _granted(tx.own_holds.place(_new(1, 1)))
        _granted(tx.own_holds.place(_new(2, 2)))
        tx.own_holds.in_way(1, NIGHT, 5)
        tx.own_holds.lock([first.id])
        granting.renew(tx, rule, Renewal(first.token, UUID(int=8), NOON + QUARTER))
        granting.confirm(tx, rule, UUID(int=8))
        granting.cancel(tx, rule, UUID(int=8))
        tx.own_holds.still_held([UUID(int=2)])
        tx.own_holds.read([first.id])
        tx.own_holds.granted([UUID(int=2)])
        tx.own_holds.referenced("anna", ["r1"])
        tx.own_holds.find(0, 5)
        tx.own_holds.find(0, 5, tenant="anna", statuses=[HoldStatus.HELD])
        tx.own_holds.find(0, 5, unit_id=1)
        row = ImportedHold("anna", "room 1", NOON, UUID(int=3), "x", night(9))
        tx.own_holds.take_over([row])
        tx.holds(rule).find_due(None, 5)
        tx.holds(rule).next_due(LATER)


def _new(unit_id: int, number: int) -> NewHold:
    return NewHold("anna", unit_id, NOON + QUARTER, UUID(int=number), NIGHT)


def _granted(hold: Hold | None) -> Hold:
    assert hold is not None
    return hold


def test_every_statement_goes_by_its_index(hotel: str) -> None:
    _fill(hotel)
    ledger, plans = _ledger(hotel)
    _use_everything(ledger, hotel)
    ledger.close()
    plans.pop("sample_due", None)  # stops at the first row
    whole = {one for used in plans.values() for one in used if one.startswith("all of ")}
    catalogue = {one for one in whole if one.startswith("all of pg_")}  # read as its statistics say
    assert whole - catalogue <= SMALL
    wanted = POSTGRES if dialect_of(hotel) == "postgres" else SQLITE
    assert {name: plans[name] for name, used in wanted.items() if not used <= plans[name]} == {}
