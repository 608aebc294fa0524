"""The records' monthly partitions come into being whatever was written before them."""

from __future__ import annotations

from datetime import UTC, datetime

from freehold.adapters.sql.housekeeping import keep_house
from freehold.adapters.sql.migrations import upgrade
from freehold.bootstrap import open_session
from freehold.settings import DatabaseSettings, Settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock

RECORD = (
    "insert into {s}record (operation_id, rule, hold_key, digest, generation, outcome, attempt,"
    " found_at, finished_at) values (:id, 'cart', '1', gen_random_uuid(), 1, 'skipped', 1, :at, :at)"
)


def test_records_written_before_their_partition_move_into_it(postgres_url: str) -> None:
    march, july = datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 7, 2, tzinfo=UTC)
    session = open_session(Settings(DatabaseSettings(postgres_url)), clock=SetClock(march))
    upgrade(session)
    with BackDoor(postgres_url) as door:
        door.execute(RECORD, id=1, at=march)
        door.execute(RECORD, id=2, at=july)
        keep_house(session)
        door.execute(RECORD, id=3, at=march)
        keep_house(session)
        placed = door.rows(
            "select operation_id, tableoid::regclass::text from {s}record order by 1"
        )
    session.close()
    assert placed == [
        (1, "freehold.record_2026_03"),
        (2, "freehold.record_default"),
        (3, "freehold.record_2026_03"),
    ]
