"""Two rules whose companions touch the same counters in opposite order finish, whoever is killed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from freehold.testing.backdoor import BackDoor
from tests.e2e.command import freehold
from tests.e2e.running import Running

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.proof

HOLDS = 600
COUNTERS = 7
KILLS = 3
POLL_SECONDS = 0.005
RELEASED = "select count(*) from {s}record where outcome = 'expired'"
GIVE_BACK = "update counter set free = free + 1 where id = :{column}"
RULE = """
[[rules]]
name = "{name}"
table = "{name}"
key = ["id"]
held = [{{ status = "held" }}]
due = {{ column = "due", kind = "epoch_s" }}
fence = ["token"]
expire = {{ set = {{ status = "expired" }} }}
mode = "{mode}"
batch = 40
attach_limit = 1000000
also = [{also}]
"""
ALSO = '{{ sql = "{sql}", rows = "1"{order} }}'


def _attach(folder: Path, url: str, mode: str, *, ordered: bool) -> None:
    text = f'[database]\nurl = "{url}"\n'
    for name, columns in (("one", ("low", "high")), ("two", ("high", "low"))):
        also = [
            ALSO.format(
                sql=GIVE_BACK.format(column=column),
                order=f', lock_by = ":{column}"' if ordered else "",
            )
            for column in columns
        ]
        text += RULE.format(name=name, mode=mode, also=", ".join(also))
    (folder / "freehold.toml").write_text(text)
    assert freehold("db", "upgrade", cwd=folder).code == 0


def _fill(door: BackDoor) -> None:
    if door.dialect == "sqlite":
        door.execute("pragma journal_mode = wal")
    door.script("create table counter (id integer primary key, free integer not null);")
    for number in range(COUNTERS):
        door.execute("insert into counter values (:id, 0)", id=number)
    for name in ("one", "two"):
        door.script(
            f"create table {name} (id integer primary key, status text not null, "
            "token text not null, due bigint not null, low integer not null, high integer not null);"
            f"create index {name}_due on {name} (due) where status = 'held';"
            f"insert into {name} with recursive s (n) as "
            f"(select 1 union all select n + 1 from s where n < {HOLDS}) "
            f"select n, 'held', 'k', 1700000000, n % {COUNTERS}, (n * 3 + 1) % {COUNTERS} from s;"
        )


def _work_under_kills(folder: Path, door: BackDoor) -> None:
    """Kill one of three services each time that another part of the holds is released."""
    services = [Running(folder) for _ in range(3)]
    try:
        for turn in range(KILLS):
            while door.one(RELEASED) < 2 * HOLDS * (turn + 1) / (KILLS + 1):
                time.sleep(POLL_SECONDS)
            services[turn % 3].kill()
            services[turn % 3] = Running(folder)
    finally:
        for service in services:
            service.kill()


@pytest.mark.parametrize("ordered", [True])
@pytest.mark.parametrize("mode", ["reservation", "direct"])
def test_companions_that_cross_count_exactly(
    tmp_path: Path, database_url: str, mode: str, ordered: bool
) -> None:
    with BackDoor(database_url) as door:
        _fill(door)
        _attach(tmp_path, database_url, mode, ordered=ordered)
        _work_under_kills(tmp_path, door)
        while door.one("select count(*) from one where status = 'held'") or door.one(
            "select count(*) from two where status = 'held'"
        ):
            assert freehold("run", "--until-idle", cwd=tmp_path).code == 0
        assert door.one("select sum(free) from counter") == 4 * HOLDS
        assert door.one(RELEASED) == 2 * HOLDS
        deadlocked = "select count(*) from {s}attempt where failure_code in ('40P01', '55P03')"
        assert door.one(deadlocked) == 0
        assert door.one("select count(*) from {s}operation where state = 'dead'") == 0
    assert freehold("audit", cwd=tmp_path).code == 0
