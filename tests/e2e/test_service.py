"""The service as a process: it releases on time, drains on SIGTERM, and survives its neighbours."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.e2e.command import freehold
from tests.e2e.running import Running
from tests.e2e.shop import make_shop, statuses

if TYPE_CHECKING:
    from pathlib import Path


def started(folder: Path, url: str) -> None:
    make_shop(folder, url)
    assert freehold("db", "upgrade", cwd=folder).code == 0


def test_it_releases_what_is_due_and_drains_on_sigterm(tmp_path: Path, database_url: str) -> None:
    started(tmp_path, database_url)
    with Running(tmp_path) as service:
        assert service.wait_for("batch")["released"] == 10
        assert service.stop() == 0
    assert statuses(database_url) == {"expired": 10, "held": 1, "paid": 1}


def test_it_says_that_it_started_and_takes_two_signals_at_once_for_one(
    tmp_path: Path, sqlite_url: str
) -> None:
    """`timeout` signals the process, and then its group, so that both reach it."""
    started(tmp_path, sqlite_url)
    with Running(tmp_path) as service:
        assert service.wait_for("started")["roles"] == "scan,work"
        service.wait_for("batch")
        assert service.stop(times=2) == 0
    assert freehold("status", "--json", cwd=tmp_path).data["processes"] == []


def test_a_one_shot_says_what_failed_and_a_pipe_gets_no_boxes(
    tmp_path: Path, sqlite_url: str
) -> None:
    started(tmp_path, sqlite_url)
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as lite:
        lite.execute(
            "create trigger no before update on carts when old.id = 3 "
            "begin select raise(abort, 'no'); end"
        )
    ended = freehold("run", "--until-idle", cwd=tmp_path)
    assert ended.out == "released 9 holds; 1 failed, to be tried again later\n"
    shown = freehold("status", cwd=tmp_path).out
    assert shown.startswith("✗ ")
    assert "─" not in shown


def test_scan_and_work_may_be_two_processes(tmp_path: Path, database_url: str) -> None:
    started(tmp_path, database_url)
    with (
        Running(tmp_path, "--role", "scan") as scanner,
        Running(tmp_path, "--role", "work") as worker,
    ):
        assert scanner.wait_for("scan")["new"] == 10
        assert worker.wait_for("batch")["released"] == 10
        assert scanner.stop() == 0
        assert worker.stop() == 0


def test_one_shots_do_the_same_in_three_steps(tmp_path: Path, database_url: str) -> None:
    started(tmp_path, database_url)
    assert freehold("scan", "--json", cwd=tmp_path).data == [
        {"rule": "cart", "found": 10, "new": 10, "released": 0, "held_up": None}
    ]
    assert freehold("work", "--json", cwd=tmp_path).data["released"] == 10
    assert freehold("sweep", cwd=tmp_path).code == 0
    assert freehold("run", "--until-idle", "--json", cwd=tmp_path).data["released"] == 0


@pytest.mark.parametrize("mode", ["reservation", "direct", "window"])
def test_a_limit_leaves_work_and_says_so(tmp_path: Path, sqlite_url: str, mode: str) -> None:
    make_shop(tmp_path, sqlite_url, due_count=30, more=f'batch = 10\nmode = "{mode}"')
    freehold("db", "upgrade", cwd=tmp_path)
    ended = freehold("run", "--until-idle", "--limit", "10", cwd=tmp_path)
    assert ended.code == 4
    assert statuses(sqlite_url)["expired"] == 10
    assert freehold("run", "--until-idle", cwd=tmp_path).code == 0
    assert statuses(sqlite_url)["expired"] == 30


def test_too_much_overdue_at_first_waits_for_a_person(tmp_path: Path, sqlite_url: str) -> None:
    make_shop(tmp_path, sqlite_url, due_count=30, more="attach_limit = 20")
    freehold("db", "upgrade", cwd=tmp_path)
    ended = freehold("run", "--until-idle", cwd=tmp_path)
    assert ended.code == 6
    assert "freehold attach cart --confirm" in ended.err
    assert statuses(sqlite_url)["held"] == 31
    wrong = freehold("attach", "cart", "--confirm", "29", "--by", "ann", cwd=tmp_path)
    assert wrong.code == 6
    assert freehold("attach", "cart", "--confirm", "30", "--by", "ann", cwd=tmp_path).code == 0
    assert freehold("run", "--until-idle", cwd=tmp_path).code == 0
    assert statuses(sqlite_url)["expired"] == 30


def test_a_rule_whose_table_is_too_slow_holds_up_no_other(
    tmp_path: Path, postgres_url: str
) -> None:
    started(tmp_path, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as host:
        host.execute("create view slow as select * from carts where pg_sleep(0.1) is not null")
    file = tmp_path / "freehold.toml"
    head, rule = file.read_text().split("[[rules]]")
    slow = rule.replace('"cart"', '"slow"').replace('"carts"', '"slow"')
    limit = 'statement_timeout = "150ms"\n'
    file.write_text(f"{head}{limit}[[rules]]{slow}[[rules]]{rule}")

    with Running(tmp_path) as service:
        troubles = 0
        while (event := service.read())["event"] != "batch":
            troubles += event["event"] == "database"
            assert troubles < 10
        assert (event["rule"], event["released"]) == ("cart", 10)


def test_the_drain_ends_at_its_limit(tmp_path: Path, sqlite_url: str) -> None:
    started(tmp_path, sqlite_url)
    with (tmp_path / "freehold.toml").open("a") as settings:
        settings.write('\n[loops]\ndrain = "1s"\n')
    slow = "create trigger slow before update on carts begin select count(*) from endless; end"
    endless = (
        "create view endless as with recursive n(i) as "
        "(select 1 union all select i + 1 from n) select i from n"
    )
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as host:
        host.execute(endless)
        host.execute(slow)
    with Running(tmp_path) as service:
        service.wait_for("database")  # the worker's transaction locks the others out
        assert service.stop() == 4
    assert statuses(sqlite_url)["held"] == 11
