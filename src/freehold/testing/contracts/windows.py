"""The contract of `ports.windows.Windows`."""

from __future__ import annotations

from datetime import timedelta

from freehold.domain.errors import ChangeLost
from freehold.domain.retries import Failure, FailureClass
from freehold.ports.ledger import Ledger, Put
from freehold.ports.windows import Window
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Ground,
    claimed_keys,
    enqueue,
    new_operation,
    only,
    raised,
)

LEASE = timedelta(seconds=30)


class WindowsContract:
    """Give the fixture `ground`."""

    def test_a_window_is_open_until_it_ends(self, ground: Ground) -> None:
        ledger = _opened(ground)
        with ledger.transaction() as tx:
            assert tx.windows.is_open("r")
            assert not tx.windows.is_open("other")
        window = _leased(ledger)
        assert (window.begins_at, window.until) == (NOW - SECOND, NOW)
        assert (window.claim.due_at, window.claim.attempt) == (NOW - SECOND, 1)
        with ledger.transaction() as tx:
            assert tx.windows.is_open("r")
            tx.windows.close(window, "window: 3 released")
        with ledger.transaction() as tx:
            assert not tx.windows.is_open("r")
        record = only(ground.back.rows("record"))
        assert (record["outcome"], record["reason"]) == ("closed", "window: 3 released")
        assert record["hold_key"] == "window 2031-05-06T11:59:59Z/2031-05-06T12:00:00Z"
        assert ground.back.rows("operation") == []

    def test_the_same_window_is_not_written_twice(self, ground: Ground) -> None:
        ledger = _opened(ground)
        with ledger.transaction() as tx:
            assert not tx.windows.open("r", NOW - SECOND, NOW, None)
            assert tx.windows.open("r", NOW - SECOND, NOW + SECOND, None)

    def test_a_claim_of_holds_takes_no_window(self, ground: Ground) -> None:
        ledger = _opened(ground)
        enqueue(ledger, new_operation("r", 1))
        with ledger.transaction() as tx:
            assert tx.operations.count_ready("r", 10) == 1
            assert [one.hold_key for one in tx.operations.newest("r", 10)] == ["1"]
            assert [one.hold_key for one in tx.operations.find_ready("r", None, 10)] == ["1"]
            assert claimed_keys(tx, "r") == ["1"]
            tx.operations.lease("r", 10, None, NOW + LEASE)
            assert tx.operations.oldest_ready("r", None) is None
            assert tx.windows.lease("r", NOW + LEASE) is not None
            assert tx.windows.lease("r", NOW + LEASE) is None

    def test_a_claim_of_windows_takes_no_hold(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        with ledger.transaction() as tx:
            assert tx.windows.lease("r", NOW + LEASE) is None
            assert not tx.windows.is_open("r")

    def test_a_lost_lease_closes_nothing(self, ground: Ground) -> None:
        ledger = _opened(ground)
        lost = _leased(ledger)
        ground.set_now(NOW + 2 * LEASE)
        with ledger.transaction() as tx:
            tx.operations.return_lapsed(10)
        second = _leased(ledger)
        assert second.claim.attempt == 2
        with raised(ChangeLost), ledger.transaction() as tx:
            tx.windows.close(lost, "window: 0 released")
        assert ground.back.rows("record") == []

    def test_a_window_that_was_put_off_comes_back(self, ground: Ground) -> None:
        ledger = _opened(ground)
        window = _leased(ledger)
        with ledger.transaction() as tx:
            tx.operations.put_off([Put(window.claim.id, "busy", NOW + SECOND, 0)])
            assert tx.windows.lease("r", NOW + LEASE) is None
        ground.set_now(NOW + SECOND)
        assert _leased(ledger).claim.attempt == 1

    def test_a_window_in_review_is_not_open(self, ground: Ground) -> None:
        ledger = _opened(ground)
        window = _leased(ledger)
        with ledger.transaction() as tx:
            tx.operations.bury([window.claim], "no", Failure(FailureClass.TRANSIENT, "no"))
            assert not tx.windows.is_open("r")

    def test_nobody_claims_it_as_a_hold(self, ground: Ground) -> None:
        ledger = _opened(ground)
        ids = [row["id"] for row in ground.back.rows("operation")]
        with ledger.transaction() as tx:
            assert len(ids) == 1
            assert list(tx.operations.claim_these(ids)) == []
            assert list(tx.operations.still_ready(ids)) == []
        window = _leased(ledger)
        with ledger.transaction() as tx:
            (claim,) = tx.operations.claim_these(ids, window.claim.lease_token)
            assert claim.id == window.claim.id


def _opened(ground: Ground) -> Ledger:
    ledger = ground.open()
    with ledger.transaction() as tx:
        assert tx.windows.open("r", NOW - SECOND, NOW, None)
    return ledger


def _leased(ledger: Ledger) -> Window:
    with ledger.transaction() as tx:
        window = tx.windows.lease("r", tx.now + LEASE)
    assert window is not None
    return window
