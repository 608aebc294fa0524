"""Group six: side effects, tenants, and what can be proved afterwards."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from freehold.application.scan import Scanner
from freehold.ports.system import Boundary
from tests.scenarios.shop import (
    CART,
    GIVE_BACK,
    add,
    free,
    held,
    killed_at,
    open_shop,
    statuses,
)

if TYPE_CHECKING:
    from tests.stage import Stage


def test_b66_a_failure_takes_back_no_other_rows_status_and_repeats_no_event(stage: Stage) -> None:
    also = '[[rules.also]]\nsql = "update seat set sold = 0 where hold_id = :id"\nrows = "1"\n'
    open_shop(stage, CART + also)
    stage.host.script("create table seat (hold_id integer primary key, sold integer);")
    stage.host.insert("seat", [{"hold_id": n, "sold": 1} for n in range(1, 51) if n != 40])
    add(stage, *[held(n) for n in range(1, 51)])
    others = [str(n) for n in range(1, 51) if n != 40]
    for _ in range(8):
        stage.drain()
        assert stage.events() == others
        stage.advance(hours=1)
    assert statuses(stage)[40] == "held"


@pytest.mark.parametrize("action", ["{ delete = true }", '{ set = { status = "expired" } }'])
def test_b67_the_record_shows_what_was_held_even_when_the_row_is_gone(
    stage: Stage, action: str
) -> None:
    open_shop(stage, CART.replace('{ set = { status = "expired" } }', action))
    add(stage, held(1, token="über 'quoted'", qty=3, tenant_id=None))
    stage.drain()
    image, tenant = stage.host.run(f"select before_image, tenant from {stage.prefix}record")[0]
    image = json.loads(image) if isinstance(image, str) else image
    due = image.pop("due_at")
    assert due.startswith("2026-03-10 11:59:00")
    assert image == {
        "id": "1",
        "tenant_id": None,
        "status": "held",
        "token": "über 'quoted'",
        "stock_id": "1",
        "qty": "3",
    }
    assert tenant is None


def test_b69_a_hundred_ticks_about_one_hold_are_one_operation(stage: Stage) -> None:
    rule = open_shop(stage, CART + GIVE_BACK)
    add(stage, held(1))
    ledger = stage.ledger()
    scanners = [Scanner(ledger, stage.checkpoint) for _ in range(100)]
    assert sum(scanner.scan(rule).new_count for scanner in scanners) == 1
    stage.drain()
    assert (stage.ended(), stage.events(), free(stage)) == (["1"], ["1"], 1)


@pytest.mark.parametrize("boundary", [Boundary.RELEASED, Boundary.BEFORE_COMMIT])
def test_b70_no_event_and_no_count_without_a_commit(stage: Stage, boundary: Boundary) -> None:
    open_shop(stage)
    add(stage, held(1), held(2))
    stage.scan()
    stage.host.run("update hold set status = 'paid' where id = 2")
    assert killed_at(stage, boundary)
    assert stage.events() == []
    assert stage.host.run(f"select count(*) from {stage.prefix}tally") == [(0,)]
    stage.drain()
    assert stage.events() == ["1"]
    counted = stage.host.run(f"select sum(expired_count) from {stage.prefix}tally")
    assert int(counted[0][0]) == 1


def test_b73_a_row_with_an_odd_child_asks_a_person_and_nine_expire(stage: Stage) -> None:
    also = (
        "[[rules.also]]\nsql = \"update payment set state = 'void' "
        "where hold_id = :id and state in ('new', 'pending')\"\nrows = \"1\"\n"
    )
    open_shop(stage, CART + also)
    stage.host.script("create table payment (hold_id integer primary key, state varchar(9));")
    odd = [{"hold_id": n, "state": "odd" if n == 3 else "new"} for n in range(1, 11)]
    stage.host.insert("payment", odd)
    add(stage, *[held(n) for n in range(1, 11)])
    stage.drain()
    assert [n for n, status in statuses(stage).items() if status == "held"] == [3]
    for _ in range(6):
        stage.advance(hours=1)
        stage.drain()
    assert stage.open() == {"dead": 1}
    said = stage.host.run(f"select failure_message from {stage.prefix}operation")[0][0]
    assert "changed 0 rows" in said
    assert stage.audit() == {}
