"""The contract of `ports.ledger.Operations`: building operations anew under another mapping."""

from __future__ import annotations

from freehold.domain.errors import ChangeLost, RowRefused
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Ground,
    new_operation,
    only,
    raised,
)


class RebuildingContract:
    """Give the fixture `ground`."""

    def test_an_operation_names_the_mapping_that_built_it(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            tx.operations.enqueue([new_operation("r", 1)], None, "one")
            tx.operations.enqueue([new_operation("r", 2)], None)
            claims = tx.operations.claim("r", 10, None)
        assert {one.hold_key: one.fingerprint for one in claims} == {"1": "one", "2": None}

    def test_rebuild_writes_what_the_other_mapping_reads(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            tx.operations.enqueue([new_operation("r", 1, generation=3)], None, "one")
            (claim,) = tx.operations.lease("r", 10, None, NOW + 30 * SECOND)
            other = new_operation("r", 1, NOW - SECOND, guard='["x"]', tenant="u")
            tx.operations.rebuild({claim.id: other}, "two")
            (again,) = tx.operations.claim_these([claim.id], claim.lease_token)
        row = only(ground.back.rows("operation"))
        assert (row["digest"], row["identity"], row["guard"]) == (
            other.digest,
            other.identity,
            other.guard,
        )
        assert (row["due_at"], row["tenant"], row["fingerprint"]) == (NOW - SECOND, "u", "two")
        assert (row["generation"], row["attempt"], row["state"]) == (3, 1, "leased")
        assert (again.digest, again.fingerprint) == (other.digest, "two")

    def test_a_rebuild_of_what_is_gone_is_lost(self, ground: Ground) -> None:
        with raised(ChangeLost), ground.open().transaction() as tx:
            tx.operations.rebuild({17: new_operation("r", 1)}, "two")

    def test_an_identity_is_open_once_after_a_rebuild_too(self, ground: Ground) -> None:
        ledger = ground.open()
        earlier = new_operation("r", 1, NOW - SECOND)
        with ledger.transaction() as tx:
            tx.operations.enqueue([earlier, new_operation("r", 1)], None, "one")
            claims = {one.due_at: one for one in tx.operations.claim("r", 10, None)}
        with raised(RowRefused), ledger.transaction() as tx:
            tx.operations.rebuild({claims[NOW].id: earlier}, "two")
