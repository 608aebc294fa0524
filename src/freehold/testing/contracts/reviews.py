"""The contract of `ports.ledger.Reviews`."""

from __future__ import annotations

from freehold.domain.operations import Claim
from freehold.domain.retries import Failure, FailureClass
from freehold.ports.ledger import Ledger
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Ground,
    claimed_keys,
    enqueue,
    lease,
    new_operation,
    only,
)

FAILURE = Failure(FailureClass.BROKEN, "too long", "22001")


class ReviewsContract:
    """Give the fixture `ground`."""

    def test_requeue_gives_a_fresh_count_of_attempts(self, ground: Ground) -> None:
        ledger = ground.open()
        (claim,) = _dead(ledger, 1)
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            assert list(tx.reviews.requeue([claim.id, 10**9])) == [claim.id]
        row = only(ground.back.rows("operation"))
        assert (row["state"], row["attempt"], row["deferrals"]) == ("ready", 0, 0)
        assert row["available_at"] == NOW + SECOND
        only(ground.back.rows("attempt"))
        with ledger.transaction() as tx:
            assert claimed_keys(tx, "r") == ["1"]

    def test_requeue_takes_the_discarded_too(self, ground: Ground) -> None:
        ledger = ground.open()
        (claim,) = _dead(ledger, 1)
        with ledger.transaction() as tx:
            tx.reviews.discard([claim.id], "why")
            assert list(tx.reviews.requeue([claim.id])) == [claim.id]

    def test_requeue_leaves_what_has_no_due(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1, due_at=None, dead_reason="malformed due"))
        before = only(ground.back.rows("operation"))
        with ledger.transaction() as tx:
            assert list(tx.reviews.requeue([before["id"]])) == []
        assert only(ground.back.rows("operation")) == before

    def test_requeue_and_discard_leave_work_alone(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        before = only(ground.back.rows("operation"))
        with ledger.transaction() as tx:
            assert list(tx.reviews.requeue([before["id"]])) == []
            assert list(tx.reviews.discard([before["id"]], "why")) == []
        assert only(ground.back.rows("operation")) == before

    def test_the_discarded_stay(self, ground: Ground) -> None:
        ledger = ground.open()
        (claim,) = _dead(ledger, 1)
        with ledger.transaction() as tx:
            assert list(tx.reviews.discard([claim.id], "twice")) == [claim.id]
            assert list(tx.reviews.discard([claim.id], "again")) == []
            assert list(tx.reviews.find_open("r", 0, 10)) == [claim.id]
        row = only(ground.back.rows("operation"))
        assert (row["state"], row["reason"]) == ("discarded", "twice")

    def test_find_open_pages_in_id_order(self, ground: Ground) -> None:
        ledger = ground.open()
        ids = sorted(claim.id for claim in _dead(ledger, 1, 2, 3))
        enqueue(ledger, new_operation("r", 4), new_operation("q", 5, dead_reason="other rule"))
        with ledger.transaction() as tx:
            assert list(tx.reviews.find_open("r", 0, 2)) == ids[:2]
            assert list(tx.reviews.find_open("r", ids[1], 2)) == ids[2:]

    def test_close_moves_to_the_records(self, ground: Ground) -> None:
        ledger = ground.open()
        (claim,) = _dead(ledger, 1)
        with ledger.transaction() as tx:
            assert tx.reviews.close([claim.id], "no longer held") == 1
            assert tx.reviews.close([], "no longer held") == 0
        assert ground.back.rows("operation") == []
        row = only(ground.back.rows("record"))
        assert (row["operation_id"], row["outcome"]) == (claim.id, "closed")
        assert (row["reason"], row["finished_at"]) == ("no longer held", NOW)

    def test_close_leaves_what_is_not_in_review(self, ground: Ground) -> None:
        ledger = ground.open()
        (claim,) = _dead(ledger, 1)
        enqueue(ledger, new_operation("r", 2))
        ids = [row["id"] for row in ground.back.rows("operation")]
        with ledger.transaction() as tx:
            assert tx.reviews.close([*ids, 10**9], "no longer held") == 1
        assert only(ground.back.rows("operation"))["hold_key"] == "2"
        assert only(ground.back.rows("record"))["operation_id"] == claim.id

    def test_what_is_in_review_is_read_whole(self, ground: Ground) -> None:
        ledger = ground.open()
        (claim,) = _dead(ledger, 1)
        enqueue(ledger, new_operation("r", 2))
        ids = [row["id"] for row in ground.back.rows("operation")]
        with ledger.transaction() as tx:
            (one,) = tx.reviews.read([*ids, 10**9])
            assert list(tx.reviews.find("r", 0, 10)) == [one]
            assert list(tx.reviews.find("q", 0, 10)) == []
        assert (one.id, one.rule, one.tenant, one.hold_key) == (claim.id, "r", "t", "1")
        assert (one.digest, one.due_at, one.generation) == (claim.digest, NOW, 1)
        assert (one.state, one.reason, one.failure) == ("dead", "used up", FAILURE)
        assert (one.found_at, one.changed_at) == (NOW, NOW)

    def test_find_pages_in_id_order(self, ground: Ground) -> None:
        ledger = ground.open()
        ids = sorted(claim.id for claim in _dead(ledger, 1, 2, 3))
        with ledger.transaction() as tx:
            assert [one.id for one in tx.reviews.find("r", 0, 2)] == ids[:2]
            assert [one.id for one in tx.reviews.find("r", ids[1], 2)] == ids[2:]

    def test_a_requeue_keeps_the_failed_attempts(self, ground: Ground) -> None:
        ledger = ground.open()
        (claim,) = _dead(ledger, 1)
        with ledger.transaction() as tx:
            tx.reviews.requeue([claim.id])
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            (again,) = tx.operations.claim("r", 1, None)
            tx.operations.fail(again, FAILURE, 1, NOW + 9 * SECOND)
            attempts = tx.reviews.attempts(claim.id)
        assert [one.failed_at for one in attempts] == [NOW, NOW + SECOND]
        assert [one.failure for one in attempts] == [FAILURE, FAILURE]

    def test_withdraw_sets_open_operations_aside(self, ground: Ground) -> None:
        ledger = ground.open()
        _dead(ledger, 1)
        enqueue(ledger, new_operation("r", 2), new_operation("q", 3))
        ids = [row["id"] for row in ground.back.rows("operation")]
        with ledger.transaction() as tx:
            assert sorted(tx.reviews.withdraw("r", 10, "detached")) == ids[:2]
        rows = ground.back.rows("operation")
        assert [row["state"] for row in rows] == ["discarded", "discarded", "ready"]
        assert [row["reason"] for row in rows[:2]] == ["detached", "detached"]

    def test_withdraw_stops_at_its_limit_and_goes_on_after_a_close(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, *(new_operation("r", key) for key in range(1, 4)))
        counts = []
        for _ in range(3):
            with ledger.transaction() as tx:
                withdrawn = tx.reviews.withdraw("r", 2, "detached")
                counts.append(tx.reviews.close(withdrawn, "detached"))
        assert counts == [2, 1, 0]

    def test_withdraw_leaves_a_live_lease(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        lease(ledger, "r", NOW + SECOND)
        with ledger.transaction() as tx:
            assert list(tx.reviews.withdraw("r", 10, "detached")) == []
        ground.set_now(NOW + 2 * SECOND)
        with ledger.transaction() as tx:
            assert len(tx.reviews.withdraw("r", 10, "detached")) == 1

    def test_counting_what_is_open_stops_at_its_limit(self, ground: Ground) -> None:
        ledger = ground.open()
        _dead(ledger, 1)
        enqueue(ledger, new_operation("r", 2), new_operation("r", 3), new_operation("q", 4))
        with ledger.transaction() as tx:
            assert tx.reviews.count_open("r", 10) == 3
            assert tx.reviews.count_open("r", 2) == 2


def _dead(ledger: Ledger, *keys: int) -> list[Claim]:
    enqueue(ledger, *(new_operation("r", key) for key in keys))
    with ledger.transaction() as tx:
        claims = list(tx.operations.claim("r", len(keys), None))
        tx.operations.bury(claims, "used up", FAILURE)
    return claims
