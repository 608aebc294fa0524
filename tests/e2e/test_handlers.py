"""Handlers in real services: slow ones, ones that kill their worker, ones that hang."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from tests.conftest import DATABASES
from tests.e2e.command import freehold
from tests.e2e.fleet import Fleet
from tests.e2e.shop import make_shop, statuses

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers import Servers

HOOKS = """
import os, signal, time


def note(batch):
    for hold in batch.holds:
        with open("calls.txt", "a") as calls:
            calls.write(f"{hold.key} {hold.attempt}\\n")
        batch.connection.execute(f"insert into noted values ({int(hold.key)})")


def slow(batch):
    note(batch)
    time.sleep(SECONDS * len(batch.holds))


def kill(batch):
    note(batch)
    if "2" in [hold.key for hold in batch.holds]:
        os.kill(os.getpid(), signal.SIGKILL)


def hang(batch):
    note(batch)
    if "2" in [hold.key for hold in batch.holds]:
        time.sleep(600)
"""
PACE = """
[loops]
lease = "{lease}"
heartbeat = "200ms"
sweep = "300ms"
poll = "200ms"
"""
RULE = """
handler = "shop_hooks:{name}"
handler_timeout = "{limit}"
retry = {{ delays = ["100ms"] }}
"""


def proof_but(*kinds: str) -> list[Any]:
    """Return the databases, all but some kinds for `make proof` only."""
    marks = {one.id: [] if one.id in kinds else [pytest.mark.proof] for one in DATABASES}
    return [
        pytest.param(*one.values, id=one.id, marks=[*one.marks, *marks[one.id]])
        for one in DATABASES
    ]


@pytest.fixture
def url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'freehold.db'}"
        return
    server = servers.read(request.param)
    url = server.create_database()
    yield url
    server.drop_database(url)


def open_shop(
    folder: Path,
    url: str,
    name: str,
    *,
    due_count: int,
    lease: str = "1s",
    limit: str = "300ms",
    seconds: float = 0,
) -> None:
    make_shop(folder, url, due_count=due_count, more=RULE.format(name=name, limit=limit))
    with (folder / "freehold.toml").open("a") as file:
        file.write(PACE.format(lease=lease))
    (folder / "shop_hooks.py").write_text(HOOKS.replace("SECONDS", str(seconds)))
    run(url, "create table noted (id integer primary key)")
    assert freehold("db", "upgrade", cwd=folder).code == 0


def run(url: str, sql: str) -> list[tuple[Any, ...]]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as lite:
            rows = lite.execute(sql.replace("freehold.", "freehold_")).fetchall()
            lite.commit()
            return rows
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def calls(folder: Path) -> Counter[tuple[str, str]]:
    lines = (folder / "calls.txt").read_text().splitlines()
    return Counter((line.split()[0], line.split()[1]) for line in lines)


SLOW = [
    pytest.param(0.5, "1500ms", "1s", 5, id="a third of a lease"),
    pytest.param(2.0, "5s", "4s", 6, id="two of five seconds", marks=pytest.mark.proof),
]


@pytest.mark.parametrize("url", proof_but("sqlite", "postgres18"), indirect=True)
@pytest.mark.parametrize(("seconds", "lease", "limit", "count"), SLOW)
def test_a_slow_handler_is_called_once_a_hold_by_all_workers_together(
    tmp_path: Path, url: str, seconds: float, lease: str, limit: str, count: int
) -> None:
    open_shop(tmp_path, url, "slow", due_count=count, lease=lease, limit=limit, seconds=seconds)
    with Fleet(tmp_path, size=3) as fleet:
        fleet.wait_for(released=count)
    assert calls(tmp_path) == {(str(key), "1"): 1 for key in range(count)}
    assert run(url, "select count(*) from noted") == [(count,)]
    assert run(url, "select outcome, attempt, count(*) from freehold.record group by 1, 2") == [
        ("expired", 1, count)
    ]
    assert not any(event.get("returned") for event in fleet.events)


@pytest.mark.parametrize("url", proof_but("sqlite"), indirect=True)
def test_a_handler_that_kills_its_worker_ends_in_review_and_its_mates_do_not(
    tmp_path: Path, url: str
) -> None:
    open_shop(tmp_path, url, "kill", due_count=5)
    with Fleet(tmp_path) as fleet:
        fleet.wait_for(released=4, dead=1)
    assert fleet.codes == [-9, -9]
    assert calls(tmp_path)["2", "1"] == calls(tmp_path)["2", "2"] == 1
    assert statuses(url)["held"] == 2
    assert sorted(row[0] for row in run(url, "select id from noted")) == [0, 1, 3, 4]
    assert run(url, "select hold_key, state, attempt from freehold.operation") == [("2", "dead", 2)]
    assert freehold("audit", cwd=tmp_path).code == 0


@pytest.mark.parametrize("url", proof_but(), indirect=True)
def test_a_handler_that_hangs_ends_its_service_which_says_so(tmp_path: Path, url: str) -> None:
    open_shop(tmp_path, url, "hang", due_count=3)
    with Fleet(tmp_path) as fleet:
        fleet.wait_for(released=2, dead=1)
    assert fleet.codes == [1, 1]
    hung = [event for event in fleet.events if event["event"] == "handler hung"]
    assert [(one["rule"], one["limit_seconds"]) for one in hung] == [("cart", 1.3)] * 2
    assert sorted(row[0] for row in run(url, "select id from noted")) == [0, 1]


def test_a_handler_that_cannot_be_used_is_one_sentence_everywhere(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'freehold.db'}"
    open_shop(tmp_path, url, "missing", due_count=1)
    why = "handler shop_hooks:missing cannot be used: AttributeError: module 'shop_hooks' has no"
    checked = freehold("config", "check", cwd=tmp_path)
    assert (checked.code, why in checked.sentence) == (2, True)
    started = freehold("run", cwd=tmp_path)
    assert (started.code, why in started.sentence) == (2, True)
    found = {one["code"]: one for one in freehold("--json", "doctor", cwd=tmp_path).data}
    assert why in found["handler"]["sentence"]
    assert found["handler-lock"]["severity"] == "warn"
    assert statuses(url)["held"] == 2
