"""The contract of `ports.due_by_tenant.DueByTenant`: due rows read tenant by tenant."""

from __future__ import annotations

from collections.abc import Sequence

from freehold.domain.due import read_due
from freehold.domain.names import digest
from freehold.domain.operations import NewOperation
from freehold.ports.due_by_tenant import DueByTenant, TenantKey, TenantPlace
from freehold.ports.holds import FoundHold, ScanCursor
from freehold.testing.contracts.ground import NOW, SECOND, Ground

NOBODY = TenantKey(None)


class DueByTenantContract:
    """Give the fixture `ground`."""

    def test_it_is_served_by_an_index_on_tenant_and_due(self, ground: Ground) -> None:
        assert not _is_served(ground)
        ground.back.index_tenants("tenant, hold_until")
        assert _is_served(ground)

    def test_it_is_served_by_a_partial_index_that_holds_every_held_row(
        self, ground: Ground
    ) -> None:
        ground.back.index_tenants("tenant, hold_until, id", "status = 'held'")
        assert _is_served(ground)

    def test_it_is_not_served_by_an_index_that_leaves_held_rows_out(self, ground: Ground) -> None:
        ground.back.index_tenants("tenant, hold_until", "status = 'held' and id > 5")
        assert not _is_served(ground)

    def test_it_is_not_served_by_another_order_or_an_expression(self, ground: Ground) -> None:
        ground.back.index_tenants("hold_until, tenant")
        ground.back.index_tenants("lower(tenant), hold_until")
        ground.back.index_tenants("tenant, id, hold_until")
        assert not _is_served(ground)

    def test_an_index_is_noticed_within_a_minute(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            assert not tx.due_by_tenant(ground.rule).is_served()
        ground.back.index_tenants("tenant, hold_until")
        ground.set_now(NOW + 60 * SECOND)
        with ledger.transaction() as tx:
            assert tx.due_by_tenant(ground.rule).is_served()

    def test_a_round_finds_each_tenant_with_due_rows_once(self, ground: Ground) -> None:
        _fill(ground)
        assert _round(ground, 2) == _round(ground, 50)
        assert len(_round(ground, 2)) == 4

    def test_a_round_begins_with_the_rows_of_nobody(self, ground: Ground) -> None:
        _fill(ground)
        with ground.open().transaction() as tx:
            assert tx.due_by_tenant(ground.rule).find_tenants(None, 1).due[0] == NOBODY

    def test_the_limit_ends_a_step_of_a_round(self, ground: Ground) -> None:
        _fill(ground)
        with ground.open().transaction() as tx:
            reads = tx.due_by_tenant(ground.rule)
            first = reads.find_tenants(None, 3)
            assert len(first.due) == 3
            assert first.end == first.due[-1]
            assert len(reads.find_tenants(first.end, 3).due) == 1

    def test_since_and_behind_leave_tenants_out(self, ground: Ground) -> None:
        _fill(ground)
        with ground.open().transaction() as tx:
            reads = tx.due_by_tenant(ground.rule)
            since = reads.find_tenants(None, 9, since=NOW - 3 * SECOND).due
            assert _names(reads, since) == ["c"]
            at = tx.holds(ground.rule).find_due(None, 9)[-2]
            behind = ScanCursor(at.due or "", at.hold_key)
            assert _names(reads, reads.find_tenants(None, 9, behind=behind).due) == ["c"]

    def test_rows_come_by_tenant_in_the_order_of_due_and_key(self, ground: Ground) -> None:
        _fill(ground)
        assert _read(ground, [], each=9, limit=99) == [["9"], ["3", "1", "2"], ["4"], ["5"]]

    def test_each_bounds_a_tenant_and_limit_all(self, ground: Ground) -> None:
        _fill(ground)
        assert _read(ground, [], each=2, limit=99) == [["9"], ["3", "1"], ["4"], ["5"]]
        assert _read(ground, [], each=2, limit=2) == [["9"], ["3"]]
        assert _read(ground, [], each=2, limit=1) == [["9"]]

    def test_a_place_is_gone_on_from(self, ground: Ground) -> None:
        _fill(ground)
        assert _read(ground, ["9", "3", "4"], each=9, limit=99) == [[], ["1", "2"], []]
        assert _read(ground, ["1"], each=9, limit=99) == [["2"]]

    def test_rows_of_nobody_are_gone_on_from_too(self, ground: Ground) -> None:
        _fill(ground)
        _add(ground, 8, None, 1)
        assert _read(ground, ["9", "3"], each=9, limit=99) == [["8"], ["1", "2"]]

    def test_open_rows_are_marked(self, ground: Ground) -> None:
        _fill(ground)
        ledger = ground.open()
        with ledger.transaction() as tx:
            (found,) = tx.holds(ground.rule).find_due(None, 1)
            tx.operations.enqueue([_operation(ground, found)], None)
        with ledger.transaction() as tx:
            reads = tx.due_by_tenant(ground.rule)
            due = reads.find_tenants(None, 9).due
            rows = reads.find_due([TenantPlace(one) for one in due], 9, 99)
        assert [one.hold_key for all_of in rows for one in all_of if one.is_open] == ["9"]


def _add(ground: Ground, key: int, tenant: str | None, seconds: int) -> None:
    ground.back.add_hold(key, NOW - seconds * SECOND)
    ground.back.change_hold(key, "tenant", tenant)


def _fill(ground: Ground) -> None:
    """Make four tenants with due rows, one of them nobody, among others without."""
    ground.back.index_tenants("tenant, hold_until")
    for key, tenant, seconds in (
        *((1, "a", 4), (2, "a", 4), (3, "a", 5), (4, "b", 4), (5, "c", 1), (6, "d", -1)),
        *((7, "e", 5), (9, None, 6)),
    ):
        _add(ground, key, tenant, seconds)
    ground.back.change_hold(7, "status", "confirmed")


def _is_served(ground: Ground) -> bool:
    with ground.open().transaction() as tx:
        return tx.due_by_tenant(ground.rule).is_served()


def _round(ground: Ground, limit: int) -> list[TenantKey]:
    """Do a whole round; leave out tenants that turn out to have no due rows."""
    found: list[TenantKey] = []
    after: TenantKey | None = None
    with ground.open().transaction() as tx:
        reads = tx.due_by_tenant(ground.rule)
        while True:
            step = reads.find_tenants(after, limit)
            rows = reads.find_due([TenantPlace(one) for one in step.due], 9, 99)
            found += [one for one, held in zip(step.due, rows, strict=True) if held]
            after = step.end
            if after is None:
                return found


def _names(reads: DueByTenant, tenants: Sequence[TenantKey]) -> list[str | None]:
    places = [TenantPlace(one) for one in tenants if one != NOBODY]
    return [found[0].tenant for found in reads.find_due(places, 1, 99)]


def _read(ground: Ground, after: Sequence[str], *, each: int, limit: int) -> list[list[str]]:
    """Read from the beginning of every tenant, or behind named rows, each that of one tenant."""
    with ground.open().transaction() as tx:
        reads = tx.due_by_tenant(ground.rule)
        tenants = reads.find_tenants(None, 9).due
        places = [TenantPlace(one) for one in tenants]
        if after:
            whole = reads.find_due(places, 9, 99)
            places = [
                TenantPlace(tenant, ScanCursor(row.due or "", row.hold_key))
                for key in after
                for tenant, rows in zip(tenants, whole, strict=True)
                for row in rows
                if row.hold_key == key
            ]
        rows = reads.find_due(places, each, limit)
    return [[one.hold_key for one in found] for found in rows]


def _operation(ground: Ground, found: FoundHold) -> NewOperation:
    due_at = read_due(ground.rule.due, found.due)
    return NewOperation(
        rule=ground.rule.name,
        tenant=found.tenant,
        hold_key=found.hold_key,
        digest=digest(ground.rule.name, found.hold_key, found.identity),
        identity=found.identity,
        guard=found.guard,
        due_at=None if isinstance(due_at, str) else due_at,
    )
