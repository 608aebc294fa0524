"""The SQL ledger keeps the contract of tenants that a table of the customer's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from freehold.domain.rules import Condition, Predicate, TableName, Test
from freehold.domain.tenant_mapping import TenantMapping
from freehold.testing.contracts.tenant_source import SourcedTenantsContract, TenantRowsContract

if TYPE_CHECKING:
    from freehold.testing.backdoor import BackDoor
    from tests.contract.grounds import SqlGround

TABLE = """
drop table if exists "contract Property";
create table "contract Property" (
    id integer unique, title text, zone text, mails text, live text);
"""
LIVE = Predicate(((Condition("live", Test.IN, ("yes", "new")),),))


@dataclass
class Properties:
    """Implements `testing.contracts.tenant_source.TenantsDoor`."""

    door: BackDoor

    mapping = TenantMapping(
        TableName("contract Property"), "id", "title", "zone", None, "mails", None, LIVE
    )

    def put(self, number: int | None, *texts: str | None) -> None:
        named = dict(zip("abcd", texts, strict=True))
        self.door.execute(
            'insert into "contract Property" values (:id, :a, :b, :c, :d)', id=number, **named
        )

    def remove(self, number: int) -> None:
        assert self.door.execute('delete from "contract Property" where id = :id', id=number) == 1

    def break_table(self) -> None:
        self.door.script('alter table "contract Property" drop column title')


@pytest.fixture
def source(ground: SqlGround) -> Properties:
    """An empty table of the customer's."""
    ground.back.door.script(TABLE)
    return Properties(ground.back.door)


class TestTenantRows(TenantRowsContract):
    pass


class TestSourcedTenants(SourcedTenantsContract):
    pass
