"""Doctor looks at the customer's table of tenants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import SystemClock
from freehold.application.doctor import Code, Severity, examine
from freehold.bootstrap import open_inspection
from freehold.domain.rules import TableName
from freehold.domain.tenant_mapping import TenantMapping
from freehold.settings import DatabaseSettings, Settings
from tests.contract.ward import where

if TYPE_CHECKING:
    from tests.contract.ward import Ward

TABLE = """
create table property (id bigint primary key, code text, title text, state text, rank int);
"""
MAPPING = TenantMapping(
    TableName("property"), "id", name="title", active=where("state", "live", "trial")
)


def found(ward: Ward, mapping: TenantMapping) -> dict[Code, str]:
    """Examine the mapping; return what was found of it, by code."""
    inspection = open_inspection(Settings(DatabaseSettings(ward.url)))
    try:
        every = examine(inspection, (), SystemClock(), tenants=mapping)
    finally:
        inspection.close()
    about = [one for one in every if "[tenants]" in one.sentence or "property" in one.sentence]
    assert all((one.severity is Severity.OK) == (one.code is Code.FITS) for one in about)
    return {one.code: one.sentence for one in about}


@pytest.fixture
def ground(ward: Ward) -> Ward:
    """A sound table of tenants."""
    ward.run(TABLE)
    if ward.dialect == "postgres":
        ward.run("grant select on property to app;")
    return ward


def test_a_sound_table_fits(ground: Ward) -> None:
    assert list(found(ground, MAPPING)) == [Code.FITS]


@pytest.mark.parametrize(
    ("mapping", "code", "words"),
    [
        (replace(MAPPING, table=TableName("propertys")), Code.TABLE_MISSING, "did you mean"),
        (replace(MAPPING, zone="titel"), Code.COLUMN_MISSING, "did you mean title?"),
        (replace(MAPPING, id="code"), Code.KEY_NOT_UNIQUE, "add a unique index"),
        (replace(MAPPING, active=where("rank", "high")), Code.LITERAL, "compares it with 'high'"),
    ],
)
def test_what_keeps_it_from_being_read_is_refused(
    ground: Ward, mapping: TenantMapping, code: Code, words: str
) -> None:
    said = found(ground, mapping)
    if code is Code.LITERAL and ground.dialect == "sqlite" and code not in said:
        assert list(said) == [Code.FITS]  # a column there may hold any text
        return
    assert list(said) == [code]
    assert words in said[code]


def test_a_right_that_is_missing_is_named(postgres_ward: Ward) -> None:
    postgres_ward.run(TABLE)
    postgres_ward.run("grant select (id, title) on property to app;")
    assert (
        "lacks SELECT (state) on table property"
        in found(postgres_ward, MAPPING)[Code.RIGHT_MISSING]
    )


def test_an_id_without_a_type_is_refused(sqlite_ward: Ward) -> None:
    sqlite_ward.run("create table property (id primary key, title text, state text);")
    assert Code.KEY_WITHOUT_TYPE in found(sqlite_ward, MAPPING)
