"""Schedules in real processes: what a service makes up, and what the command shows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg

from tests.e2e.command import freehold
from tests.e2e.running import Running
from tests.e2e.shop import make_shop, statuses

if TYPE_CHECKING:
    from pathlib import Path

TICK = (
    "insert into {table} (schedule, logical_time, started_at, finished_at, host_at, runner) values "
    "('cart', '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z', {finished}, "
    "'2026-01-01T00:00:00.000000Z', 'the one before')"
)


def run(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement on the ledger, past every layer of ours; `{table}` is the table of ticks."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as lite:
            return lite.execute(statement.replace("{table}", "freehold_tick")).fetchall()
    with psycopg.connect(url, autocommit=True, options="-c timezone=UTC") as connection:
        cursor = connection.execute(statement.replace("{table}", "freehold.tick"))
        return cursor.fetchall() if cursor.description else []


def prepare(folder: Path, url: str, finished: str) -> None:
    make_shop(folder, url, more='when = "0 0 * * *"\nzone = "Europe/Berlin"')
    assert freehold("db", "upgrade", cwd=folder).code == 0
    run(url, TICK.replace("{finished}", finished))


def test_a_service_makes_up_many_missed_nights_at_once(tmp_path: Path, database_url: str) -> None:
    prepare(tmp_path, database_url, "'2026-01-01T00:00:01.000000Z'")
    with Running(tmp_path) as service:
        assert service.wait_for("batch")["released"] == 10
        assert service.stop() == 0
    rows = run(database_url, "select finished_at, outcome from {table} order by logical_time")
    assert len(rows) == 2
    assert rows[-1][1] == "done"
    assert statuses(database_url) == {"expired": 10, "held": 1, "paid": 1}


def test_a_firing_that_never_ended_is_taken_over_under_its_own_time(
    tmp_path: Path, database_url: str
) -> None:
    prepare(tmp_path, database_url, "null")
    with Running(tmp_path) as service:
        assert service.wait_for("batch")["released"] == 10
        assert service.stop() == 0
    rows = run(database_url, "select run_count, outcome from {table} order by logical_time")
    assert rows[0] == (2, "done")


def test_the_command_shows_both_days_of_change(tmp_path: Path, sqlite_url: str) -> None:
    make_shop(tmp_path, sqlite_url, more='when = "30 2 * * *"\nzone = "Europe/Berlin"')
    spring = ("schedule", "next", "cart", "--after", "2026-03-28T12:00Z")
    text = freehold(*spring, "--count", "2", cwd=tmp_path).out.splitlines()
    assert text == [
        "2026-03-29 01:00:00Z   Sun 2026-03-29 03:00:00 CEST   stands for 02:30, which the clock skips",
        "2026-03-30 00:30:00Z   Mon 2026-03-30 02:30:00 CEST",
    ]
    autumn = ("schedule", "next", "cart", "--after", "2026-10-24T12:00", "--count", "1", "--json")
    assert freehold(*autumn, cwd=tmp_path).data == [
        {
            "utc": "2026-10-25T00:30:00+00:00",
            "local": "2026-10-25T02:30:00+02:00",
            "note": "first of two 02:30; only it fires",
        }
    ]
    wrong = freehold("schedule", "next", "cart", "--after", "tomorrow", cwd=tmp_path)
    assert (wrong.code, "'tomorrow' is no instant" in wrong.sentence) == (2, True)


def test_the_list_shows_the_last_and_the_next_run(tmp_path: Path, sqlite_url: str) -> None:
    prepare(tmp_path, sqlite_url, "'2026-01-01T00:00:01.000000Z'")
    (row,) = freehold("schedule", "list", "--json", cwd=tmp_path).data
    assert (row["rule"], row["schedule"]) == ("cart", "at 00:00 every day, Europe/Berlin")
    assert row["last"] == "2026-01-01T00:00:00+00:00"
    assert row["next"] > row["last"]
    assert "last 2026-01-01 00:00:00Z" in freehold("schedule", "list", cwd=tmp_path).out


def test_a_wrong_line_is_refused_with_what_to_write(tmp_path: Path, sqlite_url: str) -> None:
    make_shop(tmp_path, sqlite_url, more='when = "0 22-2 * * *"')
    ended = freehold("config", "check", cwd=tmp_path)
    assert ended.code == 2
    assert "write two ranges, 22-23,0-2" in ended.sentence
