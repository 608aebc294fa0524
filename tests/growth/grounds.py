"""Two databases of one kind, one small and one grown, on which the same rounds are timed by turns."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from statistics import median
from typing import Any, TypeVar

import psycopg

from freehold.adapters.sql import migrations
from freehold.adapters.system import Onwards, StopRequest, SystemDice
from freehold.application.scan import Scanner
from freehold.application.work import PassEnd, Worker
from freehold.bootstrap import open_ledger
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.rules import (
    Condition,
    Predicate,
    Rule,
    SetColumns,
    TableName,
    TenantSource,
    Test,
)
from freehold.settings import DatabaseSettings, Settings

T = TypeVar("T")

ROUND_ROWS = 500
ROUNDS = 15
SMALL_ROWS = 10_000  # holds that are not due, in either database
MOST_TIMES = 1.5

RULE = Rule(
    name="hold",
    table=TableName("hold"),
    key=("id",),
    held=Predicate(((Condition("status", Test.EQUALS, ("held",)),),)),
    due=DueSpec("due", DueKind.EPOCH_SECONDS),
    action=SetColumns((("status", "expired"),)),
    tenant=TenantSource("tenant"),
    fence=("token",),
    attach_limit=10_000_000,
)
TABLE = """
create table hold (
    id bigint primary key, tenant text not null, status text not null, token text not null,
    due bigint not null);
create index hold_due on hold (due) where status = 'held';
"""
# A series of numbers that both databases know; `n` runs from 1.
SERIES = "with recursive s (n) as (select 1 union all select n + 1 from s where n < {count}) "
HOLDS = (
    "insert into hold select {first} + n, 't' || (n % 200), 'held', 'k' || n, {due} + n * {step} "
    "from {series}"
)
RECORDS = """
insert into {s}record (
    operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, attempt,
    found_at, finished_at)
select -n, 'hold', 't' || (n % 200), 'old ' || n, {digest}, 1, {now}, 'expired', 1, {now}, {now}
from {series}
"""
DEAD = """
insert into {s}operation (
    rule, tenant, hold_key, digest, identity, guard, due_at, generation, after_expired, state,
    reason, attempt, available_at, found_at, changed_at)
select 'hold', 't' || (n % 200), cast({first} + n as text), {digest},
       '["' || ({due} + n) || '","k' || n || '"]', '["held"]', {now}, 1, {no}, 'dead', 'broken', 6,
       {now}, {now}, {now}
from {series}
"""


class Ground:
    """One database with the service's own loops over it, and a raw connection beside them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.sqlite = url.startswith("sqlite")
        self.host = self._connect()
        self.next_id = 5_000_000_000
        for statement in TABLE.split(";"):
            self.run(statement)
        settings = Settings(database=DatabaseSettings(url=url), rules=(RULE,))
        self.ledger = open_ledger(settings, considerate=False)
        migrations.upgrade(self.ledger.session)
        self.ledger.keep_house()
        self.scanner = Scanner(self.ledger, Onwards())
        self.worker = Worker(self.ledger, Onwards(), SystemDice(), StopRequest())
        self.holds(0, SMALL_ROWS, due=4_000_000_000)

    def _connect(self) -> Any:
        if self.sqlite:
            path = self.url.removeprefix("sqlite:///")
            connection = sqlite3.connect(path, isolation_level=None)
            connection.execute("pragma journal_mode=wal")
            return connection
        return psycopg.connect(self.url, autocommit=True)

    def run(self, sql: str, **slots: Any) -> None:
        """Run a raw statement; slots are numbers and expressions of the test's own."""
        now = "strftime('%Y-%m-%dT%H:%M:%fZ')" if self.sqlite else "clock_timestamp()"
        digest = "lower(hex(randomblob(16)))" if self.sqlite else "gen_random_uuid()"
        own = {"s": "freehold_" if self.sqlite else "freehold.", "now": now, "digest": digest}
        no = "0" if self.sqlite else "false"
        if sql.strip():
            self.host.execute(sql.format(**own, no=no, **slots))

    def many(self, sql: str, count: int, **slots: Any) -> None:
        """Run an INSERT over the numbers 1 to `count`."""
        if self.sqlite:
            self.run(SERIES.format(count=count) + sql, series="s", **slots)
        else:
            self.run(sql, series=f"generate_series(1, {count}) s (n)", **slots)

    def holds(self, first: int, count: int, due: int, step: int = 0) -> None:
        """Insert held rows that fall due at one instant, or `step` seconds apart."""
        self.many(HOLDS, count, first=first, due=due, step=step)

    def settle(self) -> None:
        """Let the planner know what was loaded."""
        self.run("analyze")

    def drain(self) -> list[float]:
        """Scan and work until nothing is left; return the seconds of each batch."""
        seconds: list[float] = []
        while True:
            scan = self.scanner.scan(RULE)
            while (one := timed(lambda: self.worker.work(RULE).end is PassEnd.WORKED))[1]:
                seconds.append(one[0])
            if scan.finished:
                return seconds

    def round(self) -> tuple[float, float]:
        """Let holds fall due; return the seconds of the scan and of the batch that releases them."""
        self.holds(self.next_id, ROUND_ROWS, due=int(time.time()) - 1)
        self.next_id += ROUND_ROWS
        scan_seconds, scan = timed(lambda: self.scanner.scan(RULE))
        assert scan.new_count == ROUND_ROWS
        work_seconds, work = timed(lambda: self.worker.work(RULE))
        released = work.batch.released_count
        while (more := self.worker.work(RULE)).end is PassEnd.WORKED:
            released += more.batch.released_count
        assert released == ROUND_ROWS
        return scan_seconds, work_seconds

    def close(self) -> None:
        """Close both connections."""
        self.ledger.close()
        self.host.close()


def timed(what: Callable[[], T]) -> tuple[float, T]:
    """Return how long a call took, and what it returned."""
    began = time.perf_counter()
    done = what()
    return time.perf_counter() - began, done


def compare(small: Ground, grown: Ground) -> tuple[float, float]:
    """Return how many times longer scan and work take on the grown database; medians, by turns."""
    pairs = [(small.round(), grown.round()) for _ in range(ROUNDS)]
    return (
        median(g[0] for _, g in pairs) / median(s[0] for s, _ in pairs),
        median(g[1] for _, g in pairs) / median(s[1] for s, _ in pairs),
    )
