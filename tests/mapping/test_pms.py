"""A room night whose guest did not come: a DATE that is over when the hotel's day is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.domain.due_walls import zone_info
from tests.mapping.play import cast, check_ends, marks, of, rest

if TYPE_CHECKING:
    from tests.stage import Stage

TABLES = """
create table pms_reservation (
    id integer primary key, state varchar(20) not null, checkin date, checkout date,
    overnight_room boolean not null, pms_property_id integer not null, folio_id integer);
create index pms_reservation_checkin on pms_reservation (checkin);
"""
RULE = """
[[rules]]
name = "pms-arrival"
table = "pms_reservation"
key = ["id"]
tenant = {{ column = "pms_property_id" }}
held = [{{ state = ["draft", "confirm"], overnight_room = true }}]
confirmed = [{{ state = "onboard" }}]
cancelled = [{{ state = "cancel" }}]
due = {{ column = "checkin", kind = "date", zone = "{zone}" }}
fence = ["folio_id"]
expire = {{ set = {{ state = "arrival_delayed" }} }}
"""
TODAY = datetime(2026, 3, 10, tzinfo=UTC).date()


@pytest.mark.parametrize("zone", ["Europe/Madrid", "Pacific/Auckland"])
def test_an_arrival_is_delayed_when_the_hotels_day_is_over(stage: Stage, zone: str) -> None:
    stage.host.script(TABLES)
    stage.attach(RULE.format(zone=zone))
    players = cast()
    days = {"future": TODAY + timedelta(days=1), "no due": None}
    stage.host.insert(
        "pms_reservation",
        [
            {
                "id": number,
                "state": "confirm" if number % 3 else "draft",
                "checkin": None if days.get(kind, TODAY) is None else str(days.get(kind, TODAY)),
                "checkout": str(TODAY + timedelta(days=3)),
                "overnight_room": True,
                "pms_property_id": number % 3,
                "folio_id": number,
            }
            for number, kind in players.items()
        ],
    )
    midnight = datetime(2026, 3, 11, tzinfo=zone_info(zone)).astimezone(UTC)
    stage.clock.instant = midnight - timedelta(microseconds=1)
    assert stage.scan().new_count == 0
    stage.clock.instant = midnight
    stage.scan()
    run, table = stage.host.run, "pms_reservation"
    run(f"delete from {table} where id in ({marks(of(players, 'gone'))})")
    run(f"update {table} set state = 'onboard' where id in ({marks(of(players, 'confirmed'))})")
    run(f"update {table} set state = 'cancel' where id in ({marks(of(players, 'cancelled'))})")
    moved = f"update {table} set checkin = '{TODAY + timedelta(days=1)}'"
    run(f"{moved} where id in ({marks(of(players, 'renewed'))})")
    run(f"{moved}, folio_id = 0 where id in ({marks(of(players, 'taken over'))})")
    stage.drain()
    check_ends(stage, {str(number): kind for number, kind in players.items()})
    late = run(f"select id from {table} where state = 'arrival_delayed' order by id")
    assert [row[0] for row in late] == of(players, "expired")
    assert stage.audit() == {}
    rest(stage)
