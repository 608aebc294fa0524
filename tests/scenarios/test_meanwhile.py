"""Group three: renewed, paid or changed between the scan and the release."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from freehold import holds
from freehold.domain.errors import DatabaseBusy
from freehold.ports.system import Boundary
from tests.holds.hotel import desk_at, empty, host_of, prepare
from tests.scenarios.shop import CART, GIVE_BACK, At, add, free, held, open_shop, statuses
from tests.stage import NOON, wall

if TYPE_CHECKING:
    from tests.stage import Stage

LATER = wall(NOON + timedelta(minutes=25))
UNPAID = CART.replace('[{ status = "held" }]', '[{ status = "held", paid_at = { is = "null" } }]')
PAID_MARK = UNPAID.replace('[{ status = "paid" }]', '[{ paid_at = { is = "not null" } }]')


def test_b29_a_paid_mark_saves_a_hold_whose_status_was_never_written(stage: Stage) -> None:
    """Paid before the scan, and paid between scan and release: both stay."""
    open_shop(stage, PAID_MARK)
    add(stage, held(1, paid_at=wall(NOON)), held(2), held(3))
    stage.scan()
    stage.host.run("update hold set paid_at = :at where id = 2", at=wall(NOON))
    stage.drain()
    assert statuses(stage) == {1: "held", 2: "held", 3: "expired"}
    assert stage.ends() == {"confirmed": 1, "expired": 1}
    assert stage.ended("confirmed") == ["2"]


CHANGES = {
    "confirmed": "update hold set status = 'paid' where id = 2",
    "cancelled": "update hold set status = 'cancelled' where id = 2",
    "already expired": "update hold set status = 'expired' where id = 2",
    "no longer held": "update hold set status = 'on stage' where id = 2",
    "gone": "delete from hold where id = 2",
    "renewed": f"update hold set due_at = '{LATER}' where id = 2",
    "taken over": "update hold set token = 'another' where id = 2",
}


@pytest.mark.parametrize("reason", CHANGES)
def test_b30_what_changed_after_the_query_is_a_skip_with_its_reason(
    stage: Stage, reason: str
) -> None:
    open_shop(stage)
    add(stage, held(1), held(2), held(3))
    stage.scan()
    stage.host.run(CHANGES[reason])
    before = stage.host.run("select * from hold where id = 2")
    stage.work()
    assert stage.ends() == {"expired": 2, reason: 1}
    assert stage.ended(reason) == ["2"]
    assert stage.host.run("select * from hold where id = 2") == before
    assert stage.events() == ["1", "3"]
    assert stage.open() == {}


def test_b31_the_release_repeats_the_whole_predicate(stage: Stage) -> None:
    """What a scan saw is only a hint, however old; every row may have moved on since."""
    open_shop(stage)
    add(stage, *[held(n) for n in range(1, 21)])
    stage.scan()
    stage.advance(minutes=5)
    stage.host.run("update hold set status = 'paid' where id % 2 = 0")
    stage.work()
    found = statuses(stage)
    assert all(found[n] == ("paid" if n % 2 == 0 else "expired") for n in found)
    assert stage.ends() == {"expired": 10, "confirmed": 10}


def test_b32_a_late_expiry_does_not_touch_the_next_buyer(stage: Stage) -> None:
    open_shop(stage, CART + GIVE_BACK)
    add(stage, held(7, token="a"))
    stage.scan()
    stage.host.run(f"update hold set token = 'b', due_at = '{LATER}' where id = 7")
    before = stage.digest()["public.hold" if stage.dialect == "postgres" else '"hold"']
    for _ in range(2):
        stage.drain()
    after = stage.digest()["public.hold" if stage.dialect == "postgres" else '"hold"']
    assert after == before
    assert stage.ends() == {"taken over": 1}
    assert (stage.events(), free(stage)) == ([], 0)


@pytest.mark.parametrize("due_at", [LATER, wall(NOON - timedelta(minutes=1))])
def test_n1_a_seat_taken_over_in_place_stays_with_its_new_owner(stage: Stage, due_at: str) -> None:
    """Even when the new owner's hold has the old one's due: the token tells them apart."""
    open_shop(stage)
    add(stage, held(7, token="a"))
    stage.scan()
    stage.host.run(
        "insert into hold (id, status, token, due_at, qty) values (7, 'held', 'b', :due_at, 1) "
        "on conflict (id) do update set token = excluded.token, due_at = excluded.due_at",
        due_at=due_at,
    )
    worker = stage.worker()
    worker.work(stage.rules[0])
    worker.work(stage.rules[0])
    assert stage.ends() == {"taken over": 1}
    assert stage.host.run("select status, token from hold") == [("held", "b")]


def lock_and_pay(stage: Stage) -> object:
    """Let the host pay row 2 in a transaction that it leaves open."""
    door = stage.door()
    door.connection.execute("begin" if stage.dialect == "postgres" else "begin immediate")
    door.connection.execute("update hold set status = 'paid' where id = 2")
    return door.connection


def work_while_locked(stage: Stage) -> None:
    """Work beside the host's lock: PostgreSQL passes the row over, SQLite waits for its turn."""
    if stage.dialect == "postgres":
        stage.work()
        assert statuses(stage) == {1: "expired", 2: "held", 3: "expired"}
        assert stage.open() == {"deferred": 1}
        reason = stage.host.run("select reason, attempt from freehold.operation")
        assert reason == [("busy", 0)]
    else:
        with pytest.raises(DatabaseBusy):
            stage.work()


@pytest.mark.parametrize(("ending", "status"), [("commit", "paid"), ("rollback", "expired")])
def test_n3_a_payment_in_the_same_instant_wins_or_never_was(
    stage: Stage, ending: str, status: str
) -> None:
    open_shop(stage)
    add(stage, held(1), held(2), held(3))
    stage.scan()
    connection = lock_and_pay(stage)
    work_while_locked(stage)
    connection.execute(ending)  # type: ignore[attr-defined]
    stage.advance(seconds=1)
    stage.drain()
    assert statuses(stage) == {1: "expired", 2: status, 3: "expired"}
    assert stage.ended().count("2") == (1 if status == "expired" else 0)
    assert stage.ends().total() == 3
    assert stage.audit() == {}


def test_b34_a_hold_renewed_before_the_write_lives_until_its_new_due(stage: Stage) -> None:
    open_shop(stage)
    add(stage, held(1))
    stage.scan()
    stage.host.run(f"update hold set due_at = '{LATER}' where id = 1")
    stage.drain()
    assert stage.ends() == {"renewed": 1}
    stage.clock.instant = NOON + timedelta(minutes=25)
    stage.drain()
    assert stage.ends() == {"renewed": 1, "expired": 1}
    assert statuses(stage) == {1: "expired"}


def test_b35_activity_counts_only_where_it_moves_the_due_column(stage: Stage) -> None:
    open_shop(stage)
    stage.host.script("alter table hold add column updated_at timestamp")
    add(stage, held(1), held(2))
    stage.scan()
    stage.host.run("update hold set updated_at = :at", at=wall(NOON))
    stage.host.run(f"update hold set due_at = '{LATER}' where id = 2")
    stage.drain()
    assert statuses(stage) == {1: "expired", 2: "held"}


def test_b38_a_late_payment_learns_what_was_lost(stage: Stage) -> None:
    """The event carries token, due and the columns asked for: enough to hold again or refund."""
    open_shop(stage)
    add(stage, held(1, token="a", qty=3))
    stage.drain()
    tokens, carry, due_at = stage.host.run(
        f"select tokens, carry, due_at from {stage.prefix}outbox"
    )[0]
    assert as_json(tokens) == {"token": "a"}
    assert as_json(carry) == {"stock_id": "1", "qty": "3"}
    assert "11:59" in str(due_at)


def as_json(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


CONFIRM = "update hold set status = 'paid' where id = 1 and status = 'held' and token = :token"


def test_n4_a_confirmation_after_the_expiry_changes_nothing(stage: Stage) -> None:
    open_shop(stage)
    add(stage, held(1, token="a"))
    stage.drain()
    assert stage.host.count(CONFIRM, token="a") == 0
    stage.advance(hours=1)
    stage.drain()
    assert statuses(stage) == {1: "expired"}
    assert stage.events() == ["1"]


def test_b39_an_old_token_confirms_nothing_after_the_seat_went_on(stage: Stage) -> None:
    open_shop(stage)
    add(stage, held(1, token="a"))
    stage.drain()
    stage.host.run(f"update hold set status = 'held', token = 'b', due_at = '{LATER}' where id = 1")
    assert stage.host.count(CONFIRM, token="a") == 0
    assert stage.host.count(CONFIRM, token="b") == 1


def test_b39_a_checkout_asks_whether_its_hold_still_holds(database_url: str) -> None:
    prepare(database_url)
    empty(database_url)
    lapsed = desk_at(database_url, NOON - timedelta(days=3650)).grant(1, UUID(int=1)).hold
    in_time = desk_at(database_url, NOON + timedelta(days=36500)).grant(2, UUID(int=2)).hold
    with host_of(database_url) as checkout:
        assert holds.still_held(checkout, in_time.token)
        assert not holds.still_held(checkout, lapsed.token)
        with pytest.raises(holds.HoldLapsed):
            holds.confirm(checkout, lapsed.token)


def test_b40_an_exempt_row_is_exempt_in_scan_and_in_release(stage: Stage) -> None:
    open_shop(stage, CART.replace('status = "held"', 'status = "held", created_via = "checkout"'))
    add(stage, held(1), held(2, created_via="admin"), held(3), held(4, created_via=None))
    assert stage.scan().found_count == 2
    stage.host.run("update hold set created_via = 'admin' where id = 3")
    stage.drain()
    assert statuses(stage) == {1: "expired", 2: "held", 3: "held", 4: "held"}
    assert stage.ends() == {"expired": 1, "no longer held": 1}


def test_b40_another_value_of_a_held_row_is_not_the_same_hold(stage: Stage) -> None:
    """A row may go from one alternative of the predicate to another, and is looked at afresh."""
    either = 'status = "held", created_via = ["checkout", "app"]'
    open_shop(stage, CART.replace('status = "held"', either))
    add(stage, held(1))
    stage.scan()
    stage.host.run("update hold set created_via = 'app' where id = 1")
    stage.work()
    assert stage.ended("expired") == []
    stage.drain()
    assert statuses(stage) == {1: "expired"}


def test_b41_what_is_not_held_is_never_touched(stage: Stage) -> None:
    open_shop(stage)
    others = ["cart", "paid", "cancelled", "HELD", "held ", "hel", ""]
    add(stage, held(1), *[held(n, status=one) for n, one in enumerate(others, 2)])
    stage.drain()
    assert statuses(stage) == {1: "expired"} | dict(enumerate(others, 2))


def test_b30_a_payment_between_lock_and_write_cannot_slip_in(postgres_stage: Stage) -> None:
    """Once the row is locked the host waits; its payment then finds no hold."""
    stage = postgres_stage
    open_shop(stage)
    add(stage, held(1, token="t1"))
    seen: list[str] = []

    def pay() -> None:
        door = stage.door()
        door.connection.execute("set lock_timeout = '50ms'")
        try:
            door.run(CONFIRM, token="t1")
            seen.append("paid")
        except Exception as error:  # noqa: BLE001
            seen.append(type(error).__name__)

    stage.checkpoint = At(Boundary.HOLDS_LOCKED, pay)
    stage.drain()
    assert seen == ["LockNotAvailable"]
    assert stage.host.count(CONFIRM, token="t1") == 0
