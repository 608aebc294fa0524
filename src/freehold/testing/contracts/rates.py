"""The contract of the rate at which the backlog of an attach is taken up."""

from __future__ import annotations

from freehold.domain.errors import DatabaseBusy
from freehold.ports.rates import AttachRate
from freehold.testing.contracts.ground import NOW, SECOND, Ground, raised


class AttachRatesContract:
    """Give the fixture `ground`."""

    def test_a_rule_has_no_rate_until_one_is_written(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            assert tx.rates.lock("r") is None
            tx.rates.write("r", 2.5)
        with ledger.transaction() as tx:
            assert tx.rates.lock("r") == AttachRate(2.5, NOW, NOW)
            assert tx.rates.lock("q") is None

    def test_what_is_spent_is_kept_and_another_rate_begins_anew(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            tx.rates.write("r", 1)
            tx.rates.spend("r", NOW + 9 * SECOND)
            assert tx.rates.lock("r") == AttachRate(1, NOW, NOW + 9 * SECOND)
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            tx.rates.write("r", 3)
            assert tx.rates.lock("r") == AttachRate(3, NOW + SECOND, NOW + SECOND)

    def test_a_rate_ends(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            tx.rates.write("r", 1)
            tx.rates.write("q", 1)
            tx.rates.end("r")
            tx.rates.end("r")
            assert tx.rates.lock("r") is None
            assert tx.rates.lock("q") is not None

    def test_nobody_else_spends_of_a_locked_rate(self, ground: Ground) -> None:
        first, second = ground.open(), ground.open()
        with first.transaction() as tx:
            tx.rates.write("r", 1)
        with first.transaction() as tx:
            assert tx.rates.lock("r") is not None
            with raised(DatabaseBusy), second.transaction() as other:
                other.rates.lock("r")
