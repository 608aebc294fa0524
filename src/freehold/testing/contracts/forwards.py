"""The contract of `ports.relay.Relay`: forwards are leased, handed over, settled and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from freehold.domain.errors import DatabaseBusy
from freehold.domain.forwards import ForwardState
from freehold.domain.retries import FailureClass
from freehold.ports.ledger import Ledger
from freehold.ports.relay import ClaimedForward, Finished, Handed
from freehold.testing.contracts.ground import NOW, SECOND, Ground, only, raised
from freehold.testing.contracts.relay import BUS, LEASE, SHOP, forward_rows, owe

FAILED = (FailureClass.TRANSIENT, "503", "busy")


class ForwardsContract:
    """Give the fixture `ground`."""

    # ------------------------------------------------------------------------------ the lease

    def test_a_claim_brings_the_event_as_it_was_written(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [7], SHOP)
        (one,) = claim(ledger)
        assert (one.event_id, one.target, one.attempt, one.replay_count) == (7, "shop", 0, 0)
        assert (one.owed_at, one.event.at, one.event.sequence) == (NOW, NOW, 7)
        assert (one.event.tokens, one.event.carry) == ({"token": "a"}, {"tenant": None})
        row = only(ground.back.rows("forward"))
        assert (row["state"], row["leased_until"]) == ("leased", NOW + LEASE)
        assert (row["lease_token"], row["first_tried_at"]) == (one.lease_token, NOW)

    def test_the_longest_available_come_first_within_the_limit(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2, 3], SHOP)
        settle(ledger, failed(claim(ledger, limit=1)[0], NOW + SECOND))
        assert [one.event_id for one in claim(ledger, limit=1)] == [2]
        ground.set_now(NOW + SECOND)
        assert [one.event_id for one in claim(ledger)] == [3, 1]
        assert claim(ledger) == []

    def test_a_target_gets_its_own(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1], SHOP, BUS)
        assert [one.target for one in claim(ledger, "bus")] == ["bus"]
        assert claim(ledger, "bus") == []
        assert [one.target for one in claim(ledger, "shop")] == ["shop"]

    def test_what_is_in_others_hands_stays_theirs(self, ground: Ground) -> None:
        if not ground.transactions_overlap():
            return
        mine, other = ground.open(), ground.open()
        owe(ground, mine, [1, 2], SHOP)
        with mine.transaction() as tx, other.transaction() as beside:
            first = tx.relay.claim("shop", 1, LEASE)
            second = beside.relay.claim("shop", 9, LEASE)
        assert [one.event_id for one in first] == [1]
        assert [one.event_id for one in second] == [2]
        assert first[0].lease_token != second[0].lease_token

    def test_a_forward_whose_event_is_gone_is_discarded(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2], SHOP)
        ground.back.remove_event(1)
        assert [one.event_id for one in claim(ledger)] == [2]
        assert forward_rows(ground, "state")[0] == ("discarded",)

    def test_whatever_a_target_says_can_be_written(self, ground: Ground) -> None:
        """Or what was heard could never be settled, and would be handed over for ever."""
        ledger = ground.open()
        owe(ground, ledger, [1], SHOP)
        (one,) = claim(ledger)
        words = "\x00bad \ud800" + 600 * "x"
        said = (FailureClass.BROKEN, words, words)
        settle(ledger, Handed(one, ForwardState.DEAD, None, *said))
        with ledger.transaction() as tx:
            assert tx.relay.pause("shop", words) is not None
            pause = tx.relay.targets()[0]
        kept = ("bad ?" + 600 * "x")[:499]
        assert [row["reason"] for row in ground.back.rows("forward")] == [kept]
        (row,) = ground.back.rows("forward_attempt")
        assert (row["code"], row["reason"], pause.pause_reason) == (kept, kept, kept)

    def test_a_renewed_lease_lasts_longer(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2], SHOP)
        found = claim(ledger)
        settle(ledger, delivered(found[0]))
        ground.set_now(NOW + LEASE - SECOND)
        with ledger.transaction() as tx:
            assert tx.relay.renew(found, LEASE) == 1
        ground.set_now(NOW + LEASE)
        assert take_back(ledger) == 0
        ground.set_now(NOW + 2 * LEASE)
        with ledger.transaction() as tx:
            assert tx.relay.renew(found, LEASE) == 0
        assert take_back(ledger) == 1

    def test_an_ended_lease_is_taken_back_and_counts_as_an_attempt(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2, 3], SHOP)
        lost = claim(ledger)
        ground.set_now(NOW + LEASE)
        assert (take_back(ledger, 2), take_back(ledger), take_back(ledger)) == (2, 1, 0)
        assert forward_rows(ground, "state", "attempt") == [("ready", 1)] * 3
        assert [row["attempt"] for row in ground.back.rows("forward_attempt")] == [1] * 3
        again = claim(ledger)
        assert [one.attempt for one in again] == [1] * 3
        assert settle(ledger, *map(delivered, lost)) == 0
        assert settle(ledger, *map(delivered, again)) == 3

    def test_what_another_has_in_hand_is_not_taken_back(self, ground: Ground) -> None:
        if not ground.transactions_overlap():
            return
        mine, other = ground.open(), ground.open()
        owe(ground, mine, [1], SHOP)
        (one,) = claim(mine)
        ground.set_now(NOW + LEASE)
        with mine.transaction() as tx:
            assert tx.relay.settle([delivered(one)]) == 1
            assert take_back(other) == 0
        assert take_back(other) == 0

    # ----------------------------------------------------------------------------- the answers

    def test_an_event_is_published_with_its_last_forward(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1], SHOP, BUS)
        (shop,), (bus,) = claim(ledger, "shop"), claim(ledger, "bus")
        assert settle(ledger, delivered(shop)) == 1
        assert event(ground) == ("pending", None)
        ground.set_now(NOW + SECOND)
        assert settle(ledger, delivered(bus)) == 1
        assert event(ground) == ("published", NOW + SECOND)
        rows = forward_rows(ground, "state", "attempt", "ended_at", "reason")
        assert rows == [("delivered", 1, NOW + SECOND, None), ("delivered", 1, NOW, None)]

    def test_two_that_end_the_last_forwards_at_once_publish_it(self, ground: Ground) -> None:
        """The second waits for the first, who has the events in hand, and sees what it ended."""
        if not ground.transactions_overlap():
            return
        one, two = ground.open(), ground.open()
        owe(ground, one, [1, 2, 3], SHOP, BUS)
        shop, bus = claim(one, "shop"), claim(one, "bus")
        second = [delivered(forward) for forward in reversed(bus)]
        with one.transaction() as tx:
            assert tx.relay.settle([delivered(forward) for forward in shop]) == 3
            with raised(DatabaseBusy):
                settle(two, *second)
        assert settle(two, *second) == 3
        assert [row["state"] for row in ground.back.rows("outbox")] == ["published"] * 3

    def test_a_failed_attempt_is_written_down_and_keeps_the_event(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1], SHOP)
        later = NOW + 10 * SECOND
        assert settle(ledger, failed(claim(ledger)[0], later)) == 1
        (row,) = forward_rows(ground, "state", "attempt", "available_at", "failure_class", "reason")
        assert row == ("retrying", 1, later, "transient", "busy")
        ground.set_now(later)
        (again,) = claim(ledger)
        assert settle(ledger, Handed(again, ForwardState.DEAD, None, *FAILED)) == 1
        (row,) = forward_rows(ground, "state", "attempt", "ended_at", "leased_until")
        assert row == ("dead", 2, later, None)
        found = [
            tuple(row[name] for name in ("replay_count", "attempt", "failure_class", "code"))
            for row in ground.back.rows("forward_attempt")
        ]
        assert found == [(0, 1, "transient", "503"), (0, 2, "transient", "503")]
        assert event(ground) == ("pending", None)
        assert claim(ledger) == []

    def test_what_goes_back_spends_no_attempt(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1], SHOP)
        (one,) = claim(ledger)
        assert settle(ledger, Handed(one, ForwardState.READY)) == 1
        assert forward_rows(ground, "state", "attempt") == [("ready", 0)]
        assert ground.back.rows("forward_attempt") == []
        assert [again.event_id for again in claim(ledger)] == [1]

    def test_settling_again_changes_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2], SHOP)
        one, two = claim(ledger)
        handed = (delivered(one), failed(two, NOW))
        assert settle(ledger, *handed) == 2
        before = [ground.back.rows(name) for name in ("forward", "forward_attempt", "outbox")]
        ground.set_now(NOW + SECOND)
        assert settle(ledger, *handed) == 0
        assert settle(ledger) == 0
        after = [ground.back.rows(name) for name in ("forward", "forward_attempt", "outbox")]
        assert before == after

    # ------------------------------------------------------------------------------- the sweep

    def test_what_nothing_is_owed_of_any_more_is_published(self, ground: Ground) -> None:
        ledger = ground.open()
        owe(ground, ledger, [1, 2, 3], SHOP)
        ground.back.add_event(4)  # not routed yet
        ground.back.put_forward(1, "discarded")
        ground.back.put_forward(2, "dead")
        with ledger.transaction() as tx:
            assert tx.relay.publish_finished(0, 2) == Finished(1, 2)
            assert tx.relay.publish_finished(2, 9) == Finished(0, 0)
            assert tx.relay.publish_finished(0, 9) == Finished(0, 0)
        assert [row["state"] for row in ground.back.rows("outbox")] == [
            "published",
            *["pending"] * 3,
        ]


def claim(ledger: Ledger, target: str = "shop", limit: int = 99) -> Sequence[ClaimedForward]:
    """Claim, and commit."""
    with ledger.transaction() as tx:
        return tx.relay.claim(target, limit, LEASE)


def settle(ledger: Ledger, *handed: Handed) -> int:
    """Settle, and commit."""
    with ledger.transaction() as tx:
        return tx.relay.settle(handed)


def take_back(ledger: Ledger, limit: int = 99) -> int:
    """Take ended leases back, and commit."""
    with ledger.transaction() as tx:
        return tx.relay.take_back(limit)


def delivered(forward: ClaimedForward) -> Handed:
    """Say that a forward arrived."""
    return Handed(forward, ForwardState.DELIVERED)


def failed(forward: ClaimedForward, again_at: datetime) -> Handed:
    """Say that a forward is to be tried again."""
    return Handed(forward, ForwardState.RETRYING, again_at, *FAILED)


def event(ground: Ground) -> tuple[Any, Any]:
    """Read the only event."""
    row = only(ground.back.rows("outbox"))
    return row["state"], row["published_at"]
