"""Reserved stock under a key of two columns, with a zero date as default; renewed by upsert."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.mapping.play import LATER, cast, due_of, marks, of, play
from tests.stage import NOON, wall

if TYPE_CHECKING:
    from tests.stage import Stage

TABLES = """
create table wp_wc_reserved_stock (
    order_id bigint not null, product_id bigint not null, stock_quantity double precision not null,
    "timestamp" timestamp not null, expires timestamp not null, primary key (order_id, product_id));
create index reserved_expires on wp_wc_reserved_stock (expires);
"""
RULE = """
[[rules]]
name = "woo-stock"
table = "wp_wc_reserved_stock"
key = ["order_id", "product_id"]
due = { column = "expires", kind = "naive", zone = "UTC" }
fence = ["stock_quantity"]
expire = { delete = true }
carry = ["stock_quantity"]
"""
PRODUCTS = 6


def key(number: int) -> str:
    order, product = divmod(number, PRODUCTS)
    return json.dumps([str(order), str(product)], separators=(",", ":"))


def of_numbers(numbers: list[int]) -> str:
    return f"order_id * {PRODUCTS} + product_id in ({marks(numbers)})"


def test_reserved_stock_ends_by_order_and_product(stage: Stage) -> None:
    stage.host.script(TABLES)
    stage.attach(RULE)
    players = cast("confirmed", "cancelled")
    zero = "0000-00-00 00:00:00" if stage.dialect == "sqlite" else "0001-01-01 00:00:00"

    def row(number: int, expires: str, quantity: float) -> dict[str, object]:
        order, product = divmod(number, PRODUCTS)
        return {
            "order_id": order,
            "product_id": product,
            "stock_quantity": quantity,
            "timestamp": wall(NOON)[:19],
            "expires": expires,
        }

    dues = {number: due_of(players, number) for number in players}
    stage.host.insert(
        "wp_wc_reserved_stock",
        [row(n, wall(due)[:19] if due else zero, 0.1 + n / 3) for n, due in dues.items()],
    )

    def upsert(number: int, quantity: float) -> None:
        stage.host.run(
            'insert into wp_wc_reserved_stock (order_id, product_id, stock_quantity, "timestamp", '
            "expires) values (:order_id, :product_id, :stock_quantity, :timestamp, :expires) "
            "on conflict (order_id, product_id) do update set expires = excluded.expires, "
            "stock_quantity = excluded.stock_quantity",
            **row(number, wall(LATER)[:19], quantity),
        )

    def meanwhile() -> None:
        stage.host.run(f"delete from wp_wc_reserved_stock where {of_numbers(of(players, 'gone'))}")
        for number in of(players, "renewed"):
            upsert(number, 0.1 + number / 3)
        for number in of(players, "taken over"):
            upsert(number, 9_000.25)

    play(stage, players, key, meanwhile)
    left = stage.host.run(
        f"select order_id * {PRODUCTS} + product_id from wp_wc_reserved_stock order by 1"
    )
    assert [one[0] for one in left] == of(players, "renewed", "taken over", "future", "no due")
    carried = stage.host.run(f"select carry from {stage.prefix}outbox")
    texts = [json.loads(one[0]) if isinstance(one[0], str) else one[0] for one in carried]
    wanted = {0.1 + number / 3 for number in of(players, "expired")}
    assert {float(text["stock_quantity"]) for text in texts} == wanted
