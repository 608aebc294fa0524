"""Why: one plain sentence for every place in which a hold can be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.application.why import Why, hold_key_of, why
from freehold.domain.errors import UsageError
from freehold.domain.forwards import ForwardState, TargetKind
from freehold.domain.retries import FailureClass
from freehold.domain.rules import TableName
from freehold.ports.relay import Handed
from tests.insight.shop import CART, Shop

if TYPE_CHECKING:
    from freehold.domain.rules import Rule


def explained(shop: Shop, key: str, rule: Rule | None = None) -> Why:
    """Explain one hold under one rule."""
    with shop.ledger() as ledger:
        (found,) = why(ledger, [rule or shop.rule], key)
    return found


def test_a_released_hold_tells_its_story_in_order(every_shop: Shop) -> None:
    found = explained(every_shop, "1")
    assert found.answer.startswith("It was released on ")
    assert found.answer.endswith("(status is expired).")
    assert [one.what.partition(",")[0] for one in found.happened] == [
        "found due",
        "expired",
        "event hold.expired.v1 written",
    ]


def test_a_renewed_hold_says_when_it_is_due(shop: Shop) -> None:
    answer = explained(shop, "4").answer
    assert "skipped: renewed" in answer
    assert "not due yet: it is released from 2200-01-01 00:00:00 UTC" in answer


def test_a_ready_hold_waits_for_a_worker(shop: Shop) -> None:
    assert "the next worker takes it" in explained(shop, "8").answer


def test_a_hold_that_is_not_due_says_when(shop: Shop) -> None:
    assert "It is not due yet" in explained(shop, "9").answer


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        ("delete from {s}operation", "no scan has reached it yet"),
        ("update {s}rule_state set condition = 'paused', reason = 'away'", "rule is paused (away)"),
        ("update {s}rule_state set condition = 'waiting', reason = 'many'", "waits to be attached"),
        ("delete from {s}rule_state", "the rule was never attached"),
        ("update res set status = 'paid' where id = 8; delete from {s}operation", "status is paid"),
        ("update {s}operation set state = 'discarded', reason = 'ann'", "set it aside (ann)"),
        (
            (
                "update {s}operation set state = 'dead', reason = 'x', attempt = 6, failure_class ="
                " 'broken', failure_code = '23514', failure_message = 'seat 8 is closed'"
            ),
            "all 6 attempts failed (seat 8 is closed), and it waits in review",
        ),
        (
            (
                "update {s}operation set state = 'deferred', reason = 'busy',"
                " available_at = '2999-01-01T00:00:00.000000Z'"
            ),
            "the host has its row locked",
        ),
        (
            (
                "update {s}operation set state = 'retrying', attempt = 2, reason = 'transient',"
                " available_at = '2999-01-01T00:00:00.000000Z'"
            ),
            "Attempt 2 failed (transient); it is tried again in",
        ),
        (
            (
                "update {s}operation set state = 'leased', lease_token = 1,"
                " leased_until = '2999-01-01T00:00:00.000000Z'"
            ),
            "a worker has it in hand",
        ),
        ("update res set hold_until = null; delete from {s}operation", "on_empty says never"),
        ("drop table res; delete from {s}operation where id < 0", "the next worker takes it"),
    ],
)
def test_an_answer_names_the_reason(shop: Shop, statement: str, answer: str) -> None:
    shop.run(*statement.split("; "))
    assert answer in explained(shop, "8").answer


def test_attempts_and_acts_are_told(shop: Shop) -> None:
    shop.run(
        "insert into {s}attempt (operation_id, attempt, failure_class, failure_code,"
        " failure_message, failed_at) select id, 1, 'broken', '23514', 'closed', found_at"
        " from {s}operation where hold_key = '8'",
        "update {s}action set subject = (select rule || ':' || digest from {s}operation"
        " where hold_key = '8') where action = 'pause'",
    )
    told = [one.what for one in explained(shop, "8").happened]
    assert "attempt 1 failed, broken: closed [23514]" in told
    assert "ann: pause, because because" in told


@pytest.mark.parametrize("key", ["77", "nobody", "a,b", '["1"]', ""])
def test_an_unknown_key_is_one_sentence(shop: Shop, key: str) -> None:
    with pytest.raises(UsageError, match=r"There is no hold with the key"):
        explained(shop, key)


def test_a_key_that_is_too_short_is_told_how_to_write_it(shop: Shop) -> None:
    pair = replace(CART, name="pair", key=("room", "night"))
    with shop.ledger() as ledger:
        with pytest.raises(UsageError) as alone:
            why(ledger, [pair], "H1")
        with pytest.raises(UsageError) as beside:
            why(ledger, [shop.rule, pair], "H1")
    cure = "write room,night with their values, or a JSON list if a value has a comma."
    assert str(alone.value) == f"A key of pair has 2 columns: {cure}"
    assert str(beside.value) == (
        "There is no hold with the key 'H1', now or in the records (cart). "
        f"A key of pair has 2 columns: {cure}"
    )


def test_a_key_of_two_columns_may_be_typed_plainly() -> None:
    two = replace(CART, key=("room", "night"))
    assert hold_key_of(two, "12,2026-03-10") == '["12","2026-03-10"]'
    assert hold_key_of(two, '["12", "a,b"]') == '["12","a,b"]'
    assert hold_key_of(two, "12") is None
    assert hold_key_of(CART, "a,b") == "a,b"


def test_a_key_of_two_columns_is_found(shop: Shop) -> None:
    shop.run(
        "create table seat (room varchar(9), place integer, status text, token text,"
        " tenant text, hold_until timestamp, primary key (room, place))",
        "insert into seat values ('A', 7, 'held', 'k', 't', '2200-01-01 00:00:00')",
    )
    seats = replace(CART, name="seats", table=TableName("seat"), key=("room", "place"))
    assert "not due yet" in explained(shop, "A,7", seats).answer


def test_a_rule_that_does_not_know_the_key_is_left_out(shop: Shop) -> None:
    later = replace(CART, name="later", due=replace(CART.due, grace=timedelta(days=1)))
    with shop.ledger() as ledger:
        found = why(ledger, [CART, later, replace(CART, name="pair", key=("id", "tenant"))], "9")
    assert [one.rule for one in found] == ["cart", "later"]


def test_each_target_tells_what_became_of_an_event(shop: Shop) -> None:
    with shop.ledger() as ledger, ledger.transaction() as tx:
        kinds = [(name, TargetKind.WEBHOOK) for name in ("a", "b", "c", "d", "e")]
        tx.relay.follow_targets(kinds)
    shop.run("update {s}outbox set state = 'pending' where hold_key = '1'")
    with shop.ledger() as ledger, ledger.transaction() as tx:
        (head,) = tx.relay.claim_unrouted(9)
        tx.relay.route([head], [(head.id, name) for name, _ in kinds])
        first = {name: tx.relay.claim(name, 9, timedelta(minutes=1))[0] for name in "abcd"}
        why_not = (FailureClass.TRANSIENT, "503", "busy")
        later = tx.now + timedelta(hours=1)
        tx.relay.settle(
            [
                Handed(first["a"], ForwardState.DELIVERED),
                Handed(first["b"], ForwardState.DEAD, None, *why_not),
                Handed(first["c"], ForwardState.RETRYING, later, *why_not),
                Handed(first["d"], ForwardState.READY),
            ]
        )
        tx.relay.pause("d", "moving", by="ann")
        tx.relay.follow_targets(kinds[:4])
    told = [one.what for one in explained(shop, "1").happened if one.what.startswith("event ")]
    name = f"event {head.id}"
    assert told[0] == "event hold.expired.v1 written, pending"
    failed = [f"{name} failed to reach {one} at attempt 1, transient: busy [503]" for one in "bc"]
    assert sorted(told[1:]) == sorted(
        [
            *failed,
            f"{name} arrived at a, at attempt 1",
            f"{name} is dead at b: busy",
            f"{name} waits for c until {later:%Y-%m-%d %H:%M:%S} UTC, after attempt 1",
            f"{name} waits for d, which is paused by ann: moving",
            f"{name} waits for e, which is not configured any more",
        ]
    )
