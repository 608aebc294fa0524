"""The contract of a handler's call inside a transaction, and of the leases that go before it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from freehold.domain.errors import DatabaseError, HandlerFailed, HandlerTimedOut
from freehold.ports.handlers import ExpiredBatch, ExpiredHold
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Ground,
    enqueue,
    lease,
    new_operation,
    only,
    raised,
)

LEASE = 30 * SECOND
HOLD = ExpiredHold("t", "1", NOW, "r/1", 1, {"id": "1"})
NOTE = "insert into companion_note (side, id) values ('handler', '1')"
Act = Callable[[Any], object]


@dataclass
class Calls:
    """A handler that does as it is told; what it raises is told as a handler's failure."""

    act: Act
    batches: list[ExpiredBatch] = field(default_factory=list)
    seconds_max: float = 5.0

    def run(self, batch: ExpiredBatch, cancel: Callable[[], None]) -> None:
        """Act."""
        self.batches.append(batch)
        try:
            self.act(batch.connection)
        except DatabaseError:
            raise
        except Exception as error:
            raise HandlerFailed(str(error), "here") from error


def _call(ground: Ground, act: Act) -> Calls:
    calls = Calls(act)
    with ground.open().transaction() as tx:
        tx.operations.enqueue([new_operation("r", 1)], None)
        tx.call(calls, ground.rule, [HOLD])
    return calls


class LendingContract:
    """Give the fixture `ground`."""

    def test_a_handler_is_given_rule_instant_and_holds(self, ground: Ground) -> None:
        (batch,) = _call(ground, lambda _: None).batches
        assert (batch.rule, batch.now, batch.holds) == ("r", NOW, [HOLD])
        assert len(ground.back.rows("operation")) == 1

    def test_what_it_writes_is_committed_with_the_rest(self, ground: Ground) -> None:
        _call(ground, lambda connection: connection.execute(NOTE))
        assert only(ground.back.rows("note"))["side"] == "handler"

    def test_what_it_writes_before_it_fails_is_gone_with_the_rest(self, ground: Ground) -> None:
        def act(connection: Any) -> None:
            connection.execute(NOTE)
            raise ValueError("no")

        with raised(HandlerFailed):
            _call(ground, act)
        assert ground.back.rows("note") == ground.back.rows("operation") == []

    def test_a_handler_that_was_stopped_leaves_nothing(self, ground: Ground) -> None:
        def act(connection: Any) -> None:
            connection.execute(NOTE)
            raise HandlerTimedOut("over")

        with raised(HandlerTimedOut):
            _call(ground, act)
        assert ground.back.rows("note") == ground.back.rows("operation") == []

    def test_it_can_end_the_transaction_in_no_usual_way(self, ground: Ground) -> None:
        def usual_exit(connection: Any) -> None:
            with connection:
                connection.execute(NOTE)

        for act in (
            lambda connection: connection.commit(),
            lambda connection: connection.rollback(),
            lambda connection: connection.execute("  COMMIT"),
            lambda connection: connection.execute("end"),
            lambda connection: connection.execute("rollback"),
            usual_exit,
        ):
            with raised(HandlerFailed):
                _call(ground, act)
            assert ground.back.rows("note") == ground.back.rows("operation") == []

    def test_a_connection_that_it_closes_ends_the_transaction(self, ground: Ground) -> None:
        ledger = ground.open()
        with raised(HandlerFailed), ledger.transaction() as tx:
            tx.operations.enqueue([new_operation("r", 1)], None)
            tx.call(Calls(lambda connection: connection.close()), ground.rule, [HOLD])
        assert ground.back.rows("operation") == []
        enqueue(ledger, new_operation("r", 1))

    def test_an_error_that_it_swallows_loses_the_transaction_or_nothing(
        self, ground: Ground
    ) -> None:
        def act(connection: Any) -> None:
            with suppress(Exception):
                connection.execute("insert into nowhere values (1)")

        if ground.has_server():
            with raised(HandlerFailed):
                _call(ground, act)
        else:
            _call(ground, act)
        assert len(ground.back.rows("operation")) == (0 if ground.has_server() else 1)

    def test_a_savepoint_is_its_own_affair(self, ground: Ground) -> None:
        def act(connection: Any) -> None:
            for statement in (
                "savepoint mine",
                NOTE,
                "rollback to savepoint mine",
                NOTE,
                "release savepoint mine",
            ):
                connection.execute(statement)

        _call(ground, act)
        assert len(ground.back.rows("note")) == 1

    def test_the_connection_comes_back_as_it_was(self, ground: Ground) -> None:
        ledger = ground.open()

        def act(connection: Any) -> None:
            connection.row_factory = lambda *_: None
            if hasattr(connection, "isolation_level") and not ground.has_server():
                connection.isolation_level = "DEFERRED"

        with ledger.transaction() as tx:
            tx.operations.enqueue([new_operation("r", 1)], None)
            tx.call(Calls(act), ground.rule, [HOLD])
        with ledger.transaction() as tx:
            assert len(tx.operations.claim("r", 10, None)) == 1
        enqueue(ledger, new_operation("r", 2))

    def test_images_are_the_rows_before_the_change_as_text(self, ground: Ground) -> None:
        ledger = ground.open()
        ground.back.add_hold(1, NOW - SECOND, token="tok")
        with ledger.transaction() as tx:
            (found,) = tx.holds(ground.rule).find_due(None, 10)
            new = new_operation("r", 1)
            tx.operations.enqueue([new], None)
            (claim,) = tx.operations.claim("r", 10, None)
            images = tx.holds(ground.rule).images([claim.id])
        assert found.hold_key == "1"
        (image,) = images.values()
        assert set(images) == {claim.id}
        assert set(image) == set(ground.rule.mapped_columns)
        assert (image["id"], image["status"], image["token"]) == ("1", "held", "tok")

    def test_still_leased_is_what_nobody_took_back(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1), new_operation("r", 2))
        claims = lease(ledger, "r", NOW + LEASE)
        ids, token = [claim.id for claim in claims], claims[0].lease_token or 0
        with ledger.transaction() as tx:
            assert len(tx.operations.still_leased(ids, token)) == 2
            assert not tx.operations.still_leased(ids, token + 1)
            assert tx.operations.still_leased(ids[:1], token) == {ids[0]}
        ground.set_now(NOW + LEASE + SECOND)
        with ledger.transaction() as tx:
            assert len(tx.operations.return_lapsed(1)) == 1
        with ledger.transaction() as tx:
            assert len(tx.operations.still_leased(ids, token)) == 1

    def test_what_is_claimed_is_leased_as_if_it_were_named(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1), new_operation("r", 2))
        with ledger.transaction() as tx:
            claims = tx.operations.claim("r", 10, None)
            leased = tx.operations.lease_claimed(claims[:1], NOW + LEASE)
            assert tx.operations.lease_claimed([], NOW + LEASE) == []
        (one,) = leased
        assert (one.id, one.attempt, one.failed_count) == (claims[0].id, 1, 0)
        with ledger.transaction() as tx:
            assert tx.operations.still_leased([one.id], one.lease_token or 0) == {one.id}
            assert tx.operations.claim_these([one.id], one.lease_token) == leased
            assert len(tx.operations.claim("r", 10, None)) == 1

    def test_any_leased_sees_the_leases_of_all_rules_until_they_end(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("q", 1))
        with ledger.transaction() as tx:
            assert not tx.operations.any_leased()
        lease(ledger, "q", NOW + LEASE)
        with ledger.transaction() as tx:
            assert tx.operations.any_leased()
        ground.set_now(NOW + LEASE + SECOND)
        with ledger.transaction() as tx:
            assert not tx.operations.any_leased()

    def test_one_writer_is_where_writing_transactions_do_not_overlap(self, ground: Ground) -> None:
        assert ground.open().one_writer is not ground.transactions_overlap()
