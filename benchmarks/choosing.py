# ruff: noqa: INP001, S603, T201 -- a script, which starts our own program and prints
"""What one hold costs by each way of releasing it, against one conditional UPDATE.

Run: .venv/bin/python -m benchmarks.choosing [COUNT [ROUNDS]]

Each round makes COUNT holds anew that fall due at once, then releases them by one bare UPDATE and by
`freehold run --until-idle` in each mode, one after the other on the same machine; start-up of the
process, measured on an empty table, is taken off. It prints medians, and the bytes of WAL a hold.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import psycopg

from tests.servers import Servers

PROGRAM = Path(sys.executable).parent / "freehold"
TABLE = """
create table carts (id bigint generated always as identity primary key, shop text not null,
    status text not null default 'held', hold_token uuid not null default gen_random_uuid(),
    hold_until timestamptz not null);
create index carts_due on carts (hold_until, id) where status = 'held';
create index carts_due_by_shop on carts (shop, hold_until) where status = 'held'"""
FILL = """
insert into carts (shop, hold_until)
select 'shop ' || n %% 20, now() + n * interval '1 microsecond'
from generate_series(1, %s) n"""
UPDATE = "update carts set status = 'expired' where status = 'held' and hold_until <= now()"
RULE = """
[database]
url = "{url}"
[[rules]]
name = "cart"
table = "carts"
key = ["id"]
tenant = {{ column = "shop" }}
held = [{{ status = "held" }}]
due = {{ column = "hold_until", kind = "timestamptz" }}
fence = ["hold_token"]
expire = {{ set = {{ status = "expired" }} }}
attach_limit = 100000000
mode = "{mode}"
"""
MODES = ("direct", "window", "reservation")


def freehold(folder: Path, *arguments: str) -> float:
    """Run the program and return the seconds that it took."""
    start = perf_counter()
    subprocess.run([PROGRAM, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - start


def one(servers: Servers, way: str, count: int) -> tuple[float, float]:
    """Release `count` holds one way; return seconds and bytes of WAL, both for one hold."""
    server = servers.read("postgres18")
    url = server.create_database()
    with tempfile.TemporaryDirectory() as name, psycopg.connect(url, autocommit=True) as host:
        folder = Path(name)
        host.execute(TABLE)
        start_up = 0.0
        if way != "update":
            (folder / "freehold.toml").write_text(RULE.format(url=url, mode=way))
            freehold(folder, "db", "upgrade")
            start_up = freehold(folder, "run", "--until-idle")
        host.execute(FILL, [count])
        host.execute("vacuum analyze carts")
        before = host.execute("select pg_current_wal_lsn()").fetchone()
        if way == "update":
            start = perf_counter()
            host.execute(UPDATE)
            seconds = perf_counter() - start
        else:
            seconds = freehold(folder, "run", "--until-idle") - start_up
        assert before is not None
        wal = host.execute("select pg_current_wal_lsn() - %s::pg_lsn", before).fetchone()
        left = host.execute("select count(*) from carts where status = 'held'").fetchone()
        assert wal is not None
        assert left == (0,), f"{way} left {left}"
    server.drop_database(url)
    return seconds / count, float(wal[0]) / count


def main(count: int, rounds: int) -> None:
    """Measure, and print a table."""
    servers = Servers()
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in ("update", *MODES)}
    try:
        for _ in range(rounds):
            for way, figures in found.items():
                figures.append(one(servers, way, count))
    finally:
        servers.remove()
    bare = median(seconds for seconds, _ in found["update"])
    for way, figures in found.items():
        micros = median(seconds for seconds, _ in figures) * 1e6
        wal = median(size for _, size in figures)
        print(f"{way:<12} {micros:7.1f} us a hold  {micros / bare / 1e6:5.1f} x  {wal:6.0f} B WAL")


if __name__ == "__main__":
    main(*(int(one) for one in (*sys.argv[1:], *("20000", "5")[len(sys.argv) - 1 :])))
