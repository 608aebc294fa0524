"""The customers' tables that the bookings are loaded into: three shapes, each with its rule as TOML.

Not here: what the columns mean (`bookings`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg

from tests.realdata.bookings import Booking

LISBON = ZoneInfo("Europe/Lisbon")  # both hotels are in Portugal

STAYS_TABLE = """
create table stays (
    id bigint primary key, tenant text not null, state text not null, hold_token uuid not null,
    hold_until timestamptz not null, adults integer, children text, rate numeric,
    changed_at timestamptz);
create index stays_due on stays (hold_until) where state = 'held';
"""
STAYS_RULE = """
[[rules]]
name = "stays"
table = "stays"
key = ["id"]
tenant = { column = "tenant" }
held = [{ state = "held" }]
due = { column = "hold_until", kind = "timestamptz" }
fence = ["hold_token"]
expire = { set = { state = "expired", changed_at = { now = true } } }
carry = ["adults", "children", "rate"]
"""

AGENCY_TABLE = """
create type booking_state as enum ('held', 'confirmed', 'lapsed');
create table "AgencyBooking" (
    "hotelName" text, "bookingRef" text, "agencyName" text not null,
    "bookingState" booking_state not null, version text not null,
    "holdUntil" timestamp not null, adults integer, children text, rate numeric(8, 2),
    primary key ("hotelName", "bookingRef"));
create index "AgencyBooking_due" on "AgencyBooking" ("holdUntil") where "bookingState" = 'held';
"""
AGENCY_RULE = """
[[rules]]
name = "agency"
table = '"AgencyBooking"'
key = ["hotelName", "bookingRef"]
tenant = { column = "agencyName" }
held = [{ bookingState = "held" }]
due = { column = "holdUntil", kind = "naive", zone = "Europe/Lisbon" }
fence = ["version"]
expire = { set = { bookingState = "lapsed" } }
carry = ["adults", "children", "rate"]
"""

DESK_TABLE = """
create table desk (
    id integer primary key, tenant text not null, state text not null, token text not null,
    hold_until integer not null, adults integer, children text, rate real);
create index desk_due on desk (hold_until) where state = 'held';
"""
DESK_RULE = """
[[rules]]
name = "desk"
table = "desk"
key = ["id"]
tenant = { column = "tenant" }
held = [{ state = "held" }]
due = { column = "hold_until", kind = "epoch_s" }
fence = ["token"]
expire = { set = { state = "expired" } }
carry = ["adults", "children", "rate"]
"""


@dataclass(frozen=True, slots=True)
class Customer:
    """One table of a customer.

    Attributes:
        lapsed_by_tenant: raw SQL that counts due held rows, written apart from the product.
    """

    rule: str
    table: str
    toml: str
    lapsed_by_tenant: str


STAYS = Customer(
    "stays",
    STAYS_TABLE,
    STAYS_RULE,
    "select tenant, count(*) from stays where state = 'held' and hold_until < now() group by 1",
)
AGENCY = Customer(
    "agency",
    AGENCY_TABLE,
    AGENCY_RULE,
    """select "agencyName", count(*) from "AgencyBooking" where "bookingState" = 'held'
       and "holdUntil" at time zone 'Europe/Lisbon' < now() group by 1""",
)
DESK = Customer(
    "desk",
    DESK_TABLE,
    DESK_RULE,
    """select tenant, count(*) from desk where state = 'held'
       and hold_until < unixepoch() group by 1""",
)


def customers_of(url: str) -> Sequence[Customer]:
    """Return the customers of a kind of database."""
    return (DESK,) if url.startswith("sqlite") else (STAYS, AGENCY)


def load(url: str, bookings: Iterable[Booking]) -> None:
    """Make the tables and fill them."""
    if url.startswith("sqlite"):
        _load_sqlite(url, bookings)
    else:
        _load_postgres(url, list(bookings))


def _load_postgres(url: str, bookings: Sequence[Booking]) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(STAYS_TABLE)
        connection.execute(AGENCY_TABLE)
        with connection.cursor().copy(
            "copy stays (id, tenant, state, hold_token, hold_until, adults, children, rate) from stdin"
        ) as copy:
            for one in bookings:
                head = (one.number, one.tenant, one.state, one.token, one.due_at)
                copy.write_row((*head, one.adults, one.children, one.rate))
        with connection.cursor().copy('copy "AgencyBooking" from stdin') as copy:
            for one in bookings:
                copy.write_row(_agency_row(one))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")


def _agency_row(one: Booking) -> tuple[Any, ...]:
    wall = one.due_at.astimezone(LISBON).replace(tzinfo=None)
    key = (one.hotel, f"B-{one.number:06}")
    return (*key, one.tenant, one.state, one.token.hex, wall, one.adults, one.children, one.rate)


def _load_sqlite(url: str, bookings: Iterable[Booking]) -> None:
    with closing(sqlite3.connect(sqlite_path(url))) as connection, connection:
        connection.execute("pragma journal_mode=wal")
        connection.executescript(DESK_TABLE)
        connection.executemany(
            "insert into desk values (?, ?, ?, ?, ?, ?, ?, ?)",
            (_desk_row(one) for one in bookings),
        )


def _desk_row(one: Booking) -> tuple[Any, ...]:
    due = int(one.due_at.timestamp())
    hold = (one.number, one.tenant, one.state, one.token.hex, due)
    return (*hold, one.adults, one.children, one.rate)


def sqlite_path(url: str) -> Path:
    """Return the file of a test's SQLite URL."""
    return Path(url.removeprefix("sqlite:///"))


def rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Run one statement on a raw connection; `{s}` stands for the ledger's prefix."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(sqlite_path(url))) as connection:
            return list(connection.execute(sql.replace("{s}", "freehold_")))
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(sql.replace("{s}", "freehold.").encode()).fetchall()


def write_settings(url: str, folder: Path) -> None:
    """Write the settings file of the database's customers."""
    rules = "".join(customer.toml for customer in customers_of(url))
    (folder / "freehold.toml").write_text(f'[database]\nurl = "{url}"\n{rules}')
