"""Scan and claim cost the same in a grown database: at most 1.5 times the small case."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import psycopg
import pytest

from tests.growth.grounds import DEAD, MOST_TIMES, RECORDS, Ground, compare
from tests.servers import Servers, find_debian_major

pytestmark = pytest.mark.proof

RECORD_ROWS = 1_000_000
DEAD_ROWS = 300_000
RELEASED_ROWS = 200_000
LONG_AGO = 1_000_000_000  # epoch seconds
EDGE = 40  # batches at either end of a long drain

Pair = tuple[Ground, Ground]


@pytest.fixture
def postgres_pair(servers: Servers) -> Iterator[Pair]:
    """A small and a growing database on one server."""
    server = servers.read(f"postgres{find_debian_major()}")
    urls = [server.create_database(), server.create_database()]
    small, grown = (Ground(url) for url in urls)
    yield small, grown
    for ground in (small, grown):
        ground.close()
        server.drop_database(ground.url)


@pytest.fixture
def sqlite_pair(tmp_path: Path) -> Iterator[Pair]:
    """A small and a growing file."""
    small, grown = (Ground(f"sqlite:///{tmp_path / name}") for name in ("small.db", "grown.db"))
    yield small, grown
    small.close()
    grown.close()


@pytest.fixture(params=["postgres_pair", "sqlite_pair"])
def pair(request: pytest.FixtureRequest) -> Pair:
    """A pair of each kind in turn."""
    found: Pair = request.getfixturevalue(request.param)
    return found


def check(pair: Pair) -> None:
    """Compare the two, after an untimed round on each."""
    for ground in pair:
        ground.settle()
        ground.drain()
        ground.round()
    scan, work = compare(*pair)
    print(f"scan {scan:.2f} times, claim and release {work:.2f} times the small case")  # noqa: T201
    assert scan <= MOST_TIMES
    assert work <= MOST_TIMES


def test_a_million_records_cost_nothing(pair: Pair) -> None:
    pair[1].many(RECORDS, RECORD_ROWS)
    check(pair)


def test_dead_letters_at_the_head_cost_nothing(pair: Pair) -> None:
    pair[1].holds(LONG_AGO, DEAD_ROWS, due=LONG_AGO, step=1)
    pair[1].many(DEAD, DEAD_ROWS, first=LONG_AGO, due=LONG_AGO)
    check(pair)


def test_an_old_snapshot_over_many_releases_costs_nothing(postgres_pair: Pair) -> None:
    grown = postgres_pair[1]
    with psycopg.connect(grown.url) as old:
        old.execute("begin isolation level repeatable read")
        old.execute("select count(*) from hold")
        grown.holds(LONG_AGO, RELEASED_ROWS, due=LONG_AGO, step=1)
        grown.settle()
        seconds = grown.drain()
        times = median(seconds[-EDGE:]) / median(seconds[:EDGE])
        print(f"the last batches took {times:.2f} times the first ones")  # noqa: T201
        assert times <= MOST_TIMES
        check(postgres_pair)
