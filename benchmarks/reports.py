# ruff: noqa: INP001, T201 -- a script, which prints
"""What one day's reports cost: closing and freezing, against the same rows in bare statements.

Run: .venv/bin/python -m benchmarks.reports [TENANTS [RELEASED [sqlite]]]

It fills a database of its own with one day of RELEASED holds, released one a tally in turn for
TENANTS tenants, the worst that a ledger can meet; then closes the day and freezes its facts as
`freehold report run` does, and prints seconds and the process's peak memory. The yardstick writes
the same reports, assigns a copy of the same tallies, and groups them and their records, in one bare
statement each.
"""

from __future__ import annotations

import resource
import sqlite3
import sys
import tempfile
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import psycopg

from freehold.adapters.sql import migrations
from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.sql.postgres import PostgresSession
from freehold.adapters.sql.sqlite import SqliteSession
from freehold.adapters.system import Onwards, SystemClock
from freehold.application.reporting.closing import Closer
from freehold.application.reporting.freezing import Freezer
from freehold.domain.reports import ReportPolicy
from freehold.ports.reports import RuleNote
from tests.servers import Servers

if TYPE_CHECKING:
    from collections.abc import Callable

POLICY = ReportPolicy("reports@example.org")
NOTES = {"cart": RuleNote(60.0, "room")}
ZEROS = ", ".join(["0"] * 12)
FILL = {
    "postgres": """
insert into freehold.tenant (id, name, created_at, changed_at)
select 't' || n, 'House ' || n, now(), now() from generate_series(0, {tenants} - 1) n;
insert into freehold.tally (
    rule, tenant, at, expired_count, skipped, lag_counts, lag_max_seconds)
select 'cart', 't' || n % {tenants}, {at}, 1, '{{}}', '[0, 0, 0, 1, {zeros}]', 0.2
from generate_series(1, {released}) n;
insert into freehold.record (
    operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, attempt,
    before_image, tally_id, found_at, finished_at)
select n, 'cart', 't' || n % {tenants}, n::text, gen_random_uuid(), 1, {at} - interval '0.2 s',
    'expired', 1, json_build_object('id', n::text, 'room', (n % 97)::text, 'status', 'held'), n,
    {at}, {at}
from generate_series(1, {released}) n;
vacuum analyze""",
    "sqlite": """
insert into freehold_tenant (id, name, created_at, changed_at)
select 't' || n, 'House ' || n, '2026', '2026' from ({series}) where n < {tenants};
insert into freehold_tally (
    rule, tenant, at, expired_count, skipped, lag_counts, lag_max_seconds)
select 'cart', 't' || (n % {tenants}), {at}, 1, '{{}}', '[0, 0, 0, 1, {zeros}]', 0.2
from ({series});
insert into freehold_record (
    operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, attempt,
    before_image, tally_id, found_at, finished_at)
select n, 'cart', 't' || (n % {tenants}), cast(n as text), hex(randomblob(16)), 1, {at},
    'expired', 1, json_object('id', cast(n as text), 'room', cast(n % 97 as text),
    'status', 'held'), n + 1, {at}, {at}
from ({series});
analyze""",
}
AT = {
    "postgres": "(timestamptz '{day}' + n * interval '86399 s' / {released})",
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%S.000000Z', '{day}', (n * 86399 / {released}) || ' seconds')",
}
SERIES = """
with recursive s (n) as (select 0 union all select n + 1 from s where n < {released} - 1)
select n from s"""
# A copy of the tallies, since they are assigned once.
COPIES = {
    "postgres": """
create table bare_report (id bigint generated always as identity, tenant text unique);
create table bare_tally (like freehold.tally including all);
insert into bare_tally overriding system value select * from freehold.tally;
vacuum analyze bare_tally""",
    "sqlite": """
create table bare_report (id integer primary key, tenant text unique);
create table bare_tally as select * from freehold_tally;
create unique index bare_id on bare_tally (id);
create index bare_unreported on bare_tally (tenant, at) where report_id is null;
create index bare_reported on bare_tally (report_id) where report_id is not null;
analyze""",
}
YARDSTICK = """
insert into bare_report (tenant) select id from {s}tenant;
update bare_tally set report_id = r.id from bare_report r
where r.tenant = bare_tally.tenant and report_id is null;
select report_id, rule, sum(expired_count), max(lag_max_seconds) from bare_tally
group by report_id, rule;
select t.report_id, r.rule, count(distinct r.before_image ->> 'room')
from bare_tally t join {s}record r on r.tally_id = t.id group by t.report_id, r.rule"""


def peak_mb() -> float:
    """Return the most memory that this process has had at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024


def timed(step: Callable[[], Any]) -> tuple[float, Any]:
    """Return how many seconds a step took, and what it returned."""
    start = perf_counter()
    result = step()
    return perf_counter() - start, result


def run(target: str, dialect: str, tenant_count: int, released_count: int) -> None:
    """Fill, close, freeze, compare, print."""
    connection: Any = (
        psycopg.connect(target, autocommit=True)
        if dialect == "postgres"
        else sqlite3.connect(target, isolation_level=None)
    )
    session: Any = (
        PostgresSession(target)
        if dialect == "postgres"
        else SqliteSession(target, SystemClock(), considerate=False)
    )
    migrations.upgrade(session)
    ledger = SqlLedger(session, Onwards())
    ledger.keep_house()
    yesterday = (SystemClock().wall() - timedelta(days=1)).date().isoformat()
    sizes = {"tenants": tenant_count, "released": released_count, "zeros": ZEROS, "day": yesterday}
    texts = {"at": AT[dialect].format(**sizes), "series": SERIES.format(**sizes)}

    def execute(statement: str) -> None:
        cursor = connection.execute(statement)
        if cursor.description:
            cursor.fetchall()

    for text in (FILL[dialect].format(**sizes, **texts), COPIES[dialect]):
        for statement in text.split(";"):
            execute(statement)
    before_mb = peak_mb()
    close_s, closed = timed(Closer(ledger, POLICY, Onwards()).close)
    freeze_s, frozen_count = timed(Freezer(ledger, POLICY, NOTES, Onwards()).freeze)
    after_mb = peak_mb()
    yardstick = YARDSTICK.format(s=session.prefix).split(";")
    bare_s = [timed(partial(execute, statement))[0] for statement in yardstick]
    (counted,) = connection.execute(
        f"select sum(expired_count) from {session.prefix}report"
    ).fetchone()
    assert (closed.report_count, frozen_count, counted) == (
        tenant_count,
        tenant_count,
        released_count,
    )
    print(f"{dialect}: {tenant_count:,} tenants, {released_count:,} released holds")
    print(f"  close {close_s:.1f} s, freeze {freeze_s:.1f} s")
    print(f"  yardstick {sum(bare_s):.1f} s ({', '.join(f'{one:.1f}' for one in bare_s)})")
    print(f"  ratio {(close_s + freeze_s) / sum(bare_s):.2f}")
    print(f"  peak memory {after_mb:.0f} MB, {after_mb - before_mb:.0f} MB more than before")
    ledger.close()
    connection.close()


def main(tenant_count: int = 1_000, released_count: int = 1_000_000, kind: str = "") -> None:
    """Run on a private server, or in a file."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="freehold-reports-") as folder:
            run(str(Path(folder) / "ledger.db"), kind, tenant_count, released_count)
        return
    servers = Servers()
    try:
        run(servers.read("postgres18").create_database(), "postgres", tenant_count, released_count)
    finally:
        servers.remove()


if __name__ == "__main__":
    main(*(int(one) for one in sys.argv[1:3]), *sys.argv[3:4])
