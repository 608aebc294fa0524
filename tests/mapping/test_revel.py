"""A seat hold that the next buyer takes over in place, under a unique seat and one owner of two."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from tests.mapping.play import LATER, cast, due_of, marks, of, play, rest
from tests.stage import wall

if TYPE_CHECKING:
    from datetime import datetime

    from tests.stage import Stage

TABLES = """
create table events_seathold (
    id {uuid} primary key, event_id integer not null, seat_id integer not null, user_id integer,
    guest_session varchar(64) not null default '', acquired_at {instant} not null,
    expires_at {instant} not null, unique (event_id, seat_id),
    check ((user_id is null) <> (guest_session = '')));
create index seathold_expires on events_seathold (expires_at);
"""
RULE = """
[[rules]]
name = "revel-seat"
table = "events_seathold"
key = ["id"]
tenant = {{ column = "event_id" }}
due = {{ column = "expires_at", {due} }}
fence = ["user_id", "guest_session"]
expire = {{ delete = true }}
carry = ["seat_id"]
"""


def key(number: int) -> str:
    return str(UUID(int=number * 7_919))


def fill(stage: Stage, players: dict[int, str], seat: dict[int, int]) -> None:
    rows = []
    for number in players:
        due_at = due_of(players, number)
        assert due_at is not None
        rows.append(
            {
                "id": key(number),
                "event_id": 3,
                "seat_id": seat[number],
                "user_id": None if number % 2 else number,
                "guest_session": f"guest {number}" if number % 2 else "",
                "acquired_at": instant(stage, due_at),
                "expires_at": instant(stage, due_at),
            }
        )
    stage.host.insert("events_seathold", rows)


def instant(stage: Stage, at: datetime) -> str:
    return wall(at) if stage.dialect == "sqlite" else wall(at) + "+00"


def take(stage: Stage, place: int, name: str) -> None:
    """Take a seat as the product does: insert, or take the lapsed row over."""
    stage.host.run(
        "insert into events_seathold values "
        "(:id, 3, :seat, null, 'next buyer', :at, :at) on conflict (event_id, seat_id) do update "
        "set user_id = null, guest_session = excluded.guest_session, "
        "expires_at = excluded.expires_at",
        id=name,
        seat=place,
        at=instant(stage, LATER),
    )


def test_a_seat_taken_over_in_place_is_not_released(stage: Stage) -> None:
    sqlite = stage.dialect == "sqlite"
    due = 'kind = "naive", zone = "UTC"' if sqlite else 'kind = "timestamptz"'
    kinds = ("char(36)", "timestamp") if sqlite else ("uuid", "timestamptz")
    stage.host.script(TABLES.format(uuid=kinds[0], instant=kinds[1]))
    stage.attach(RULE.format(due=due))
    players = cast("confirmed", "cancelled", "no due")
    seat = {number: place for place, number in enumerate(players)}
    fill(stage, players, seat)

    def seats(kind: str) -> str:
        return marks([seat[number] for number in of(players, kind)])

    def meanwhile() -> None:
        run, later = stage.host.run, instant(stage, LATER)
        run(f"delete from events_seathold where seat_id in ({seats('gone')})")
        renewed = seats("renewed")
        run(f"update events_seathold set expires_at = '{later}' where seat_id in ({renewed})")
        for number in of(players, "taken over"):
            take(stage, seat[number], key(50_000 + number))

    play(stage, players, key, meanwhile)
    left = stage.host.run(
        "select seat_id, guest_session = 'next buyer' from events_seathold order by 1"
    )
    kept = of(players, "renewed", "taken over", "future")
    wanted = sorted((seat[number], players[number] == "taken over") for number in kept)
    assert [(place, bool(next_buyer)) for place, next_buyer in left] == wanted
    for number in of(players, "expired")[:10]:
        take(stage, seat[number], key(90_000 + number))
    rest(stage)
    assert stage.host.run("select count(*) from events_seathold") == [(len(kept) + 10,)]
