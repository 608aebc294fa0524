"""Real services are killed in mid-work while a host application goes on with its own rows."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.testing.backdoor import BackDoor
from freehold.testing.invariants import check_invariants
from freehold.testing.tables import RESTOCK, StandardTable, standard_rule
from tests.e2e.command import freehold
from tests.e2e.running import Running

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.proof

KILLS = 12
PAUSE_SECONDS = 0.004  # between the host's acts, so that the machine does not serve it alone
RULE = f"""
[database]
url = "{{url}}"

[[rules]]
name = "reservation"
table = "reservation"
key = ["id"]
tenant = {{{{ column = "tenant" }}}}
held = [{{{{ status = "held" }}}}]
due = {{{{ column = "hold_until", {{due}} }}}}
fence = ["token"]
expire = {{{{ set = {{{{ status = "expired", released_at = {{{{ now = true }}}} }}}} }}}}
confirmed = [{{{{ status = "confirmed" }}}}]
cancelled = [{{{{ status = "cancelled" }}}}]
also = [{{{{ sql = "{RESTOCK.sql}", rows = "1", lock_by = ":stock_id" }}}}]
carry = ["stock_id", "quantity"]
"""


class Host(threading.Thread):
    """A host application: makes holds, renews, confirms, cancels and hands some over."""

    def __init__(self, url: str) -> None:
        super().__init__(name="host")
        self._url = url
        self._luck = random.Random(7)
        self._stop_asked = threading.Event()
        self.made_count = 0

    def run(self) -> None:
        with BackDoor(self._url) as door:
            table = StandardTable(door)
            while not self._stop_asked.wait(PAUSE_SECONDS):
                self.made_count += 1
                table.hold(self.made_count, self._soon(), stock=1 + self.made_count % 2)
                self._touch(table, self._luck.randint(1, self.made_count))

    def _soon(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._luck.uniform(0.0, 1.0))

    def _touch(self, table: StandardTable, number: int) -> None:
        match self._luck.randrange(6):
            case 0:
                table.renew(number, self._soon())
            case 1:
                table.set_status(number, "confirmed")
            case 2:
                table.set_status(number, "cancelled")
            case 3:
                table.take_over(number, f"other {self.made_count}", self._soon())

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()


def _attach(folder: Path, url: str) -> None:
    due = 'kind = "timestamptz"' if url.startswith("postgres") else 'kind = "naive", zone = "UTC"'
    (folder / "freehold.toml").write_text(RULE.format(url=url, due=due))
    assert freehold("db", "upgrade", cwd=folder).code == 0


def _kill_by_turns(folder: Path) -> None:
    """Kill one of two services each time that it has just released a batch."""
    services = [Running(folder), Running(folder)]
    try:
        for turn in range(KILLS):
            services[turn % 2].wait_for("batch")
            services[turn % 2].kill()
            services[turn % 2] = Running(folder)
    finally:
        for service in services:
            service.kill()


def _drain(folder: Path, door: BackDoor) -> None:
    """Run one-shots until nothing is held: every hold of the host lapses within a second."""
    while door.one("select count(*) from reservation where status = 'held'"):
        assert freehold("run", "--until-idle", cwd=folder).code == 0


def test_kills_in_mid_work_lose_nothing_and_repeat_nothing(
    tmp_path: Path, database_url: str
) -> None:
    with BackDoor(database_url) as door:
        StandardTable(door).create()
        _attach(tmp_path, database_url)
        host = Host(database_url)
        host.start()
        try:
            _kill_by_turns(tmp_path)
        finally:
            host.stop()
        _drain(tmp_path, door)
        assert host.made_count > KILLS
        assert door.one("select count(*) from reservation where status = 'expired'") > KILLS
        check_invariants(door, standard_rule(database_url), datetime.now(UTC))
        assert freehold("audit", cwd=tmp_path).code == 0
