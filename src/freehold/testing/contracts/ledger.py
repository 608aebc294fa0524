"""The contract of `ports.ledger.Ledger` and of the transaction's own promises."""

from __future__ import annotations

from datetime import datetime, timedelta

from freehold.domain.errors import DatabaseAway, DatabaseBusy
from freehold.ports.ledger import RuleCondition, RuleState
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Abandoned,
    Ground,
    enqueue,
    new_operation,
    raised,
)


class LedgerContract:
    """Give the fixture `ground`."""

    def test_commits_when_its_block_ends(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            tx.operations.enqueue([new_operation("r", 1)], None)
            assert ground.back.rows("operation") == []
        assert len(ground.back.rows("operation")) == 1

    def test_rolls_back_on_any_exception(self, ground: Ground) -> None:
        ledger = ground.open()
        with raised(Abandoned), ledger.transaction() as tx:
            tx.operations.enqueue([new_operation("r", 1)], None)
            raise Abandoned
        assert ground.back.rows("operation") == []
        enqueue(ledger, new_operation("r", 2))
        assert len(ground.back.rows("operation")) == 1

    def test_now_is_read_once(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            ground.set_now(NOW + SECOND)
            assert tx.now == NOW
        with ledger.transaction() as tx:
            assert tx.now == NOW + SECOND
            assert tx.now.utcoffset() == timedelta(0)

    def test_a_missing_connection_is_away(self, ground: Ground) -> None:
        with raised(DatabaseAway), ground.open_unreachable().transaction():
            pass

    def test_a_connection_closed_before_the_commit_is_away(self, ground: Ground) -> None:
        ledger = ground.open()
        with raised(DatabaseAway), ledger.transaction() as tx:
            tx.operations.enqueue([new_operation("r", 1)], None)
            ledger.close()
        assert ground.back.rows("operation") == []

    def test_a_transaction_never_goes_on_over_a_new_connection(self, ground: Ground) -> None:
        ledger = ground.open()
        with raised(DatabaseAway), ledger.transaction() as tx:
            ledger.close()
            tx.operations.enqueue([new_operation("r", 1)], None)
        assert ground.back.rows("operation") == []
        enqueue(ledger, new_operation("r", 2))
        assert len(ground.back.rows("operation")) == 1

    def test_two_writers_of_one_row_are_busy(self, ground: Ground) -> None:
        first, second = ground.open(), ground.open()
        with first.transaction() as tx:
            tx.rules.write(RuleState("r", "f", RuleCondition.ACTIVE))
        with first.transaction() as tx:
            tx.rules.lock("r")
            with raised(DatabaseBusy), second.transaction() as other:
                other.rules.lock("r")

    def test_keeping_house_again_makes_only_what_is_missing(self, ground: Ground) -> None:
        ledger = ground.open()
        ledger.keep_house()
        ledger.keep_house()
        enqueue(ledger, new_operation("r", 1))

    def test_tells_when_the_server_was_started(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction():
            pass
        started_at = ledger.server_started_at
        assert (started_at is not None) == ground.has_server()
        assert started_at is None or isinstance(started_at.utcoffset(), timedelta)
        with ledger.transaction():
            pass
        assert _same(started_at, ledger.server_started_at)

    def test_a_batch_limit_is_a_number_of_rows(self, ground: Ground) -> None:
        limit = ground.open().batch_limit
        assert limit is None or limit > 0

    def test_a_second_close_does_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        ledger.close()
        ledger.close()


def _same(one: datetime | None, other: datetime | None) -> bool:
    return one == other
