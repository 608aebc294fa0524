"""119,390 real bookings in two tables on PostgreSQL and one on SQLite, released by the real service."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from freehold.application.scan import LEAD_BATCHES
from tests.e2e.command import freehold
from tests.realdata.bookings import FILE, FOLDER_VARIABLE, Booking, find_file, read_bookings
from tests.realdata.evidence import attach, check_released, furthest_displaced
from tests.realdata.fleet import growth, service, wait_until_released
from tests.servers import Servers, find_debian_major

pytestmark = pytest.mark.proof

BATCH_ROWS = 500
WORKERS = 2
BIG_SHARE = 0.25


@pytest.fixture
def bookings(capsys: pytest.CaptureFixture[str]) -> list[Booking] | None:
    """Return the real bookings; where the file is not there, say so in one line."""
    found = find_file()
    if found is None:
        with capsys.disabled():
            print(f"\nreal bookings NOT tested: no {FILE} in {FOLDER_VARIABLE} or ../shared/data")  # noqa: T201
        return None
    return read_bookings(found)


def big_tenant(bookings: list[Booking]) -> str:
    """Return the tenant that has a quarter of all rows."""
    tenant, count = Counter(one.tenant for one in bookings).most_common(1)[0]
    assert count > BIG_SHARE * len(bookings)
    return tenant


def test_the_service_releases_two_tables_on_postgres(
    bookings: list[Booking] | None, servers: Servers, tmp_path: Path
) -> None:
    if bookings is None:
        return
    assert len(bookings) == 119_390
    server = servers.read(f"postgres{find_debian_major()}")
    url = server.create_database()
    attach(url, tmp_path, bookings)
    with service(tmp_path, ["scan", *["work"] * WORKERS]) as processes:
        resident = wait_until_released(url, processes)
    check_released(url, tmp_path, bookings)
    look_ahead = (LEAD_BATCHES + WORKERS) * BATCH_ROWS
    for rule in ("stays", "agency"):
        assert furthest_displaced(url, rule, big_tenant(bookings)) <= look_ahead
    assert all(0.8 < growth(one) < 1.2 for one in resident), [growth(one) for one in resident]
    server.drop_database(url)


def test_a_one_shot_releases_one_table_on_sqlite(
    bookings: list[Booking] | None, sqlite_url: str, tmp_path: Path
) -> None:
    if bookings is None:
        return
    attach(sqlite_url, tmp_path, bookings)
    assert freehold("run", "--until-idle", cwd=tmp_path).code == 0
    check_released(sqlite_url, tmp_path, bookings)
    assert furthest_displaced(sqlite_url, "desk", big_tenant(bookings)) <= LEAD_BATCHES * BATCH_ROWS
