"""A selected slot: quoted mixed case, naive UTC in milliseconds, under a unique constraint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.mapping.play import LATER, cast, due_of, marks, of, play, rest
from tests.stage import NOON, wall

if TYPE_CHECKING:
    from datetime import datetime

    from tests.stage import Stage

TABLES = """
create table "SelectedSlots" (
    id integer primary key, "eventTypeId" integer not null, "userId" integer not null,
    "slotUtcStartDate" {stamp} not null, "slotUtcEndDate" {stamp} not null, uid text not null,
    "releaseAt" {stamp} not null, "isSeat" boolean not null,
    unique ("userId", "slotUtcStartDate", "slotUtcEndDate", uid));
create index "slots by release" on "SelectedSlots" ("releaseAt");
"""
RULE = """
[[rules]]
name = "calcom-slot"
table = '{table}'
key = ["id"]
tenant = {{ column = "userId" }}
due = {{ column = "releaseAt", kind = "naive", zone = "UTC" }}
fence = ["uid"]
expire = {{ delete = true }}
carry = ["eventTypeId", "isSeat"]
"""


def stamp(stage: Stage, instant: datetime) -> str:
    """Write milliseconds, on SQLite as its text columns hold them in this product."""
    text = wall(instant)[:-3]
    return text.replace(" ", "T") if stage.dialect == "sqlite" else text


def slot(stage: Stage, number: int, due_at: datetime, **more: Any) -> dict[str, Any]:
    start = stamp(stage, NOON)
    row = {
        "id": number,
        "eventTypeId": number % 7,
        "userId": number // 10,
        "slotUtcStartDate": start,
        "slotUtcEndDate": start,
        "uid": f"browser {number}",
        "releaseAt": stamp(stage, due_at),
        "isSeat": number % 2 == 0,
    }
    return {**row, **more}


def test_a_slot_is_released_and_may_be_selected_again(stage: Stage) -> None:
    sqlite = stage.dialect == "sqlite"
    stage.host.script(TABLES.format(stamp="text" if sqlite else "timestamp(3)"))
    stage.attach(RULE.format(table='"SelectedSlots"' if sqlite else 'public."SelectedSlots"'))
    players = cast("confirmed", "cancelled", "no due")
    dues = {number: due_of(players, number) for number in players}
    stage.host.insert(
        '"SelectedSlots"', [slot(stage, number, due) for number, due in dues.items() if due]
    )

    def meanwhile() -> None:
        later = stamp(stage, LATER)
        run = stage.host.run
        run(f'delete from "SelectedSlots" where id in ({marks(of(players, "gone"))})')
        update = f'update "SelectedSlots" set "releaseAt" = \'{later}\''
        run(f"{update} where id in ({marks(of(players, 'renewed'))})")
        taken = marks(of(players, "taken over"))
        run(f"{update}, uid = 'other ' || id where id in ({taken})")

    play(stage, players, str, meanwhile)
    left = of(players, "renewed", "taken over", "future")
    found = stage.host.run('select id from "SelectedSlots" order by id')
    assert [row[0] for row in found] == left
    free = of(players, "expired")[0]
    again = slot(stage, 9_000, LATER) | {"userId": free // 10, "uid": f"browser {free}"}
    stage.host.insert('"SelectedSlots"', [again])
    rest(stage)
