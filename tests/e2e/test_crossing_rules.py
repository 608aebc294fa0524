"""Rules whose companions touch the same counters in opposite order finish, whoever is killed.

Two rules of each mode cross one another, and those of the other modes, on the same few rows.
"""

from __future__ import annotations

from itertools import product
from signal import SIGKILL
from typing import TYPE_CHECKING

import pytest

from freehold.testing.backdoor import BackDoor
from tests.e2e.command import freehold
from tests.e2e.fleet import Fleet

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.proof

MODES = ("reservation", "direct", "window")
CROSSED = {"one": ("low", "high"), "two": ("high", "low")}
TABLES = {f"{name}_{mode}": mode for mode, name in product(MODES, CROSSED)}
HOLDS = 60  # of each rule; without an order each deadlock costs the server's second
TOTAL = HOLDS * len(TABLES)
COUNTERS = 7
KILLS = 3
LEFT_HELD = " union all ".join(f"select id from {table} where status = 'held'" for table in TABLES)
GIVE_BACK = "update counter set free = free + 1 where id = :{column}"
# A window comes back when the lease ends that a killed worker had of it: a short one ends soon, but
# one shorter than a page with its deadlocks would end under a worker that lives, and cost attempts.
SETTINGS = """
[database]
url = "{url}"
[loops]
lease = "6s"
heartbeat = "500ms"
sweep = "1s"
"""
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
batch = 20
attach_limit = 1000000
also = [{also}]
"""
ALSO = '{{ sql = "{sql}", rows = "1"{order} }}'
# A companion that takes a while keeps its rows locked for long enough to meet the other rules.
SLOW = """
create function slow() returns trigger language plpgsql as
$$ begin perform pg_sleep(0.001); return new; end $$;
create trigger slow before update on counter for each row execute function slow();
"""


def _attach(folder: Path, url: str, *, ordered: bool) -> None:
    text = SETTINGS.format(url=url)
    for name, mode in TABLES.items():
        also = [
            ALSO.format(
                sql=GIVE_BACK.format(column=column),
                order=f', lock_by = ":{column}"' if ordered else "",
            )
            for column in CROSSED[name.partition("_")[0]]
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
    if door.dialect == "postgres":
        door.script(SLOW)
    for name in TABLES:
        door.script(
            f"create table {name} (id integer primary key, status text not null, "
            "token text not null, due bigint not null, low integer not null, high integer not null);"
            f"create index {name}_due on {name} (due) where status = 'held';"
            f"insert into {name} with recursive s (n) as "
            f"(select 1 union all select n + 1 from s where n < {HOLDS}) "
            f"select n, 'held', 'k', 1700000000, n % {COUNTERS}, (n * 3 + 1) % {COUNTERS} from s;"
        )


def _work_under_kills(folder: Path) -> None:
    """Kill a service each time that another part of the holds is released."""
    with Fleet(folder, size=2) as fleet:
        for _ in range(KILLS):
            fleet.wait_for(released=TOTAL // (KILLS + 2))
            fleet.kill_one()
    assert set(fleet.codes) <= {-SIGKILL}


@pytest.mark.parametrize("ordered", [True, False])
def test_companions_that_cross_count_exactly(
    tmp_path: Path, database_url: str, ordered: bool
) -> None:
    with BackDoor(database_url) as door:
        _fill(door)
        _attach(tmp_path, database_url, ordered=ordered)
        _work_under_kills(tmp_path)
        while door.one(f"select count(*) from ({LEFT_HELD}) t"):
            assert freehold("run", "--until-idle", cwd=tmp_path).code == 0
        assert door.one("select sum(free) from counter") == 2 * TOTAL
        released = "select rule, count(*) from {s}record where outcome = 'expired' group by 1"
        assert dict(door.rows(released)) == dict.fromkeys(TABLES, HOLDS)
        assert (
            door.rows("select failure_class, failure_code, failure_message from {s}attempt") == []
        )
        assert door.one("select count(*) from {s}operation where state = 'dead'") == 0
    assert freehold("audit", cwd=tmp_path).code == 0
