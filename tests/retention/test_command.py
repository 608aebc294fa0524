"""`freehold prune` as an operator types it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.domain.errors import UsageError
from freehold.settings import load_settings
from tests.e2e.command import freehold
from tests.e2e.shop import make_shop

if TYPE_CHECKING:
    from pathlib import Path

TABLES = {"record": ("found_at", "finished_at"), "tally": ("at",), "outbox": ("at", "due_at")}


@pytest.fixture
def folder(tmp_path: Path, sqlite_url: str) -> Path:
    """A shop whose holds were all released long ago, as its tables say."""
    make_shop(tmp_path, sqlite_url)
    freehold("db", "upgrade", cwd=tmp_path)
    assert freehold("run", "--until-idle", cwd=tmp_path).code == 0
    long_ago(tmp_path, TABLES, timedelta(days=500))
    return tmp_path


def long_ago(folder: Path, tables: dict[str, tuple[str, ...]], age: timedelta) -> None:
    """Write an instant long ago into columns of the ledger."""
    at = (datetime.now(UTC) - age).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    with closing(sqlite3.connect(folder / "freehold.db")) as lite:
        for table, columns in tables.items():
            for column in columns:
                lite.execute(
                    f"update freehold_{table} set {column} = ? where {column} is not null", (at,)
                )
        lite.commit()


def test_it_says_what_would_go_and_removes_it_at_the_second_reading(folder: Path) -> None:
    first = freehold("prune", cwd=folder)
    assert first.code == 0
    assert "Nothing goes by one reading of the clock" in first.out
    long_ago(folder, {"retention": ("read_at",)}, timedelta(hours=2))
    said = freehold("prune", "--dry-run", "--json", cwd=folder).data
    assert {one["subject"]: one["removed_count"] for one in said["subjects"]} == {
        "records": 10, "tallies": 1, "attempts": 0, "events": 10, "mails": 0, "ticks": 0, "guards": 0,
        "pauses": 0, "target pauses": 0, "strays": 0, "delivery counts": 0,
    }  # fmt: skip
    shown = freehold("prune", cwd=folder).out
    assert "records" in shown
    assert "400 d" in shown
    assert freehold("audit", cwd=folder).code == 0
    again = freehold("prune", "--json", cwd=folder).data
    assert not any(one["removed_count"] for one in again["subjects"])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('records = "6d"', "retention.records must be at least 7d"),
        ('events = "1h"', "retention.events must be at least 1d"),
        ('attempts = "0s"', "retention.attempts"),
    ],
)
def test_an_age_that_is_nonsense_is_refused(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "freehold.toml").write_text(f"[retention]\n{line}\n")
    with pytest.raises(UsageError, match=sentence):
        load_settings(tmp_path / "freehold.toml", {})


def test_nothing_goes_while_the_clock_is_in_doubt(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "freehold.db")) as lite:
        lite.execute(
            "insert into freehold_guard (kind, tripped_at, reason, figures)"
            " values ('clock', '2026-01-01T00:00:00.000000Z', 'The clock jumped.', '{}')"
        )
        lite.commit()
    ended = freehold("prune", cwd=folder)
    assert ended.code == 6
    assert ended.sentence == (
        "freehold: Nothing is removed while the clock is in doubt: The clock jumped; "
        "see `freehold guard show`."
    )
