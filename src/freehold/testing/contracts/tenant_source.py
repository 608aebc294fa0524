"""The contract of `ports.tenant_source`: the customer's rows, and ours that came from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from freehold.domain.errors import RuleRefused
from freehold.domain.inventory import Tenant
from freehold.domain.tenant_mapping import TenantMapping, TenantRow
from freehold.ports.ledger import Ledger
from freehold.ports.tenant_source import Taken
from freehold.testing.contracts.ground import NOW, SECOND, Ground, only, raised
from freehold.testing.contracts.inventory import ANNA, BERT


class TenantsDoor(Protocol):
    """An empty table of tenants, written by the plain driver.

    Its columns: `id`, a whole number; `title`, `zone`, `mails`, `live`, all text.
    """

    @property
    def mapping(self) -> TenantMapping:
        """Return the mapping of id, name, zone and recipients; active where live is `yes` or `new`."""
        ...

    def put(self, number: int | None, *texts: str | None) -> None:
        """Write a row: id, title, zone, mails, live."""
        ...

    def remove(self, number: int) -> None:
        """Delete a row."""
        ...

    def break_table(self) -> None:
        """Take the column `title` away."""
        ...


class TenantRowsContract:
    """Give the fixtures `ground` and `source`."""

    def test_rows_come_in_the_order_of_their_id_as_texts(
        self, ground: Ground, source: TenantsDoor
    ) -> None:
        source.put(10, "Zehn", "Europe/Berlin", "a@x;b@x", "yes")
        source.put(9, None, "", '["c@x"]', "no")
        source.put(None, "nobody", None, None, "yes")
        source.put(-3, "d'accord \" \\ \u2028", "infinity", None, None)
        with ground.open().transaction() as tx:
            rows = tx.tenant_rows(source.mapping)
            found = rows.find(None, 2)
            assert list(found) == [
                _row("-3", "d'accord \" \\ \u2028", "infinity", None, active=False),
                _row("9", None, "", '["c@x"]', active=False),
            ]
            assert list(rows.find("9", 2)) == [_row("10", "Zehn", "Europe/Berlin", "a@x;b@x")]
            assert list(rows.find("10", 2)) == []

    def test_without_a_predicate_every_row_is_active(
        self, ground: Ground, source: TenantsDoor
    ) -> None:
        source.put(1, "one", None, None, None)
        mapping = TenantMapping(source.mapping.table, "id")
        with ground.open().transaction() as tx:
            assert list(tx.tenant_rows(mapping).find(None, 2)) == [TenantRow("1", {}, active=True)]

    def test_it_tells_who_is_still_there(self, ground: Ground, source: TenantsDoor) -> None:
        source.put(1, "one", None, None, "yes")
        source.put(2, "two", None, None, "no")
        source.put(3, "three", None, None, None)
        with ground.open().transaction() as tx:
            rows = tx.tenant_rows(source.mapping)
            assert rows.standing(["1", "2", "3", "4"]) == {"1": True, "2": False, "3": False}
            assert rows.standing([]) == {}

    def test_a_column_that_is_not_there_is_refused(
        self, ground: Ground, source: TenantsDoor
    ) -> None:
        source.break_table()
        ledger = ground.open()
        with raised(RuleRefused), ledger.transaction() as tx:
            tx.tenant_rows(source.mapping)
        gone = replace(source.mapping, table=replace(source.mapping.table, name="nowhere"))
        with raised(RuleRefused), ledger.transaction() as tx:
            tx.tenant_rows(gone)


class SourcedTenantsContract:
    """Give the fixture `ground`."""

    def test_each_is_answered_for(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            tx.tenants.add([ANNA])
        assert _write(ledger, ANNA, BERT) == [Taken.TAKEN_OVER, Taken.NEW]
        assert _write(ledger, ANNA, replace(BERT, zone="UTC")) == [Taken.SAME, Taken.CHANGED]
        assert _write(ledger) == []
        with ledger.transaction() as tx:
            assert list(tx.tenants.read(["anna", "bert"])) == [ANNA, replace(BERT, zone="UTC")]

    def test_only_what_came_from_there_is_retired(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            tx.tenants.add([ANNA])
        _write(ledger, BERT, Tenant("carl", "Carl"), Tenant("dora", "Dora", active=False))
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            assert list(tx.sourced_tenants.find("", 1)) == ["bert"]
            assert list(tx.sourced_tenants.find("bert", 9)) == ["carl"]
            assert tx.sourced_tenants.among(["anna", "bert", "dora", "x"]) == {"bert", "dora"}
            assert tx.sourced_tenants.retire(["anna", "bert", "dora", "x"]) == 1
            assert tx.sourced_tenants.retire([]) == 0
        with ledger.transaction() as tx:
            assert list(tx.sourced_tenants.find("", 9)) == ["carl"]
            active = {one.id: one.active for one in tx.tenants.find("", 9)}
        assert active == {"anna": True, "bert": False, "carl": True, "dora": False}
        changed = [row for row in ground.back.rows("tenant") if row["changed_at"] != NOW]
        assert only(changed)["id"] == "bert"


def _row(
    number: str, title: str | None, zone: str | None, mails: str | None, *, active: bool = True
) -> TenantRow:
    return TenantRow(number, {"name": title, "zone": zone, "recipients": mails}, active)


def _write(ledger: Ledger, *tenants: Tenant) -> Sequence[Taken]:
    with ledger.transaction() as tx:
        return list(tx.sourced_tenants.write(tenants))
