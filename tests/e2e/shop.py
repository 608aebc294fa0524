"""A customer's table of the plainest kind, and the settings file that attaches it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

RULE = """
[database]
url = "{url}"

[[rules]]
name = "cart"
table = "carts"
key = ["id"]
tenant = {{ column = "shop" }}
held = [{{ status = "held" }}]
due = {{ column = "hold_until", kind = "{kind}", {zone} }}
fence = ["hold_token"]
expire = {{ set = {{ status = "expired" }} }}
confirmed = [{{ status = "paid" }}]
{more}
"""
COLUMNS = "shop text, status text not null, hold_token text not null, hold_until {due} not null"
ROWS = "insert into carts (id, shop, status, hold_token, hold_until) values ({marks})"
INDEX = "create index carts_due on carts (hold_until) where status = 'held'"


def make_shop(folder: Path, url: str, *, due_count: int = 10, more: str = "") -> None:
    """Make the table with due holds, one not due and one paid, and write freehold.toml."""
    rows = [
        (n, "harbour", "held", f"t{n}", f"2026-01-01 10:{n % 60:02}:00") for n in range(due_count)
    ]
    rows += [(100_000, "harbour", "held", "later", "2999-01-01 00:00:00")]
    rows += [(100_001, "harbour", "paid", "paid", "2026-01-01 10:00:00")]
    if url.startswith("sqlite"):
        _fill_sqlite(Path(url.removeprefix("sqlite:///")), rows)
        kind, zone = "naive", 'zone = "UTC"'
    else:
        _fill_postgres(url, rows)
        kind, zone = "timestamptz", 'grace = "0s"'
    text = RULE.format(url=url, kind=kind, zone=zone, more=more)
    (folder / "freehold.toml").write_text(text)


def _fill_sqlite(path: Path, rows: list[tuple[int, str, str, str, str]]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode=wal")
        due = COLUMNS.format(due="text")
        connection.execute(f"create table carts (id integer primary key, {due})")
        connection.execute(INDEX)
        connection.executemany(ROWS.format(marks="?,?,?,?,?"), rows)
        connection.commit()


def _fill_postgres(url: str, rows: list[tuple[int, str, str, str, str]]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        due = COLUMNS.format(due="timestamptz")
        connection.execute(f"create table carts (id bigint primary key, {due})")
        connection.execute(INDEX)
        marks = ROWS.format(marks="%s,%s,%s,%s,%s")
        connection.cursor().executemany(marks, rows)


def statuses(url: str) -> dict[str, int]:
    """Count the table's rows by status, past every layer of ours."""
    query = "select status, count(*) from carts group by status"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as lite:
            return dict(lite.execute(query).fetchall())
    with psycopg.connect(url, autocommit=True) as connection:
        return dict(connection.execute(query).fetchall())
