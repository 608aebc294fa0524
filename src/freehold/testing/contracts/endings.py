"""The contract of `ports.ledger.Operations`: how a claim ends without a release."""

from __future__ import annotations

from freehold.domain.errors import ChangeLost
from freehold.domain.expiry import SkipReason
from freehold.domain.operations import Claim
from freehold.domain.retries import MESSAGE_LENGTH, Failure, FailureClass
from freehold.domain.tallies import Tally
from freehold.ports.ledger import Ledger, PastRecord, Put, Skipped
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Ground,
    claimed_keys,
    enqueue,
    lease,
    new_operation,
    only,
    raised,
    tally_id,
)

FAILURE = Failure(FailureClass.BROKEN, "too long", "22001")
LEASE = 30 * SECOND


class EndingsContract:
    """Give the fixture `ground`."""

    def test_put_off_spends_no_attempt(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        with ledger.transaction() as tx:
            (claim,) = tx.operations.claim("r", 1, None)
            tx.operations.put_off([Put(claim.id, "busy", NOW + SECOND, 1)])
            tx.operations.put_off([])
        row = only(ground.back.rows("operation"))
        assert (row["state"], row["reason"], row["attempt"]) == ("deferred", "busy", 0)
        assert (row["available_at"], row["deferrals"]) == (NOW + SECOND, 1)

    def test_put_off_gives_back_the_attempt_of_a_lease(self, ground: Ground) -> None:
        ledger = ground.open()
        claim = _leased(ledger)
        with ledger.transaction() as tx:
            tx.operations.put_off([Put(claim.id, "busy", NOW + SECOND, 1)])
        row = only(ground.back.rows("operation"))
        assert (row["state"], row["attempt"], row["leased_until"]) == ("deferred", 0, None)

    def test_what_was_put_off_is_claimable_from_its_instant(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        with ledger.transaction() as tx:
            (claim,) = tx.operations.claim("r", 1, None)
            tx.operations.put_off([Put(claim.id, "busy", NOW + SECOND, 1)])
            assert claimed_keys(tx, "r") == []
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            assert claimed_keys(tx, "r") == ["1"]

    def test_put_off_of_what_has_left_is_lost(self, ground: Ground) -> None:
        with raised(ChangeLost), ground.open().transaction() as tx:
            tx.operations.put_off([Put(10**9, "busy", NOW, 1)])

    def test_a_failed_attempt_is_recorded_and_tried_again(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        with ledger.transaction() as tx:
            (claim,) = tx.operations.claim("r", 1, None)
            assert tx.operations.fail(claim, FAILURE, 1, NOW + SECOND)
        row = only(ground.back.rows("operation"))
        assert (row["state"], row["attempt"]) == ("retrying", 1)
        assert (row["available_at"], row["failure_message"]) == (NOW + SECOND, "too long")
        attempt = only(ground.back.rows("attempt"))
        assert (attempt["operation_id"], attempt["attempt"]) == (claim.id, 1)
        assert (attempt["failure_class"], attempt["failure_code"]) == ("broken", "22001")
        assert attempt["failed_at"] == NOW

    def test_a_failure_without_a_retry_is_dead(self, ground: Ground) -> None:
        ledger = ground.open()
        claim = _leased(ledger)
        with ledger.transaction() as tx:
            assert tx.operations.fail(claim, FAILURE, 1, None)
        row = only(ground.back.rows("operation"))
        assert (row["state"], row["attempt"], row["leased_until"]) == ("dead", 1, None)

    def test_a_fenced_failure_writes_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        old = _leased(ledger)
        ground.set_now(NOW + LEASE + SECOND)
        with ledger.transaction() as tx:
            tx.operations.return_lapsed(10)
        lease(ledger, "r", NOW + 3 * LEASE)
        before = ground.back.rows("operation")
        with ledger.transaction() as tx:
            assert not tx.operations.fail(old, FAILURE, 1, None)
        assert ground.back.rows("operation") == before
        assert ground.back.rows("attempt") == []

    def test_a_failure_told_twice_is_recorded_once(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        with ledger.transaction() as tx:
            (claim,) = tx.operations.claim("r", 1, None)
        for expected in (True, False):
            with ledger.transaction() as tx:
                assert tx.operations.fail(claim, FAILURE, 1, NOW) is expected
        only(ground.back.rows("attempt"))

    def test_a_long_message_is_cut(self, ground: Ground) -> None:
        ledger = ground.open()
        claim = _leased(ledger)
        long = Failure(FailureClass.BROKEN, "nul \x00" + "x" * 5_000)
        with ledger.transaction() as tx:
            tx.operations.fail(claim, long, 1, None)
        message = only(ground.back.rows("operation"))["failure_message"]
        assert message == ("nul " + "x" * 5_000)[:MESSAGE_LENGTH]

    def test_the_buried_wait_for_a_person(self, ground: Ground) -> None:
        ledger = ground.open()
        claim = _leased(ledger)
        with ledger.transaction() as tx:
            tx.operations.bury([claim], "used up", FAILURE)
            tx.operations.bury([], "used up", FAILURE)
        row = only(ground.back.rows("operation"))
        assert (row["state"], row["reason"], row["failure_code"]) == ("dead", "used up", "22001")
        assert only(ground.back.rows("attempt"))["attempt"] == 1

    def test_tallies_keep_their_order(self, ground: Ground) -> None:
        first, second = Tally("r", "b"), Tally("r", None)
        first.count_expired(0.02)
        second.skipped[SkipReason.RENEWED] += 2
        with ground.open().transaction() as tx:
            ids = tx.operations.add_tallies([first, second])
            assert list(tx.operations.add_tallies([])) == []
        rows = ground.back.rows("tally")
        assert [row["id"] for row in rows] == list(ids)
        assert [(row["tenant"], row["expired_count"]) for row in rows] == [("b", 1), (None, 0)]
        assert (rows[0]["lag_counts"], rows[1]["skipped"]) == (first.lag_counts, {"renewed": 2})
        assert rows[0]["at"] == NOW

    def test_the_skipped_move_to_the_records(self, ground: Ground) -> None:
        ledger = ground.open()
        new = new_operation("r", 1, NOW - SECOND)
        enqueue(ledger, new)
        with ledger.transaction() as tx:
            (claim,) = tx.operations.claim("r", 1, None)
            tally = tally_id(tx, "r")
            tx.operations.finish_skipped([Skipped(claim.id, tally, "renewed")])
        assert ground.back.rows("operation") == []
        row = only(ground.back.rows("record"))
        assert (row["operation_id"], row["hold_key"], row["digest"]) == (claim.id, "1", new.digest)
        assert (row["outcome"], row["reason"], row["attempt"]) == ("skipped", "renewed", 1)
        assert (row["tally_id"], row["finished_at"], row["due_at"]) == (tally, NOW, NOW - SECOND)

    def test_a_skip_is_told_before_it_ends(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1, NOW - SECOND), new_operation("r", 2))
        with ledger.transaction() as tx:
            claims = tx.operations.claim("r", 2, None)
            tally = tally_id(tx, "r")
            skipped = [Skipped(one.id, tally, f"reason {one.hold_key}") for one in claims]
            tx.operations.tell_skipped([])
            tx.operations.tell_skipped(skipped)
            tx.operations.finish_skipped(skipped)
        rows = ground.back.rows("outbox")
        assert {row["hold_key"]: row["carry"] for row in rows} == {
            one.hold_key: {"reason": f"reason {one.hold_key}"} for one in claims
        }
        told = next(row for row in rows if row["hold_key"] == "1")
        assert (told["type"], told["state"], told["tokens"]) == ("hold.skipped.v1", "kept", {})
        assert (told["at"], told["due_at"], told["generation"]) == (NOW, NOW - SECOND, 1)

    def test_telling_of_what_has_left_is_lost(self, ground: Ground) -> None:
        ledger = ground.open()
        with raised(ChangeLost), ledger.transaction() as tx:
            tx.operations.tell_skipped([Skipped(10**9, tally_id(tx, "r"), "gone")])
        assert ground.back.rows("outbox") == []

    def test_skipping_what_has_left_is_lost(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        with raised(ChangeLost), ledger.transaction() as tx:
            (claim,) = tx.operations.claim("r", 1, None)
            tally = tally_id(tx, "r")
            tx.operations.finish_skipped(
                [Skipped(claim.id, tally, "gone"), Skipped(10**9, tally, "gone")]
            )
        only(ground.back.rows("operation"))
        assert ground.back.rows("record") == []

    def test_the_past_counts_generations(self, ground: Ground) -> None:
        ledger = ground.open()
        first, second = new_operation("r", 1), new_operation("r", 2)
        for generation in (1, 2):
            _skip(ledger, first.hold_key, generation)
        found = [(one.hold_key, one.digest) for one in (first, second)]
        with ledger.transaction() as tx:
            past = tx.operations.past("r", found, NOW)
            assert list(past) == [PastRecord("1", first.digest, 2, expired=False)]
            assert list(tx.operations.past("r", found, NOW + SECOND)) == []
            assert list(tx.operations.past("q", found, NOW)) == []
            assert list(tx.operations.past("r", [], NOW)) == []


def _leased(ledger: Ledger) -> Claim:
    enqueue(ledger, new_operation("r", 1))
    (claim,) = lease(ledger, "r", NOW + LEASE)
    return claim


def _skip(ledger: Ledger, key: str, generation: int) -> None:
    enqueue(ledger, new_operation("r", int(key), generation=generation))
    with ledger.transaction() as tx:
        (claim,) = tx.operations.claim("r", 1, None)
        tx.operations.finish_skipped([Skipped(claim.id, tally_id(tx, "r"), "gone")])
