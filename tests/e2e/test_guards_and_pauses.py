"""Guards, pauses and plans as an operator types them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import psycopg
import pytest

from freehold.entrypoints.cli.main import _run as _run_command
from tests.e2e.command import freehold
from tests.e2e.running import Running
from tests.e2e.shop import make_shop, statuses

if TYPE_CHECKING:
    from pathlib import Path

WHO = ("--by", "ann", "--reason", "the new dues are right")
MANY = 1_200
LATER = "insert into carts select id + 1000, 'quay', 'held', 't' || id, '2999-01-01' from n"
EARLY = "update carts set hold_until = '2026-01-01 10:00:00' where id > 1000 and id < 5000"


def _shop(folder: Path, url: str, due_count: int = 10) -> None:
    make_shop(folder, url, due_count=due_count)
    assert freehold("db", "upgrade", cwd=folder).code == 0


def _run(url: str, sql: str) -> None:
    """Let the host run a statement; `n` counts up."""
    if url.startswith("sqlite"):
        count = f"select 1 union all select id + 1 from n where id < {MANY}"
        numbers = f"with recursive n (id) as ({count}) " if " from n" in sql else ""
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as lite:
            lite.execute(numbers + sql)
            lite.commit()
        return
    sql = sql.replace("'2999-01-01'", "timestamptz '2999-01-01'")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.replace(" from n", f" from generate_series(1, {MANY}) as n (id)"))


def _migrated(folder: Path, url: str) -> None:
    """Scan a shop with many holds, then move their dues into the past."""
    _shop(folder, url)
    _run(url, LATER)
    assert freehold("run", "--until-idle", cwd=folder).code == 0
    _run(url, EARLY)


def test_a_bad_migration_is_refused_shown_and_released(tmp_path: Path, sqlite_url: str) -> None:
    _bad_migration(tmp_path, sqlite_url)


@pytest.mark.proof
def test_a_bad_migration_on_a_server(tmp_path: Path, postgres_url: str) -> None:
    _bad_migration(tmp_path, postgres_url)


def _bad_migration(tmp_path: Path, database_url: str) -> None:
    _migrated(tmp_path, database_url)
    refused = freehold("run", "--until-idle", cwd=tmp_path)
    assert refused.code == 6
    assert refused.sentence.startswith("freehold: Rule cart cannot work: 1,200 holds, about 100%")
    assert statuses(database_url) == {"expired": 10, "held": MANY + 1, "paid": 1}
    (shown,) = freehold("guard", "show", "--json", cwd=tmp_path).data
    assert (shown["kind"], shown["rule"], shown["figures"]["overdue_count"]) == (
        "mass",
        "cart",
        MANY,
    )
    assert "cart is frozen" in freehold("status", cwd=tmp_path).out.replace("\n", " ")
    (status,) = freehold("status", "--json", cwd=tmp_path).data["rules"]
    assert status["guards"][0]["reason"] == shown["reason"]
    (plan,) = freehold("plan", "--json", cwd=tmp_path).data
    assert (plan["stopped"], plan["waits"]) == (shown["reason"], False), "it was attached before"
    assert "a guard stands: 1,200 holds" in freehold("why", "1001", cwd=tmp_path).out

    assert freehold("guard", "release", "cart", *WHO, cwd=tmp_path).code == 0
    assert freehold(
        "run", "--until-idle", cwd=tmp_path
    ).out == f"released {MANY:,} holds\n".replace(",", "")
    again = freehold("guard", "release", "--all", *WHO, cwd=tmp_path)
    assert (again.code, again.out) == (6, "")
    assert again.sentence.startswith("freehold: No guard stands")
    assert freehold("audit", cwd=tmp_path).code == 0


def test_the_service_says_once_that_a_guard_tripped(tmp_path: Path, sqlite_url: str) -> None:
    _migrated(tmp_path, sqlite_url)
    with Running(tmp_path) as service:
        tripped = service.wait_for("guard tripped")
        assert (tripped["guard"], tripped["rule"]) == ("mass", "cart")
        assert freehold("guard", "release", "cart", *WHO, cwd=tmp_path).code == 0
        assert service.wait_for("guard released")["rule"] == "cart"
        assert service.stop() == 0


def test_a_pause_is_begun_listed_and_ended(tmp_path: Path, sqlite_url: str) -> None:
    _shop(tmp_path, sqlite_url)
    begun = freehold("pause", "work", "--rule", "cart", *WHO, "--for", "2h", cwd=tmp_path)
    assert begun.code == 0
    assert begun.out.startswith("work of cart is paused by ann: the new dues are right, until 2")
    idle = freehold("run", "--until-idle", cwd=tmp_path)
    assert idle.code == 6
    assert "Rule cart cannot work: its work is paused by ann" in idle.err
    (listed,) = freehold("pause", "list", "--json", cwd=tmp_path).data
    assert (listed["role"], listed["rule"], listed["stands"]) == ("work", "cart", True)
    assert "The work of cart is paused by ann" in freehold("status", cwd=tmp_path).out
    found = freehold("doctor", "--json", cwd=tmp_path).data
    assert [one["severity"] for one in found if one["code"] == "stopped"] == ["warn"]
    assert freehold("resume", "work", *WHO, cwd=tmp_path).code == 6
    assert freehold("resume", "work", "--rule", "cart", *WHO, cwd=tmp_path).code == 0
    assert freehold("run", "--until-idle", cwd=tmp_path).out == "released 10 holds\n"
    assert freehold("pause", "list", cwd=tmp_path).out == "nothing is paused\n"


def test_mistakes_are_sentences(
    tmp_path: Path,
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process: ten of their own would take longer than all else here."""
    _shop(tmp_path, sqlite_url)
    monkeypatch.chdir(tmp_path)
    for words in (
        ("guard", "release", *WHO),
        ("guard", "release", "cart", "--all", *WHO),
        ("guard", "release", "cart", "--by", " ", "--reason", "x"),
        ("pause", "work"),
        ("pause", "work", "--rule", "cup", *WHO),
        ("pause", "work", "--tenant", "", *WHO),
        ("pause", "work", "--for", "soon", *WHO),
        ("pause", "work", "--for", "0s", *WHO),
        ("pause", "work", "--until", "2999-01-01T00:00", *WHO),
        ("pause", "work", "--until", "9999-12-31T23:59:59-12:00", *WHO),
        ("pause", "work", "--until", "2001-01-01T00:00Z", *WHO),
        ("pause", "work", "--until", "2999-01-01T00:00Z", "--for", "1h", *WHO),
    ):
        assert _run_command(list(words)) == 2, words
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("freehold: ")
        assert said.err.count("\n") == 1
    assert _run_command(["pause", "scan", "--until", "2999-01-01T00:30+02:00", *WHO]) == 0
    assert "until 2998-12-31 22:30:00 UTC" in capsys.readouterr().out
    assert _run_command(["pause", "sleep", *WHO]) == 2
    assert "choose one of scan, dispatch, work" in capsys.readouterr().err
    assert _run_command(["pause", "relay", "--rule", "cart", *WHO]) == 2
    assert "`freehold events pause TARGET`" in capsys.readouterr().err
    assert _run_command(["pause", "dispatch", "--tenant", "t", *WHO]) == 2
    assert "A broker knows no tenants" in capsys.readouterr().err


def test_a_plan_can_be_of_one_tenant(tmp_path: Path, sqlite_url: str) -> None:
    _plan(tmp_path, sqlite_url)


@pytest.mark.proof
def test_a_plan_of_one_tenant_on_a_server(tmp_path: Path, postgres_url: str) -> None:
    _plan(tmp_path, postgres_url)


def _plan(tmp_path: Path, database_url: str) -> None:
    _shop(tmp_path, database_url)
    _run(database_url, LATER.replace("2999-01-01", "2026-01-01"))
    for tenant, count in (("quay", MANY), ("harbour", 10), ("nobody", 0)):
        (plan,) = freehold("plan", "cart", "--tenant", tenant, "--json", cwd=tmp_path).data
        assert plan["due_count"] == count
        assert [one["tenant"] for one in plan["tenants"]] == ([tenant] if count else [])
    assert "harbour" in freehold("plan", "--tenant", "harbour", cwd=tmp_path).out
