"""An order with a text status, a naive nullable due and a soft delete; its stock counts go back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.mapping.play import LATER, cast, due_of, marks, of, play
from tests.stage import NOON, wall

if TYPE_CHECKING:
    from tests.stage import Stage

TABLES = """
create table orders (
    id bigint primary key, event_id integer not null, status varchar(40) not null,
    payment_status varchar(40), reserved_until {due}, session_id varchar(40),
    public_id varchar(40) unique, deleted_at {due});
create index orders_due on orders (event_id, status, reserved_until, deleted_at);
create table products (id bigint primary key, held integer not null check (held >= 0));
create table order_items (
    id bigint primary key, order_id bigint not null references orders (id),
    product_id bigint not null references products (id), quantity integer not null);
create index order_items_order on order_items (order_id);
"""
RULE = """
[[rules]]
name = "hi-order"
table = "orders"
key = ["id"]
tenant = { column = "event_id" }
held = [{ status = "RESERVED", deleted_at = { is = "null" } }]
confirmed = [{ status = "COMPLETED" }]
cancelled = [{ status = "CANCELLED" }, { deleted_at = { is = "not null" } }]
due = { column = "reserved_until", kind = "naive", zone = "UTC" }
fence = ["session_id"]
expire = { set = { status = "ABANDONED", payment_status = { null = true } } }
[[rules.also]]
sql = '''
update products set held = held - (
    select quantity from order_items where order_id = :id and product_id = products.id)
where id in (select product_id from order_items where order_id = :id)'''
rows = "1-2"
"""


def fill(stage: Stage, players: dict[int, str]) -> None:
    orders, items = [], []
    for number in players:
        due_at = due_of(players, number)
        orders.append(
            {
                "id": number,
                "event_id": number % 4,
                "status": "RESERVED",
                "payment_status": "AWAITING",
                "reserved_until": None if due_at is None else wall(due_at)[:19],
                "session_id": f"s{number}",
                "public_id": f"o_{number}",
                "deleted_at": None,
            }
        )
        items += [
            {"id": 2 * number + n, "order_id": number, "product_id": n, "quantity": number % 3 + 1}
            for n in range(number % 2 + 1)
        ]
    stage.host.insert("products", [{"id": n, "held": held(items, n)} for n in range(2)])
    stage.host.insert("orders", orders)
    stage.host.insert("order_items", items)


def held(items: list[dict[str, int]], product: int) -> int:
    return sum(item["quantity"] for item in items if item["product_id"] == product)


def test_an_order_is_abandoned_and_its_counts_return(stage: Stage) -> None:
    stage.host.script(
        TABLES.format(due="timestamp" if stage.dialect == "sqlite" else "timestamp(0)")
    )
    stage.attach(RULE)
    players = cast()
    fill(stage, players)

    def meanwhile() -> None:
        run = stage.host.run
        gone = marks(of(players, "gone"))
        run(f"delete from order_items where order_id in ({gone})")
        run(f"delete from orders where id in ({gone})")
        run(
            f"update orders set status = 'COMPLETED' where id in ({marks(of(players, 'confirmed'))})"
        )
        away = of(players, "cancelled")
        run(f"update orders set status = 'CANCELLED' where id in ({marks(away[::2])})")
        run(f"update orders set deleted_at = '{wall(NOON)[:19]}' where id in ({marks(away[1::2])})")
        later = f"update orders set reserved_until = '{wall(LATER)[:19]}'"
        run(f"{later} where id in ({marks(of(players, 'renewed'))})")
        run(f"{later}, session_id = 'x' where id in ({marks(of(players, 'taken over'))})")

    before: dict[int, int] = dict(stage.host.run("select id, held from products"))
    play(stage, players, str, meanwhile)
    over = stage.host.run(
        "select id from orders where status = 'ABANDONED' and payment_status is null order by id"
    )
    assert [row[0] for row in over] == of(players, "expired")
    waiting = stage.host.run(
        "select count(*) from orders where status = 'RESERVED' and deleted_at is null"
    )
    assert waiting == [(len(of(players, "renewed", "taken over", "future", "no due")),)]
    returned = stage.host.run(
        "select product_id, sum(quantity) from order_items i join orders o on o.id = i.order_id "
        "where o.status = 'ABANDONED' group by 1"
    )
    after: dict[int, int] = dict(stage.host.run("select id, held from products"))
    assert {product: before[product] - after[product] for product in after} == dict(returned)
