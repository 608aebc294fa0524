"""The contract of `ports.ledger.Operations`: writing, claiming and leasing.

*Not here*: how operations end (`contracts.endings`).
"""

from __future__ import annotations

from freehold.domain.errors import DatabaseAway, DatabaseBusy
from freehold.ports.ledger import Ledger, ReadyAfter
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Abandoned,
    Ground,
    claimed_keys,
    enqueue,
    lease,
    new_operation,
    only,
    raised,
)

LEASE = 30 * SECOND


class OperationsContract:
    """Give the fixture `ground`."""

    def test_enqueue_writes_ready_operations(self, ground: Ground) -> None:
        one = new_operation("r", 1, NOW - SECOND, tenant=None)
        with ground.open().transaction() as tx:
            assert tx.operations.enqueue([one], 7) == 1
        row = only(ground.back.rows("operation"))
        assert (row["state"], row["attempt"], row["tick_id"]) == ("ready", 0, 7)
        assert (row["hold_key"], row["tenant"], row["digest"]) == ("1", None, one.digest)
        assert (row["due_at"], row["available_at"]) == (NOW - SECOND, NOW)
        assert (row["identity"], row["guard"]) == (one.identity, one.guard)

    def test_enqueue_again_adds_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        lease(ledger, "r", NOW + LEASE)
        before = ground.back.rows("operation")
        with ledger.transaction() as tx:
            count = tx.operations.enqueue([new_operation("r", 1), new_operation("r", 2)], None)
            assert count == 1
        assert ground.back.rows("operation")[0] == before[0]

    def test_enqueue_writes_several_rules_and_nothing_at_all(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            assert tx.operations.enqueue([new_operation("r", 1), new_operation("q", 1)], None) == 2
            assert tx.operations.enqueue([], None) == 0

    def test_an_operation_with_a_dead_reason_starts_in_review(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1, due_at=None, dead_reason="malformed due"))
        row = only(ground.back.rows("operation"))
        assert (row["state"], row["reason"], row["due_at"]) == ("dead", "malformed due", None)
        with ledger.transaction() as tx:
            assert claimed_keys(tx, "r") == []

    def test_renumber_gives_a_later_generation_or_a_reason_to_be_dead(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            tx.operations.enqueue([new_operation("r", 1), new_operation("r", 2)], None)
            again = new_operation("r", 1, generation=3, after_expired=True)
            worn = new_operation("r", 2, generation=11, dead_reason="came due again 10 times")
            tx.operations.renumber([again, worn])
        one, two = ground.back.rows("operation")
        assert (one["generation"], one["after_expired"], one["state"]) == (3, True, "ready")
        assert (two["generation"], two["state"]) == (11, "dead")
        assert two["reason"] == "came due again 10 times"

    def test_renumber_leaves_a_generation_that_is_reached(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1, generation=4))
        with ledger.transaction() as tx:
            tx.operations.renumber([new_operation("r", 1, generation=4, after_expired=True)])
        assert only(ground.back.rows("operation"))["after_expired"] in (False, 0)

    def test_claim_takes_the_oldest_first(self, ground: Ground) -> None:
        ledger = ground.open()
        for key, second in ((1, 2), (2, 0), (3, 1)):
            ground.set_now(NOW + second * SECOND)
            enqueue(ledger, new_operation("r", key))
        ground.set_now(NOW + 10 * SECOND)
        with ledger.transaction() as tx:
            assert claimed_keys(tx, "r", 2) == ["2", "3"]

    def test_a_claim_says_what_it_holds(self, ground: Ground) -> None:
        ledger = ground.open()
        new = new_operation("r", 1, NOW - SECOND, generation=3, after_expired=True)
        enqueue(ledger, new)
        with ledger.transaction() as tx:
            (claim,) = tx.operations.claim("r", 10, None)
        assert claim.id == only(ground.back.rows("operation"))["id"]
        assert (claim.rule, claim.tenant, claim.hold_key) == ("r", "t", "1")
        assert (claim.digest, claim.due_at) == (new.digest, NOW - SECOND)
        assert (claim.generation, claim.after_expired) == (3, True)
        assert (claim.attempt, claim.deferrals, claim.lease_token) == (0, 0, None)

    def test_claim_keeps_to_one_rule(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1), new_operation("q", 2))
        with ledger.transaction() as tx:
            assert claimed_keys(tx, "q") == ["2"]

    def test_claim_passes_over_what_another_transaction_holds(self, ground: Ground) -> None:
        first, second = ground.open(), ground.open()
        enqueue(first, *(new_operation("r", key) for key in range(1, 4)))
        with first.transaction() as tx:
            held = claimed_keys(tx, "r", 2)
            if ground.transactions_overlap():
                with second.transaction() as other:
                    assert [*held, *claimed_keys(other, "r")] == ["1", "2", "3"]
            else:
                with raised(DatabaseBusy), second.transaction():
                    pass

    def test_claim_looks_at_nothing_below_the_floor(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        ground.set_now(NOW + SECOND)
        enqueue(ledger, new_operation("r", 2))
        with ledger.transaction() as tx:
            (claim,) = tx.operations.claim("r", 10, NOW + SECOND)
            assert claim.hold_key == "2"

    def test_a_claim_ends_with_the_connection(self, ground: Ground) -> None:
        first, second = ground.open(), ground.open()
        enqueue(first, new_operation("r", 1))
        with raised(DatabaseAway), first.transaction() as tx:
            assert claimed_keys(tx, "r") == ["1"]
            first.close()
        with second.transaction() as tx:
            (claim,) = tx.operations.claim("r", 10, None)
            assert claim.attempt == 0

    def test_newest_takes_what_was_written_last(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, *(new_operation("r", key) for key in range(1, 6)))
        with ledger.transaction() as tx:
            keys = {one.hold_key for one in tx.operations.newest("r", 2)}
        assert keys == {"4", "5"}

    def test_claim_these_takes_what_is_still_claimable(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        (leased,) = lease(ledger, "r", NOW + LEASE)
        enqueue(ledger, new_operation("r", 2))
        ids = [row["id"] for row in ground.back.rows("operation")]
        with ledger.transaction() as tx:
            assert [one.hold_key for one in tx.operations.claim_these([*ids, 10**9])] == ["2"]
            assert tx.operations.claim_these([]) == []
            assert leased.lease_token is not None
            both = tx.operations.claim_these(ids, leased.lease_token)
            assert {one.hold_key for one in both} == {"1", "2"}
            other = tx.operations.claim_these([leased.id], leased.lease_token + 1)
            assert list(other) == []

    def test_a_lease_counts_an_attempt_and_draws_a_token(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1), new_operation("r", 2))
        claims = lease(ledger, "r", NOW + LEASE)
        assert {one.attempt for one in claims} == {1}
        assert len({one.lease_token for one in claims}) == 1
        for row in ground.back.rows("operation"):
            assert (row["state"], row["attempt"]) == ("leased", 1)
            assert (row["leased_until"], row["lease_token"]) == (NOW + LEASE, claims[0].lease_token)
        with ledger.transaction() as tx:
            assert claimed_keys(tx, "r") == []

    def test_a_later_token_is_larger(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1), new_operation("r", 2))
        first = lease(ledger, "r", NOW + LEASE, 1)[0].lease_token
        second = lease(ledger, "r", NOW + LEASE, 1)[0].lease_token
        assert first is not None
        assert second is not None
        assert first < second

    def test_an_abandoned_lease_leaves_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        with raised(Abandoned), ledger.transaction() as tx:
            tx.operations.lease("r", 10, None, NOW + LEASE)
            raise Abandoned
        row = only(ground.back.rows("operation"))
        assert (row["state"], row["attempt"]) == ("ready", 0)

    def test_lease_these_takes_what_is_still_claimable(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        lease(ledger, "r", NOW + LEASE)
        enqueue(ledger, new_operation("r", 2))
        ids = [row["id"] for row in ground.back.rows("operation")]
        with ledger.transaction() as tx:
            (claim,) = tx.operations.lease_these([*ids, 10**9], NOW + LEASE)
            assert (claim.hold_key, claim.attempt) == ("2", 1)
            assert list(tx.operations.lease_these([], NOW + LEASE)) == []

    def test_renew_prolongs_a_lease(self, ground: Ground) -> None:
        ledger = ground.open()
        token = _leased(ledger)
        with ledger.transaction() as tx:
            assert tx.operations.renew(token, NOW + 2 * LEASE) == 1
        assert only(ground.back.rows("operation"))["leased_until"] == NOW + 2 * LEASE

    def test_a_lost_lease_is_not_renewed(self, ground: Ground) -> None:
        ledger = ground.open()
        token = _leased(ledger)
        with ledger.transaction() as tx:
            assert tx.operations.renew(token + 1, NOW + 2 * LEASE) == 0
        ground.set_now(NOW + LEASE + SECOND)
        with ledger.transaction() as tx:
            assert tx.operations.renew(token, NOW + 3 * LEASE) == 0
        assert only(ground.back.rows("operation"))["leased_until"] == NOW + LEASE

    def test_a_lapsed_lease_comes_back_with_its_attempt_counted(self, ground: Ground) -> None:
        ledger = ground.open()
        _leased(ledger)
        with ledger.transaction() as tx:
            assert list(tx.operations.return_lapsed(10)) == []
        ground.set_now(NOW + LEASE + SECOND)
        with ledger.transaction() as tx:
            (claim,) = tx.operations.return_lapsed(10)
            assert claim.attempt == 1
        row = only(ground.back.rows("operation"))
        assert (row["state"], row["attempt"], row["leased_until"]) == ("ready", 1, None)
        assert row["available_at"] == NOW + LEASE + SECOND

    def test_lapsed_leases_come_back_page_by_page(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, *(new_operation("r", key) for key in range(1, 4)))
        lease(ledger, "r", NOW + LEASE)
        ground.set_now(NOW + 2 * LEASE)
        with ledger.transaction() as tx:
            assert len(tx.operations.return_lapsed(2)) == 2
            assert len(tx.operations.return_lapsed(2)) == 1

    def test_count_ready_stops_at_its_limit(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, *(new_operation("r", key) for key in range(1, 4)), new_operation("q", 1))
        with ledger.transaction() as tx:
            assert tx.operations.count_ready("r", 10) == 3
            assert tx.operations.count_ready("r", 2) == 2
            assert tx.operations.count_ready("r", 10, NOW + SECOND) == 0

    def test_oldest_ready_tells_where_claimable_operations_begin(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            assert tx.operations.oldest_ready("r", None) is None
        enqueue(ledger, new_operation("r", 1))
        ground.set_now(NOW + SECOND)
        enqueue(ledger, new_operation("r", 2), new_operation("q", 1))
        with ledger.transaction() as tx:
            assert tx.operations.oldest_ready("r", None) == NOW
            assert tx.operations.oldest_ready("r", NOW + SECOND) == NOW + SECOND

    def test_a_claim_tells_since_when_it_is_claimable(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        with ledger.transaction() as tx:
            (claim,) = tx.operations.claim("r", 1, None)
        assert claim.available_at == NOW

    def test_find_ready_pages_in_order_without_a_claim(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1), new_operation("q", 9))
        ground.set_now(NOW + SECOND)
        enqueue(ledger, new_operation("r", 2), new_operation("r", 3))
        with ledger.transaction() as tx:
            page = tx.operations.find_ready("r", None, 2)
            assert [one.hold_key for one in page] == ["1", "2"]
            assert (page[0].available_at, page[0].attempt) == (NOW, 1)
            after = ReadyAfter(page[1].available_at, page[1].operation_id)
            assert [one.hold_key for one in tx.operations.find_ready("r", after, 2)] == ["3"]
            assert len(tx.operations.claim("r", 10, None)) == 3

    def test_find_ready_leaves_out_what_nobody_can_claim(self, ground: Ground) -> None:
        ledger = ground.open()
        _leased(ledger)
        enqueue(ledger, new_operation("r", 2, dead_reason="for a person"))
        with ledger.transaction() as tx:
            assert list(tx.operations.find_ready("r", None, 10)) == []

    def test_still_ready_reads_by_id_what_can_be_claimed(self, ground: Ground) -> None:
        ledger = ground.open()
        leased = _leased(ledger)
        enqueue(ledger, new_operation("r", 3), new_operation("r", 2, dead_reason="for a person"))
        ground.set_now(NOW + SECOND)
        enqueue(ledger, new_operation("q", 4))
        ids = [row["id"] for row in ground.back.rows("operation")]
        with ledger.transaction() as tx:
            found = tx.operations.still_ready([*reversed(ids), leased, 10**12])
            assert [one.hold_key for one in found] == ["3", "4"]
            assert list(found[:1]) == list(tx.operations.find_ready("r", None, 10))
            assert list(tx.operations.still_ready([])) == []


def _leased(ledger: Ledger) -> int:
    enqueue(ledger, new_operation("r", 1))
    (claim,) = lease(ledger, "r", NOW + LEASE)
    assert claim.lease_token is not None
    return claim.lease_token
