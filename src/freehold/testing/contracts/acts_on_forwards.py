"""The contract of `ports.forwards.Forwards`: people retry, discard and replay."""

from __future__ import annotations

from freehold.domain.errors import DatabaseBusy
from freehold.domain.forwards import EventHead, ForwardState
from freehold.ports.forwards import ReplayAsked, ReplayPage
from freehold.ports.ledger import Ledger
from freehold.ports.relay import Handed
from freehold.testing.contracts.forwards import FAILED, claim, delivered, event, failed, settle
from freehold.testing.contracts.ground import NOW, SECOND, Ground, raised
from freehold.testing.contracts.relay import BUS, SHOP, follow, forward_rows, owe

LATER = NOW + 10 * SECOND


class ActsOnForwardsContract:
    """Give the fixture `ground`."""

    def test_what_is_stuck_is_named_in_order(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2, 3, 4], SHOP)
        bury(ledger, 2)
        with ledger.transaction() as tx:
            assert tx.forwards.find_stuck("shop", 9) == [1, 2]
            assert tx.forwards.find_stuck("shop", 1) == [1]
            assert tx.forwards.find_stuck("shop", 9, waiting=True) == [1, 2, 3, 4]
            assert tx.forwards.find_stuck("shop", 3, waiting=True) == [1, 2, 3]
            assert tx.forwards.find_stuck("bus", 9, waiting=True) == []

    # ---------------------------------------------------------------------------------- retry

    def test_a_retry_gives_a_fresh_count_of_attempts(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2], SHOP)
        bury(ledger, 1)
        ground.set_now(LATER)
        with ledger.transaction() as tx:
            assert tx.forwards.retry("shop", [2, 1, 9]) == [1]
        with ledger.transaction() as tx:
            assert tx.forwards.retry("shop", [1]) == []
        row = forward_rows(ground, "state", "attempt", "replay_count", "owed_at", "available_at")[0]
        assert row == ("ready", 0, 1, NOW, LATER)
        bury(ledger, 2)
        kept = [(row["replay_count"], row["attempt"]) for row in failures(ground, 1)]
        assert kept == [(0, 1), (1, 1)]

    # -------------------------------------------------------------------------------- discard

    def test_a_discarded_event_is_published_where_nothing_else_is_owed(
        self, ground: Ground
    ) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1], SHOP, BUS)
        bury(ledger, 1)
        with ledger.transaction() as tx:
            assert tx.forwards.discard("shop", [1], "test data") == [1]
        assert event(ground) == ("pending", None)
        bury(ledger, 1, "bus")
        ground.set_now(LATER)
        with ledger.transaction() as tx:
            assert tx.forwards.discard("bus", [1, 9], "test data") == [1]
        assert event(ground) == ("published", LATER)
        rows = forward_rows(ground, "state", "reason", "ended_at")
        assert rows == [("discarded", "test data", LATER), ("discarded", "test data", NOW)]
        with ledger.transaction() as tx:
            assert tx.forwards.discard("bus", [1], "again", waiting=True) == []

    def test_what_waits_is_discarded_on_request_only(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2, 3], SHOP)
        settle(ledger, failed(claim(ledger, limit=1)[0], LATER))
        claim(ledger, limit=1)
        with ledger.transaction() as tx:
            assert tx.forwards.discard("shop", [1, 2, 3], "why") == []
            assert tx.forwards.discard("shop", [1, 2, 3], "why", waiting=True) == [1, 3]
        states = forward_rows(ground, "state")
        assert states == [("discarded",), ("leased",), ("discarded",)]

    def test_a_discard_beside_the_last_arrival_publishes_the_event(self, ground: Ground) -> None:
        """Whoever comes second waits for the first, and sees what it ended."""
        if not ground.transactions_overlap():
            return
        one, two = ground.open(), ground.open()
        owe(ground, one, [1], SHOP, BUS)
        bury(one, 1)
        (bus,) = claim(one, "bus")
        with one.transaction() as tx:
            assert tx.forwards.discard("shop", [1], "why") == [1]
            with raised(DatabaseBusy):
                settle(two, delivered(bus))
        assert settle(two, delivered(bus)) == 1
        assert event(ground)[0] == "published"

    # --------------------------------------------------------------------------------- replay

    def test_an_event_that_is_replayed_beside_its_last_arrival_waits(self, ground: Ground) -> None:
        if not ground.transactions_overlap():
            return
        one, two = ground.open(), ground.open()
        owe(ground, one, [1], SHOP, BUS)
        settle(one, delivered(claim(one)[0]))
        (bus,) = claim(one, "bus")
        with one.transaction() as tx:
            assert tx.forwards.replay("shop", [1]) == [1]
            with raised(DatabaseBusy):
                settle(two, delivered(bus))
        assert settle(two, delivered(bus)) == 1
        assert event(ground) == ("pending", None)

    def test_a_delivered_event_is_owed_again(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1], SHOP, BUS)
        settle(ledger, *map(delivered, [*claim(ledger), *claim(ledger, "bus")]))
        assert event(ground)[0] == "published"
        ground.set_now(LATER)
        with ledger.transaction() as tx:
            assert tx.forwards.replay("shop", [1]) == [1]
        with ledger.transaction() as tx:
            assert tx.forwards.replay("shop", [1]) == []
        assert event(ground) == ("pending", None)
        rows = forward_rows(ground, "state", "attempt", "replay_count", "owed_at", "ended_at")
        assert rows == [("delivered", 1, 0, NOW, NOW), ("ready", 0, 1, LATER, None)]
        (again,) = claim(ledger)
        assert (again.attempt, again.replay_count) == (0, 1)
        assert settle(ledger, delivered(again)) == 1
        assert event(ground) == ("published", LATER)

    def test_a_kept_event_is_owed_at_last_and_to_that_target_alone(self, ground: Ground) -> None:
        ledger = ground.open()
        ground.back.add_event(1, state="kept")
        follow(ledger, SHOP, BUS)
        with ledger.transaction() as tx:
            assert tx.forwards.replay("shop", [1]) == [1]
        with ledger.transaction() as tx:
            assert tx.relay.claim_unrouted(9) == []
        assert forward_rows(ground, "target", "state") == [("shop", "ready")]
        assert event(ground) == ("pending", None)
        settle(ledger, delivered(claim(ledger)[0]))
        assert event(ground)[0] == "published"

    def test_what_is_owed_now_is_left_and_what_is_gone_too(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2, 3, 4], SHOP)
        bury(ledger, 1)
        settle(ledger, failed(claim(ledger, limit=1)[0], LATER))
        claim(ledger, limit=1)
        ground.back.add_event(5)  # no route yet
        before = [ground.back.rows(name) for name in ("forward", "outbox")]
        with ledger.transaction() as tx:
            assert tx.forwards.replay("shop", [1, 2, 3, 4, 5, 99]) == []
        assert [ground.back.rows(name) for name in ("forward", "outbox")] == before

    def test_a_replay_finds_what_the_target_is_not_owed(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2], SHOP)
        settle(ledger, delivered(claim(ledger, limit=1)[0]))
        ground.back.add_event(3, state="kept")
        ground.back.add_event(4, state="kept", rule="other")
        ground.back.add_event(5)
        ground.set_now(LATER)
        head = "hold.expired.v1"
        kept = [EventHead(3, head, "r", "t"), EventHead(4, head, "other", "t")]
        asked = ReplayAsked("shop")
        assert pages(ledger, asked) == [EventHead(1, head, "r", "t"), *kept]
        assert pages(ledger, ReplayAsked("bus"))[:2] == [
            EventHead(one, head, "r", "t") for one in (1, 2)
        ]
        assert pages(ledger, ReplayAsked("shop", rule="other")) == kept[1:]
        assert pages(ledger, ReplayAsked("shop", hold_key="3")) == kept[:1]
        assert pages(ledger, ReplayAsked("shop", since=NOW + SECOND)) == []
        assert pages(ledger, ReplayAsked("shop", until=NOW)) == []
        assert len(pages(ledger, ReplayAsked("shop", since=NOW, until=NOW + SECOND))) == 3

    def test_an_instant_is_found_among_many_ids(self, ground: Ground) -> None:
        ledger = ground.open()
        for key in (3, 5_000, 25_000, 25_001):
            ground.back.add_event(key, state="kept")
        ground.set_now(LATER)
        found = [one.id for one in pages(ledger, ReplayAsked("shop", since=NOW), limit=1)]
        assert found == [3, 5_000, 25_000, 25_001]

    def test_there_may_be_no_event_at_all(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            assert tx.forwards.replayable(ReplayAsked("shop"), None, 9) == ReplayPage((), None)


def bury(ledger: Ledger, count: int, target: str = "shop") -> None:
    """Let so many hand-overs fail for good."""
    forwards = claim(ledger, target, count)
    assert len(forwards) == count
    settle(ledger, *(Handed(one, ForwardState.DEAD, None, *FAILED) for one in forwards))


def failures(ground: Ground, event_id: int) -> list[dict[str, object]]:
    """Read the failed attempts at an event."""
    rows = ground.back.rows("forward_attempt")
    return [dict(row) for row in rows if row["event_id"] == event_id]


def pages(ledger: Ledger, asked: ReplayAsked, limit: int = 2) -> list[EventHead]:
    """Read all pages of what may be replayed."""
    found: list[EventHead] = []
    after_id: int | None = None
    while True:
        with ledger.transaction() as tx:
            page = tx.forwards.replayable(asked, after_id, limit)
        assert len(page.events) <= limit
        found += page.events
        after_id = page.after_id
        if after_id is None:
            return found
