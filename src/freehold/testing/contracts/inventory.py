"""The contract of `ports.inventory`: tenants and units. The holds: `own_holds`."""

from __future__ import annotations

from dataclasses import replace

from freehold.domain.errors import DatabaseBusy, RowRefused
from freehold.domain.inventory import NewUnit, Tenant, Unit
from freehold.ports.inventory import Written
from freehold.ports.ledger import Ledger
from freehold.testing.contracts.ground import NOW, SECOND, Ground, only, raised

ANNA = Tenant("anna", "Anna's Hütte", "Europe/Vienna", 7, ("a@example.org", "b@example.org"), "de")
BERT = Tenant("bert", "Bert")


def with_tenants(ledger: Ledger, *tenants: Tenant) -> None:
    """Write tenants and commit."""
    with ledger.transaction() as tx:
        tx.tenants.add(tenants)


def with_units(ledger: Ledger, *names: str, tenant: str = "anna") -> list[Unit]:
    """Write units of a tenant, which is made where it is missing, and commit."""
    with ledger.transaction() as tx:
        tx.tenants.add([Tenant(tenant, tenant)])
        tx.units.add([NewUnit(tenant, name) for name in names])
        by_name = {one.name: one for one in tx.units.named(tenant, names)}
    return [by_name[name] for name in names]


class TenantsContract:
    """Give the fixture `ground`."""

    def test_what_was_written_is_read(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            assert list(tx.tenants.add([BERT, ANNA])) == [Written.NEW, Written.NEW]
            assert list(tx.tenants.read(["bert", "anna", "nobody"])) == [ANNA, BERT]
            assert list(tx.tenants.add([])) == []
            assert list(tx.tenants.read([])) == []

    def test_nobody_else_changes_a_locked_one(self, ground: Ground) -> None:
        first, second = ground.open(), ground.open()
        with_tenants(first, ANNA, BERT)
        with first.transaction() as tx:
            assert list(tx.tenants.lock(["bert", "nobody", "anna"])) == [ANNA, BERT]
            with raised(DatabaseBusy), second.transaction() as other:
                other.tenants.set([replace(ANNA, active=False)])

    def test_adding_again_changes_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        with_tenants(ledger, ANNA)
        ground.set_now(NOW + SECOND)
        other = replace(ANNA, zone=None)
        with ledger.transaction() as tx:
            assert list(tx.tenants.add([ANNA, other])) == [Written.EXISTS, Written.DIFFERS]
            assert list(tx.tenants.read(["anna"])) == [ANNA]
        assert only(ground.back.rows("tenant"))["changed_at"] == NOW

    def test_an_id_may_stand_twice_in_one_call(self, ground: Ground) -> None:
        other = replace(ANNA, name="other")
        with ground.open().transaction() as tx:
            answers = tx.tenants.add([ANNA, ANNA, other])
            assert list(answers) == [Written.NEW, Written.EXISTS, Written.DIFFERS]
            answers = tx.tenants.set([other, other, ANNA])
            assert list(answers) == [Written.CHANGED, Written.EXISTS, Written.CHANGED]
            assert list(tx.tenants.read(["anna"])) == [ANNA]

    def test_set_writes_whole(self, ground: Ground) -> None:
        ledger = ground.open()
        with_tenants(ledger, ANNA)
        ground.set_now(NOW + SECOND)
        other = Tenant("anna", "Anna", active=False)
        with ledger.transaction() as tx:
            assert list(tx.tenants.set([other, BERT])) == [Written.CHANGED, Written.NEW]
            assert list(tx.tenants.set([other, BERT])) == [Written.EXISTS, Written.EXISTS]
            assert list(tx.tenants.set([])) == []
            assert list(tx.tenants.read(["anna", "bert"])) == [other, BERT]
        first, second = ground.back.rows("tenant")
        assert (first["created_at"], first["changed_at"]) == (NOW, NOW + SECOND)
        assert second["created_at"] == NOW + SECOND

    def test_find_pages_in_id_order(self, ground: Ground) -> None:
        ledger = ground.open()
        tenants = [Tenant(f"t{n}", "some") for n in range(5)]
        with_tenants(ledger, *tenants[::-1])
        with ledger.transaction() as tx:
            assert list(tx.tenants.find("", 2)) == tenants[:2]
            assert list(tx.tenants.find("t1", 2)) == tenants[2:4]
            assert list(tx.tenants.find("t4", 2)) == []


class UnitsContract:
    """Give the fixture `ground`."""

    def test_units_are_named_within_a_tenant(self, ground: Ground) -> None:
        ledger = ground.open()
        with_tenants(ledger, ANNA, BERT)
        new = [NewUnit("bert", "1"), NewUnit("anna", "1"), NewUnit("anna", "2", active=False)]
        with ledger.transaction() as tx:
            assert list(tx.units.add(new)) == [Written.NEW] * 3
            found = tx.units.named("anna", ["2", "1", "3"])
            assert [(one.name, one.active) for one in found] == [("1", True), ("2", False)]
            assert list(tx.units.read([one.id for one in found])) == list(found)
            assert list(tx.units.add([])) == []
            assert list(tx.units.read([])) == []

    def test_adding_again_changes_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        (unit,) = with_units(ledger, "1")
        new = [NewUnit("anna", "1"), NewUnit("anna", "1", active=False), NewUnit("nobody", "1")]
        new += [NewUnit("anna", "2"), NewUnit("anna", "2")]
        with ledger.transaction() as tx:
            assert list(tx.units.add(new)) == [
                Written.EXISTS,
                Written.DIFFERS,
                Written.MISSING,
                Written.NEW,
                Written.EXISTS,
            ]
            assert list(tx.units.read([unit.id])) == [unit]

    def test_set_renames_and_puts_out_of_use(self, ground: Ground) -> None:
        ledger = ground.open()
        one, two = with_units(ledger, "1", "2")
        changed = replace(one, name="one", active=False)
        foreign = replace(two, tenant="bert")
        with ledger.transaction() as tx:
            answers = tx.units.set([changed, two, foreign, replace(two, id=10**9)])
            assert list(answers) == [
                Written.CHANGED,
                Written.EXISTS,
                Written.MISSING,
                Written.MISSING,
            ]
            assert list(tx.units.read([one.id, two.id])) == [changed, two]

    def test_two_units_of_one_name_are_refused(self, ground: Ground) -> None:
        ledger = ground.open()
        one, _ = with_units(ledger, "1", "2")
        with raised(RowRefused), ledger.transaction() as tx:
            tx.units.set([replace(one, name="2")])

    def test_find_pages_in_id_order(self, ground: Ground) -> None:
        ledger = ground.open()
        mine = with_units(ledger, "b", "a", "c")
        theirs = with_units(ledger, "a", tenant="bert")
        mine = sorted(mine, key=lambda one: one.id)
        with ledger.transaction() as tx:
            assert list(tx.units.find("anna", 0, 2)) == mine[:2]
            assert list(tx.units.find("anna", mine[1].id, 2)) == mine[2:]
            assert list(tx.units.find(None, mine[1].id, 9)) == [mine[2], *theirs]
