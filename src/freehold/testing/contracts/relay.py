"""The contract of `ports.relay.Relay`: targets, their pauses, and the routing of events.

*Not here*: leases and what comes of them (`forwards`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from freehold.domain.events import cloud_event
from freehold.domain.forwards import EventHead, TargetKind
from freehold.ports.ledger import Ledger
from freehold.ports.relay import TargetState
from freehold.testing.contracts.ground import NOW, SECOND, Ground, only

LEASE = timedelta(seconds=60)
SHOP = ("shop", TargetKind.WEBHOOK)
BUS = ("bus", TargetKind.NATS)


class TargetsContract:
    """Give the fixture `ground`."""

    def test_the_known_targets_become_those_that_are_configured(self, ground: Ground) -> None:
        ledger = ground.open()
        assert follow(ledger, SHOP, BUS) == ["bus", "shop"]
        assert follow(ledger, SHOP, BUS) == []
        assert follow(ledger, ("shop", TargetKind.RABBITMQ)) == ["bus", "shop"]
        assert states(ledger) == [
            TargetState("bus", TargetKind.NATS, active=False),
            TargetState("shop", TargetKind.RABBITMQ, active=True),
        ]
        assert follow(ledger, BUS) == ["bus", "shop"]
        assert [one.active for one in states(ledger)] == [True, False]

    def test_events_wait_while_a_target_is_active(self, ground: Ground) -> None:
        ledger = ground.open()
        follow(ledger, SHOP)
        for targets, state in (([SHOP], "pending"), ([], "kept"), ([BUS], "pending")):
            follow(ledger, *targets)
            with ledger.transaction() as tx:
                pause_id = tx.relay.pause("shop", "why")
                assert pause_id is not None
                assert tx.relay.tell_paused(pause_id)
                assert tx.relay.resume("shop", "ann")
            assert ground.back.rows("outbox")[-1]["state"] == state

    def test_what_is_owed_to_a_target_that_left_stays(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1], SHOP)
        follow(ledger, BUS)
        assert only(ground.back.rows("forward"))["state"] == "ready"
        assert only(ground.back.rows("outbox"))["state"] == "pending"

    # ------------------------------------------------------------------------------- failures

    def test_failures_add_up_until_something_arrives(self, ground: Ground) -> None:
        ledger = ground.open()
        follow(ledger, SHOP, BUS)
        with ledger.transaction() as tx:
            first = tx.relay.note_failure("shop", 2, NOW + SECOND)
        ground.set_now(NOW + 5 * SECOND)
        with ledger.transaction() as tx:
            second = tx.relay.note_failure("shop", 1, None)
        assert (first.failing_since, first.failure_count, first.probe_at) == (NOW, 2, NOW + SECOND)
        assert (second.failing_since, second.failure_count, second.probe_at) == (NOW, 3, None)
        with ledger.transaction() as tx:
            tx.relay.note_success("shop")
            tx.relay.note_success("bus")
        assert [one.failure_count for one in states(ledger)] == [0, 0]
        assert [one.failing_since for one in states(ledger)] == [None, None]

    # --------------------------------------------------------------------------------- pauses

    def test_a_pause_stands_until_it_is_ended(self, ground: Ground) -> None:
        ledger = ground.open()
        follow(ledger, SHOP, BUS)
        until = NOW + 10 * SECOND
        with ledger.transaction() as tx:
            pause_id = tx.relay.pause("shop", "moving", by="ann", until=until)
            assert tx.relay.pause("shop", "again") is None
            tx.relay.note_failure("shop", 1, NOW)
        bus, shop = states(ledger)
        assert bus.pause_id is None
        assert (shop.pause_id, shop.pause_reason, shop.paused_by) == (pause_id, "moving", "ann")
        assert (shop.paused_at, shop.paused_until) == (NOW, until)
        assert (shop.is_paused(NOW), shop.is_paused(until)) == (True, False)
        with ledger.transaction() as tx:
            assert tx.relay.resume("shop", "bob")
            assert not tx.relay.resume("shop", "bob")
        assert states(ledger)[1] == TargetState("shop", TargetKind.WEBHOOK, active=True)
        row = only(ground.back.rows("target_pause"))
        assert (row["ended_at"], row["ended_by"]) == (NOW, "bob")
        with ledger.transaction() as tx:
            assert tx.relay.pause("shop", "once more") not in (None, pause_id)

    def test_a_pause_is_told_once(self, ground: Ground) -> None:
        ledger = ground.open()
        follow(ledger, SHOP, BUS)
        with ledger.transaction() as tx:
            pause_id = tx.relay.pause("shop", "gone: 410")
            assert pause_id is not None
            assert tx.relay.tell_paused(pause_id)
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            assert not tx.relay.tell_paused(pause_id)
            (head,) = tx.relay.claim_unrouted(9)
            tx.relay.route([head], [(head.id, "bus")])
            (forward,) = tx.relay.claim("bus", 9, LEASE)
        assert head == EventHead(forward.event_id, "target.paused.v1", "", None)
        event = forward.event
        assert only(ground.back.rows("outbox"))["operation_id"] == -pause_id
        assert (event.hold_key, event.due_at, event.at) == ("shop", NOW, NOW)
        assert event.carry == {"reason": "gone: 410"}
        assert '"source":"/freehold/targets/shop","subject":"shop"' in cloud_event(event)

    # -------------------------------------------------------------------------------- routing

    def test_waiting_events_come_oldest_first_and_once(self, ground: Ground) -> None:
        ledger = ground.open()
        follow(ledger, SHOP)
        for key in (3, 1, 2):
            ground.back.add_event(key)
        ground.back.add_event(4, state="kept")
        with ledger.transaction() as tx:
            found = tx.relay.claim_unrouted(2)
            assert found == [EventHead(key, "hold.expired.v1", "r", "t") for key in (1, 2)]
            assert tx.relay.route(found, [(key, "shop") for key in (1, 2)]) == 2
        with ledger.transaction() as tx:
            assert [one.id for one in tx.relay.claim_unrouted(9)] == [3]

    def test_what_another_transaction_routes_is_left_to_it(self, ground: Ground) -> None:
        if not ground.transactions_overlap():
            return
        one, two = ground.open(), ground.open()
        for key in (1, 2):
            ground.back.add_event(key)
        with one.transaction() as mine, two.transaction() as other:
            assert [event.id for event in mine.relay.claim_unrouted(1)] == [1]
            assert [event.id for event in other.relay.claim_unrouted(1)] == [2]

    def test_an_event_that_is_owed_to_nobody_is_published_at_once(self, ground: Ground) -> None:
        ledger = ground.open()
        follow(ledger, SHOP)
        for key in (1, 2):
            ground.back.add_event(key)
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            assert tx.relay.route(tx.relay.claim_unrouted(9), [(2, "shop")]) == 1
        first, second = ground.back.rows("outbox")
        assert (first["state"], first["published_at"]) == ("published", NOW + SECOND)
        assert (second["state"], second["published_at"]) == ("pending", None)

    def test_routing_again_leaves_what_is_there(self, ground: Ground) -> None:
        ledger = ground.open()
        heads = owe(ground, ledger, [1], SHOP)
        with ledger.transaction() as tx:
            tx.relay.claim("shop", 9, LEASE)
        with ledger.transaction() as tx:
            assert tx.relay.route(heads, [(1, "shop")]) == 0
            assert tx.relay.route([], []) == 0
        assert only(ground.back.rows("forward"))["state"] == "leased"


def follow(ledger: Ledger, *targets: tuple[str, TargetKind]) -> Sequence[str]:
    """Follow the configured targets, and commit."""
    with ledger.transaction() as tx:
        return tx.relay.follow_targets(targets)


def states(ledger: Ledger) -> Sequence[TargetState]:
    """Read how all targets stand."""
    with ledger.transaction() as tx:
        return tx.relay.targets()


def owe(
    ground: Ground, ledger: Ledger, keys: Sequence[int], *targets: tuple[str, TargetKind]
) -> Sequence[EventHead]:
    """Make events that are owed to all of these targets."""
    follow(ledger, *targets)
    for key in keys:
        ground.back.add_event(key)
    with ledger.transaction() as tx:
        heads = tx.relay.claim_unrouted(len(keys))
        owed = [(key, name) for key in keys for name, _ in targets]
        assert tx.relay.route(heads, owed) == len(owed)
    return heads


def forward_rows(ground: Ground, *columns: str) -> list[tuple[Any, ...]]:
    """Read columns of all forwards, in the order of events and targets."""
    return [tuple(row[name] for name in columns) for row in ground.back.rows("forward")]
