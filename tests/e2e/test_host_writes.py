"""On SQLite a service with a large backlog refuses the host application no write."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.e2e.command import freehold
from tests.e2e.running import Running

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.proof

BACKLOG = 20_000
SECONDS = 8.0  # of writing; long enough for a scan, releases, and a sweep
WAIT_SECONDS = 1.0  # what the host application is patient for
PAUSE_SECONDS = 0.002
RULE = """
[database]
url = "{url}"

[loops]
sweep = "1s"
heartbeat = "1s"

[[rules]]
name = "cart"
table = "cart"
key = ["id"]
tenant = {{ column = "shop" }}
held = [{{ status = "held" }}]
due = {{ column = "due", kind = "epoch_s" }}
fence = ["token"]
expire = {{ set = {{ status = "expired" }} }}
mode = "{mode}"
attach_limit = 1000000
"""
TABLE = f"""
pragma journal_mode = wal;
create table cart (
    id integer primary key, shop text, status text not null, token text not null, due integer not null);
create index cart_due on cart (due, id) where status = 'held';
create index cart_shop on cart (shop, due, id) where status = 'held';
insert into cart with recursive s (n) as (
    select 1 union all select n + 1 from s where n < {BACKLOG})
select n, 'giant', 'held', 'k', 1700000000 from s;
"""


def _write(host: sqlite3.Connection, ends: float) -> tuple[int, int]:
    """Write as a host application does; return how often, and how often it was refused."""
    written = refused = 0
    while time.monotonic() < ends:
        try:
            host.execute("begin immediate")
            host.execute("insert into cart values (null, 'shop', 'held', 'k', strftime('%s') + 1)")
            host.execute("update cart set status = 'paid' where id = (select max(id) from cart)")
            host.execute("commit")
            written += 1
        except sqlite3.OperationalError:
            refused += 1
            if host.in_transaction:
                host.execute("rollback")
        time.sleep(PAUSE_SECONDS)
    return written, refused


@pytest.mark.parametrize("mode", ["reservation", "direct", "window"])
def test_no_write_of_the_host_is_refused(tmp_path: Path, sqlite_url: str, mode: str) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None, timeout=WAIT_SECONDS)) as host:
        host.executescript(TABLE)
        (tmp_path / "freehold.toml").write_text(RULE.format(url=sqlite_url, mode=mode))
        assert freehold("db", "upgrade", cwd=tmp_path).code == 0
        with Running(tmp_path) as service:
            service.wait_for("started")
            written, refused = _write(host, time.monotonic() + SECONDS)
        released = host.execute("select count(*) from freehold_record").fetchone()[0]
    assert refused == 0, f"{refused} of {written + refused} writes were refused"
    assert written > 100
    assert released > 0
