"""`freehold doctor`, `plan` and `attach` as a person meets them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from freehold.domain.errors import UsageError
from freehold.entrypoints.cli.attach import check, read_rate
from tests.e2e.command import freehold

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """
[database]
url = "sqlite:///app.db"

[[rules]]
name = "cart"
table = "hold"
key = ["id"]
held = [{ status = "held" }]
due = { column = "due", kind = "naive", zone = "UTC" }
fence = ["token"]
expire = { set = { status = "expired" } }
attach_limit = 2
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with settings, a table of five overdue holds, and no index on due."""
    (tmp_path / "freehold.toml").write_text(CONFIG)
    with closing(sqlite3.connect(tmp_path / "app.db", isolation_level=None)) as door:
        door.execute("pragma journal_mode = wal")
        door.execute(
            "create table hold (id integer primary key, status text, token text, due text)"
        )
        past = [(n, "held", "t", "2026-01-01 10:00:00") for n in range(5)]
        door.executemany("insert into hold values (?, ?, ?, ?)", past)
    return tmp_path


def test_doctor_warns_and_prints_sql_that_can_be_copied(shop: Path) -> None:
    ended = freehold("doctor", cwd=shop)
    assert ended.code == 0, ended.err
    assert "warn\tdue-index\tcart\tdue\t" in ended.out
    (sql,) = [line for line in ended.out.splitlines() if line.startswith("create index")]
    with closing(sqlite3.connect(shop / "app.db", isolation_level=None)) as door:
        door.execute(sql)
    assert "due-index" not in freehold("doctor", cwd=shop).out


def test_doctor_refuses_with_exit_3(shop: Path) -> None:
    (shop / "freehold.toml").write_text(CONFIG.replace('"token"', '"tokn"'))
    ended = freehold("--json", "doctor", "--rule", "cart", cwd=shop)
    assert ended.code == 3
    assert "refused 1" in ended.sentence
    (refused,) = [one for one in ended.data if one["severity"] == "refuse"]
    assert (refused["code"], refused["place"]) == ("column-missing", "tokn")


def test_doctor_draws_a_table_on_a_terminal_and_heeds_no_color(shop: Path) -> None:
    colourful = freehold("doctor", cwd=shop, FORCE_COLOR="1", NO_COLOR="", TERM="xterm")
    plain = freehold("doctor", cwd=shop, FORCE_COLOR="1", TERM="xterm")
    assert "\x1b[33m" in colourful.out
    assert "\x1b[33m" not in plain.out
    assert "[due-index]" in plain.out.replace("\n", "")


def test_a_missing_file_is_one_sentence_and_is_not_made(shop: Path) -> None:
    (shop / "freehold.toml").write_text(CONFIG.replace("app.db", "other.db"))
    ended = freehold("doctor", cwd=shop)
    assert ended.code == 5
    assert "cannot be reached" in ended.sentence
    assert not (shop / "other.db").exists()


def test_from_plan_to_attach_to_detach(shop: Path) -> None:
    planned = freehold("plan", "cart", cwd=shop)
    assert planned.code == 0, planned.err
    assert "5 holds are due" in planned.out
    assert "freehold attach cart --confirm 5" in planned.out
    assert freehold("db", "upgrade", cwd=shop).code == 0
    waits = freehold("scan", cwd=shop)
    assert (waits.code, "attach cart --confirm" in waits.sentence) == (6, True), waits.sentence

    wrong = freehold("attach", "cart", "--confirm", "4", "--by", "ann", cwd=shop)
    assert (wrong.code, "has 5 overdue holds now" in wrong.sentence) == (6, True)
    right = freehold("attach", "cart", "--confirm", "5", "--by", "ann", cwd=shop)
    assert (right.code, "5 overdue holds" in right.out) == (0, True)
    again = freehold("attach", "cart", "--confirm", "5", "--by", "ann", cwd=shop)
    assert (again.code, "active already" in again.out) == (0, True)

    assert freehold("scan", cwd=shop).code == 0
    (shop / "freehold.toml").write_text('[database]\nurl = "sqlite:///app.db"\n')
    ended = freehold("attach", "cart", "--detach", "--by", "bob", "--reason", "moved", cwd=shop)
    assert (ended.code, "5 open operations were closed" in ended.out) == (0, True), ended.err


@pytest.mark.parametrize(
    ("by", "confirm", "rate", "reason", "detach"),
    [
        ("ann", None, "10/s", "x", True),
        ("ann", None, None, "", False),
        (" ", 5, None, "", False),
        ("ann", 5, None, "x", True),
        ("ann", None, None, " ", True),
    ],
)
def test_attach_refuses_what_it_cannot_do(
    by: str, confirm: int | None, rate: str | None, reason: str, *, detach: bool
) -> None:
    with pytest.raises(UsageError):
        check(by, confirm, rate, reason, detach=detach)


@pytest.mark.parametrize("text", ["10", "0/s", "-1/s", "1.5/s", "10/h", "", "9999999999/s"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no rate: write 100/s, or 30/m"):
        read_rate(text)


def test_a_rate_is_read_as_holds_a_second() -> None:
    assert (read_rate("100/s"), read_rate(" 30/m ")) == (100, 0.5)


def test_a_rate_is_taken_with_the_confirmed_count(shop: Path) -> None:
    ended = freehold(
        *("attach", "cart", "--confirm", "5", "--rate", "fast", "--by", "ann"), cwd=shop
    )
    assert (ended.code, "'fast' is no rate" in ended.sentence) == (2, True)
