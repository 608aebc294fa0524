"""The contract of `ports.retention.Retention`, as far as it is about targets and queues."""

from __future__ import annotations

from freehold.domain.messages import read_message
from freehold.ports.retention import Subject
from freehold.ports.strays import DeliveryCounts
from freehold.testing.contracts.forwards import claim, delivered, failed, settle
from freehold.testing.contracts.ground import NOW, SECOND, Ground
from freehold.testing.contracts.relay import BUS, SHOP, follow, owe
from freehold.testing.contracts.retention import DAY, LATER, count, prune_all


class RelayRetentionContract:
    """Give the fixture `ground`."""

    def test_with_an_event_goes_what_was_owed_of_it(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2, 3], SHOP, BUS)
        ground.back.add_event(4, state="kept")
        settle(ledger, *map(delivered, claim(ledger, "bus")))
        settle(ledger, *(failed(one, NOW) for one in claim(ledger, "shop")))
        settle(ledger, *map(delivered, claim(ledger, "shop", limit=2)))
        assert prune_all(ledger, Subject.EVENTS, NOW, limit=2) == 0
        ground.set_now(LATER)
        assert count(ledger, Subject.EVENTS, LATER) == 3
        assert prune_all(ledger, Subject.EVENTS, LATER, limit=2) == 3
        assert [row["id"] for row in ground.back.rows("outbox")] == [3]
        assert {row["event_id"] for row in ground.back.rows("forward")} == {3}
        assert [row["event_id"] for row in ground.back.rows("forward_attempt")] == [3]

    def test_an_event_that_a_target_is_owed_or_dead_for_stays(self, ground: Ground) -> None:
        """Also one that was published and is told again to somebody."""
        ledger = ground.open()
        states = ("ready", "retrying", "dead", "discarded", "delivered")
        owe(ground, ledger, range(1, 6), SHOP)
        settle(ledger, *map(delivered, claim(ledger)))
        for key, state in enumerate(states, 1):
            ground.back.put_forward(key, state)
        ground.set_now(LATER)
        assert count(ledger, Subject.EVENTS, LATER) == 2
        assert prune_all(ledger, Subject.EVENTS, LATER) == 2
        assert [row["state"] for row in ground.back.rows("forward")] == list(states[:3])

    def test_pauses_of_targets_go_once_they_ended(self, ground: Ground) -> None:
        ledger = ground.open()
        follow(ledger, SHOP, BUS)
        with ledger.transaction() as tx:
            tx.relay.pause("shop", "why")
            tx.relay.pause("bus", "why")
            tx.relay.resume("shop", "ann")
        ground.set_now(LATER)
        assert count(ledger, Subject.TARGET_PAUSES, LATER) == 1
        assert prune_all(ledger, Subject.TARGET_PAUSES, NOW, limit=1) == 0
        assert prune_all(ledger, Subject.TARGET_PAUSES, LATER, limit=1) == 1
        assert [row["target"] for row in ground.back.rows("target_pause")] == ["bus"]

    def test_strays_go_once_a_person_discarded_them(self, ground: Ground) -> None:
        ledger = ground.open()
        payloads = [read_message(text) for text in (b"a", b"b")]
        with ledger.transaction() as tx:
            tx.strays.record("q", payloads)  # type: ignore[arg-type]
            first, second = tx.strays.open(0, 9)
            tx.strays.discard([first.id])
        assert count(ledger, Subject.STRAYS, LATER) == 1
        assert prune_all(ledger, Subject.STRAYS, NOW, limit=1) == 0
        assert prune_all(ledger, Subject.STRAYS, LATER, limit=1) == 1
        assert [row["id"] for row in ground.back.rows("stray")] == [second.id]

    def test_counts_of_deliveries_go_by_whole_minutes(self, ground: Ground) -> None:
        ledger = ground.open()
        for minute in range(3):
            ground.set_now(NOW + 60 * minute * SECOND)
            for process in ("a", "b"):
                with ledger.transaction() as tx:
                    tx.strays.count(process, DeliveryCounts(published_count=1))
        last = NOW + 120 * SECOND
        assert count(ledger, Subject.DELIVERY_COUNTS, last) == 4
        assert prune_all(ledger, Subject.DELIVERY_COUNTS, NOW - DAY, limit=1) == 0
        assert prune_all(ledger, Subject.DELIVERY_COUNTS, last, limit=1) == 4
        assert [row["process"] for row in ground.back.rows("delivery_count")] == ["a", "b"]
