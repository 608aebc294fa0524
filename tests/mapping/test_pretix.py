"""A cart position: the row is the hold, add-on rows go before their parent, and all are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.mapping.play import LATER, cast, due_of, marks, of, play
from tests.stage import wall

if TYPE_CHECKING:
    from tests.stage import Stage

TABLES = """
create table pretixbase_cartposition (
    id bigint primary key, event_id integer not null, item_id integer not null,
    addon_to_id bigint references pretixbase_cartposition (id), cart_id varchar(255),
    "datetime" {instant} not null, expires {instant} not null);
create index position_expires on pretixbase_cartposition (expires) where addon_to_id is null;
create index position_addon on pretixbase_cartposition (addon_to_id);
"""
RULE = """
[[rules]]
name = "pretix-cart"
table = "pretixbase_cartposition"
key = ["id"]
tenant = {{ column = "event_id" }}
held = [{{ addon_to_id = {{ is = "null" }} }}]
due = {{ column = "expires", {due} }}
fence = ["cart_id"]
expire = {{ delete = true }}
carry = ["item_id"]
[[rules.also]]
sql = "delete from pretixbase_cartposition where addon_to_id = :id"
before = true
rows = "0-2"
lock_by = ":id"
"""


def test_add_ons_leave_before_their_position_and_nobody_else_does(stage: Stage) -> None:
    sqlite = stage.dialect == "sqlite"
    instant = "timestamp" if sqlite else "timestamptz"
    due = 'kind = "naive", zone = "UTC"' if sqlite else 'kind = "timestamptz"'
    mark = "" if sqlite else "+00"
    stage.host.script(TABLES.format(instant=instant))
    stage.attach(RULE.format(due=due))
    players = cast("confirmed", "cancelled", "no due")
    rows, addons = [], []
    for number in players:
        due_at = due_of(players, number)
        assert due_at is not None
        row = {
            "id": number,
            "event_id": number % 5,
            "item_id": 7,
            "addon_to_id": None,
            "cart_id": f"cart {number}@é",
            "datetime": wall(due_at) + mark,
            "expires": wall(due_at) + mark,
        }
        rows.append(row)
        addons += [
            {**row, "id": 10_000 + 2 * number + n, "addon_to_id": number} for n in range(number % 3)
        ]
    stage.host.insert("pretixbase_cartposition", rows)
    stage.host.insert("pretixbase_cartposition", addons)

    def meanwhile() -> None:
        gone, table = marks(of(players, "gone")), "pretixbase_cartposition"
        stage.host.run(f"delete from {table} where addon_to_id in ({gone})")
        stage.host.run(f"delete from {table} where id in ({gone})")
        later = wall(LATER) + mark
        renewed = marks(of(players, "renewed"))
        stage.host.run(f"update {table} set expires = '{later}' where id in ({renewed})")
        taken = marks(of(players, "taken over"))
        stage.host.run(
            f"update {table} set cart_id = 'merged', expires = '{later}' where id in ({taken})"
        )

    play(stage, players, str, meanwhile)
    left = of(players, "renewed", "taken over", "future")
    parents = "select id from pretixbase_cartposition where addon_to_id is null order by id"
    assert [row[0] for row in stage.host.run(parents)] == left
    children = "select count(*) from pretixbase_cartposition where addon_to_id is not null"
    assert stage.host.run(children) == [(sum(number % 3 for number in left),)]
