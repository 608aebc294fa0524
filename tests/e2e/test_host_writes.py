"""On SQLite the host application is refused no write, however many services have a large backlog."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.e2e.command import freehold
from tests.e2e.running import Running

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.proof

BACKLOG = 20_000
SECONDS = 3.0  # of writing; long enough for a scan, releases, and sweeps
WRITERS = 2
WAIT_SECONDS = 1.0  # what the host application is patient for
PAUSE_SECONDS = 0.02  # two writers that never rest starve each other without us: 0.5 s, measured
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


@dataclass(slots=True)
class _Host:
    """A host application's writers, and how they fared."""

    path: str
    waited_seconds: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def write(self, ends: float) -> None:
        """Write as one connection of the application does."""
        with closing(_connect(self.path)) as host:
            while time.monotonic() < ends:
                began = time.monotonic()
                try:
                    _add_and_pay(host)
                    self.waited_seconds.append(time.monotonic() - began)
                except sqlite3.OperationalError as error:
                    self.refused.append(f"{error} after {time.monotonic() - began:.3f} s")
                    if host.in_transaction:
                        host.execute("rollback")
                time.sleep(PAUSE_SECONDS)

    def write_for(self, seconds: float) -> None:
        """Write with all connections at once."""
        with ThreadPoolExecutor(WRITERS) as writers:
            ends = time.monotonic() + seconds
            for writer in [writers.submit(self.write, ends) for _ in range(WRITERS)]:
                writer.result()

    def check(self, released_count: int) -> None:
        """Insist that all was written, and say how long it took."""
        waited = sorted(self.waited_seconds)
        p50, p99 = (1000 * waited[int(len(waited) * share)] for share in (0.5, 0.99))
        figures = (
            f"{len(waited)} writes, p50 {p50:.0f} ms, p99 {p99:.0f} ms, {released_count} released"
        )
        print(figures)  # noqa: T201 -- what `pytest -s` is for
        assert not self.refused, figures
        assert len(waited) > 50
        assert released_count > 0


def _connect(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=WAIT_SECONDS)


def _add_and_pay(host: sqlite3.Connection) -> None:
    host.execute("begin immediate")
    host.execute("insert into cart values (null, 'shop', 'held', 'k', strftime('%s') + 1)")
    host.execute("update cart set status = 'paid' where id = (select max(id) from cart)")
    host.execute("commit")


def _attach(folder: Path, url: str, mode: str) -> _Host:
    """Make the table with its backlog, and a rule over it."""
    host = _Host(url.removeprefix("sqlite:///"))
    with closing(_connect(host.path)) as owner:
        owner.executescript(TABLE)
    (folder / "freehold.toml").write_text(RULE.format(url=url, mode=mode))
    assert freehold("db", "upgrade", cwd=folder).code == 0
    return host


def _released(host: _Host) -> int:
    with closing(_connect(host.path)) as reader:
        count: int = reader.execute("select count(*) from freehold_record").fetchone()[0]
    return count


@pytest.mark.parametrize(
    ("mode", "services"),
    [("reservation", 1), ("direct", 2), ("reservation", 3), ("direct", 3), ("window", 3)],
)
def test_no_write_of_the_host_is_refused(
    tmp_path: Path, sqlite_url: str, mode: str, services: int
) -> None:
    host = _attach(tmp_path, sqlite_url, mode)
    with ExitStack() as stack:
        for running in [stack.enter_context(Running(tmp_path)) for _ in range(services)]:
            running.wait_for("started")
        host.write_for(SECONDS)
    host.check(_released(host))


def test_services_that_are_killed_take_no_turn_along(tmp_path: Path, sqlite_url: str) -> None:
    host = _attach(tmp_path, sqlite_url, "reservation")
    with Running(tmp_path) as lasting:
        lasting.wait_for("started")
        before = 0
        for _ in range(2):
            with Running(tmp_path) as killed:
                killed.wait_for("started")
                host.write_for(0.5)
            host.write_for(0.5)
            assert _released(host) > before
            before = _released(host)
    host.check(before)
