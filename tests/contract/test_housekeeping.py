"""Monthly partitions are made ahead, and take over what fell into the default one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import psycopg
import pytest

from freehold.adapters.sql.housekeeping import keep_house, months_from
from freehold.adapters.sql.migrations import upgrade
from freehold.adapters.sql.postgres import PostgresSession

pytestmark = pytest.mark.postgres
ROW = """
insert into freehold.record (operation_id, rule, hold_key, digest, generation, outcome, attempt,
    found_at, finished_at)
values (1, 'cart', '1', gen_random_uuid(), 1, 'expired', 1, now(), now())
"""
WAITING = """
select 1 from pg_locks where not granted and relation in (
    'freehold.record'::regclass, 'freehold.record_default'::regclass)
"""
PARTS = "select tableoid::regclass::text, count(*) from freehold.record group by 1"


def test_months_follow_each_other_over_the_year() -> None:
    months = months_from(datetime(2026, 11, 30, tzinfo=UTC), 3)
    assert [f"{month:%Y-%m-%d}" for month in months] == ["2026-11-01", "2026-12-01", "2027-01-01"]


def test_a_record_that_came_before_its_partition_is_moved_into_it(postgres_url: str) -> None:
    session = PostgresSession(postgres_url)
    upgrade(session)
    with psycopg.connect(postgres_url, autocommit=True) as raw:
        raw.execute(ROW)
        assert raw.execute(PARTS).fetchall() == [("freehold.record_default", 1)]
        keep_house(session)
        keep_house(session)
        (name, count), *others = raw.execute(PARTS).fetchall()
        assert (name.startswith("freehold.record_2"), count, others) == (True, 1, [])
        parts = raw.execute(
            "select count(*) from pg_inherits where inhparent = 'freehold.record'::regclass"
        ).fetchone()
        assert parts == (4,)
    session.close()


def test_whoever_takes_the_table_and_then_its_parts_meets_no_deadlock(postgres_url: str) -> None:
    session = PostgresSession(postgres_url)
    upgrade(session)
    with (
        psycopg.connect(postgres_url, autocommit=True) as raw,
        psycopg.connect(postgres_url) as other,
        ThreadPoolExecutor() as pool,
    ):
        other.execute("lock table only freehold.record in access exclusive mode")
        kept = pool.submit(keep_house, session)
        while not raw.execute(WAITING).fetchone():
            assert not kept.done()
        other.execute("lock table freehold.record_default in access exclusive mode")
        other.commit()
        kept.result()
        parts = raw.execute("select to_regclass('freehold.record_' || to_char(now(), 'YYYY_MM'))")
        assert parts.fetchone() != (None,)
    session.close()


def test_a_role_without_the_right_to_make_tables_goes_on(postgres_url: str) -> None:
    session = PostgresSession(postgres_url)
    upgrade(session)
    with psycopg.connect(postgres_url, autocommit=True) as raw:
        raw.execute("revoke create on schema freehold from current_user")
    keep_house(session)
    with psycopg.connect(postgres_url, autocommit=True) as raw:
        raw.execute(ROW)
        assert raw.execute(PARTS).fetchall() == [("freehold.record_default", 1)]
    session.close()
