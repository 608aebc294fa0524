"""Doctor on PostgreSQL: types, rights, row-level security, roles and the server."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.inspection.postgres import pooler_hint
from freehold.application.doctor import Code, Severity
from freehold.application.doctor.server import server_findings
from freehold.domain.due import DueKind, EmptyDue
from freehold.domain.rules import Companion, DeleteRow, Now, SetColumns, TableName, TenantSource
from freehold.ports.inspection import ServerFacts
from tests.contract.ward import RULE, Ward, codes, due, where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehold.domain.rules import Rule


@pytest.fixture
def ward(postgres_ward: Ward) -> Ward:
    return postgres_ward


# -------------------------------------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        (DueKind.NAIVE, "timestamptz"),
        (DueKind.EPOCH_SECONDS, "timestamptz"),
        (DueKind.INSTANT, "timestamp"),
        (DueKind.INSTANT, "date"),
        (DueKind.DATE, "timestamp"),
        (DueKind.NAIVE, "text"),
        (DueKind.ISO, "timestamptz"),
        (DueKind.ISO, "bigint"),
        (DueKind.EPOCH_SECONDS, "text"),
        (DueKind.EPOCH_MILLIS, "integer"),
        (DueKind.INSTANT, "interval"),
    ],
)
def test_a_kind_that_the_type_does_not_hold_is_refused(
    ward: Ward, kind: DueKind, type_: str
) -> None:
    ward.retype_due(type_)
    assert f"kind {kind}" in ward.refused(Code.DUE_TYPE, due(kind=kind)).sentence


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        (DueKind.INSTANT, "timestamptz(3)"),
        (DueKind.NAIVE, "timestamp(0)"),
        (DueKind.DATE, "date"),
        (DueKind.EPOCH_SECONDS, "integer"),
        (DueKind.EPOCH_SECONDS, "numeric(20, 3)"),
        (DueKind.EPOCH_SECONDS, "double precision"),
        (DueKind.EPOCH_MILLIS, "bigint"),
        (DueKind.ISO, "varchar(40)"),
        (DueKind.ISO, "jsonb"),
        (DueKind.INSTANT, "moment"),
    ],
)
def test_a_kind_that_the_type_holds_is_fine(ward: Ward, kind: DueKind, type_: str) -> None:
    ward.run("drop domain if exists moment;\ncreate domain moment as timestamptz;")
    ward.retype_due(type_)
    found = ward.examine(due(kind=kind))
    assert codes(found) <= {Code.FULL_SCAN, Code.EQUAL_DUES}


def test_values_beyond_time_are_counted_as_unreadable(ward: Ward) -> None:
    ward.add(2, "'infinity'")
    finding = ward.warned(Code.UNREADABLE_DUE)
    assert finding.sentence.startswith("2 of 2 held rows")
    assert Code.UNREADABLE_DUE not in codes(ward.examine(due(on_empty=EmptyDue.REVIEW)))


def test_an_unknown_enum_label_is_refused_with_a_guess(ward: Ward) -> None:
    _make_enum(ward)
    rule = replace(RULE, held=where("status", "hold"))
    assert "did you mean held?" in ward.refused(Code.LITERAL, rule).sentence


def test_the_partial_index_of_an_enum_serves(ward: Ward) -> None:
    _make_enum(ward)
    ward.mend(ward.warned(Code.DUE_INDEX))


def _make_enum(ward: Ward) -> None:
    ward.run(
        "create type mood as enum ('held', 'expired');\ndrop index hold_due;\n"
        "drop index hold_tenant;\nalter table hold alter status type mood using status::mood;\n"
        "create index hold_tenant on hold (tenant_id, due);"
    )


def test_the_partial_index_of_a_truth_and_a_number_serves(ward: Ward) -> None:
    ward.run(
        "drop index hold_due;\nalter table hold add open boolean not null default true;\n"
        "alter table hold add step smallint;\ngrant select (open, step) on hold to app;"
    )
    both = (*where("open", True).alternatives[0], *where("step", 1, 2).alternatives[0])
    rule = replace(RULE, held=replace(RULE.held, alternatives=(both,)), action=DeleteRow())
    ward.run("grant delete on hold to app;")
    ward.mend(ward.warned(Code.DUE_INDEX, rule), rule)


def test_a_value_too_long_is_refused(ward: Ward) -> None:
    ward.run("grant update (short) on hold to app;")
    rule = replace(RULE, action=SetColumns((("status", "expired"), ("short", "too long a word"))))
    assert "takes 8" in ward.refused(Code.TOO_LONG, rule).sentence


def test_a_number_out_of_range_is_refused(ward: Ward) -> None:
    ward.run(
        "alter table hold add step smallint;\ngrant update (step) on hold to app;\n"
        "grant select (step) on hold to app;"
    )
    rule = replace(RULE, action=SetColumns((("status", "expired"), ("step", 70_000))))
    assert "out of range" in ward.refused(Code.LITERAL, rule).sentence


def test_now_for_a_column_that_holds_no_time_is_refused(ward: Ward) -> None:
    ward.run(
        "alter table hold add done boolean;\ngrant update (done) on hold to app;\n"
        "grant select (done) on hold to app;"
    )
    rule = replace(RULE, action=SetColumns((("status", "expired"), ("done", Now()))))
    assert "boolean" in ward.refused(Code.CHANGE, rule).sentence


def test_a_generated_column_cannot_be_set(ward: Ward) -> None:
    ward.run(
        "alter table hold add twice bigint generated always as (id * 2) stored;\n"
        "grant select (twice), update (twice) on hold to app;"
    )
    rule = replace(RULE, action=SetColumns((("status", "expired"), ("twice", 1))))
    assert "twice" in ward.refused(Code.CHANGE, rule).sentence


# ------------------------------------------------------------------------------------------- tables


def test_a_materialized_view_is_refused(ward: Ward) -> None:
    ward.run("create materialized view seen as select * from hold;")
    assert ward.refused(Code.NOT_A_TABLE, replace(RULE, table=TableName("seen"))).place == "seen"


def test_a_partitioned_table_is_fine_and_its_index_mends(ward: Ward) -> None:
    ward.run(
        "create table parts (like hold including defaults, primary key (id)) "
        "partition by hash (id);\n"
        "create table parts_0 partition of parts for values with (modulus 2, remainder 0);\n"
        "create table parts_1 partition of parts for values with (modulus 2, remainder 1);\n"
        "grant select (id, tenant_id, status, token, due), update (status) on parts to app;"
    )
    rule = replace(RULE, table=TableName("parts", "public"), tenant=TenantSource())
    finding = ward.warned(Code.DUE_INDEX, rule)
    assert "concurrently" not in (finding.mend or "")
    ward.mend(finding, rule)


def test_a_table_of_another_schema_is_found_by_its_whole_name(ward: Ward) -> None:
    ward.run(
        'drop schema if exists "Shop" cascade;\ncreate schema "Shop";\n'
        'alter table hold set schema "Shop";'
    )
    assert "did you mean Shop.hold?" in ward.refused(Code.TABLE_MISSING).sentence
    rule = replace(RULE, table=TableName("hold", "Shop"))
    finding = ward.refused(Code.RIGHT_MISSING, rule)
    assert "USAGE of the schema" in finding.sentence
    ward.mend(finding, rule)
    ward.run('drop schema "Shop" cascade;')


# ------------------------------------------------------------------------------------------- rights


@pytest.mark.parametrize(
    ("lost", "named"),
    [
        ("revoke select (token) on hold from app", "SELECT (token)"),
        ("revoke update (status) on hold from app", "UPDATE (status)"),
    ],
)
def test_a_missing_right_is_refused_and_granted(ward: Ward, lost: str, named: str) -> None:
    ward.run(f"{lost};")
    finding = ward.refused(Code.RIGHT_MISSING)
    assert named in finding.sentence
    ward.mend(finding)


def test_a_delete_needs_delete_and_a_right_to_lock(ward: Ward) -> None:
    ward.run("revoke update (status) on hold from app;")
    rule = replace(RULE, action=DeleteRow())
    finding = ward.refused(Code.RIGHT_MISSING, rule)
    assert "DELETE" in finding.sentence
    assert "lock" in finding.sentence
    ward.mend(finding, rule)
    assert Code.RIGHT_UNNEEDED not in codes(ward.examine(rule))


def test_the_columns_that_companions_read_need_a_right(ward: Ward) -> None:
    ward.run("revoke select (short) on hold from app;")
    rule = replace(RULE, companions=(Companion("select 1 where :short = 'x'", lock_by="id"),))
    finding = ward.refused(Code.RIGHT_MISSING, rule)
    assert "SELECT (short)" in finding.sentence
    ward.mend(finding, rule)


def test_a_companion_without_its_right_is_refused(ward: Ward) -> None:
    ward.run("create table stock (id bigint primary key, free int);")
    companion = Companion("update stock set free = free + 1 where id = :id", lock_by="id")
    rule = replace(RULE, companions=(companion,))
    assert "permission denied" in ward.refused(Code.COMPANION, rule).sentence
    ward.run("grant select, update on stock to app;")
    assert Code.COMPANION not in codes(ward.examine(rule))


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        ("update", "UPDATE (id, tenant_id, token, due, short, born)"),
        ("delete", "DELETE"),
        ("insert, truncate", "INSERT, TRUNCATE"),
    ],
)
def test_rights_that_nobody_needs_are_warned_of(ward: Ward, extra: str, named: str) -> None:
    ward.run(f"grant {extra} on hold to app;")
    finding = ward.warned(Code.RIGHT_UNNEEDED)
    assert named in finding.sentence
    ward.mend(finding)


def test_an_owner_is_warned_of(ward: Ward) -> None:
    ward.run("alter table hold owner to app;")
    assert "owns table hold" in ward.warned(Code.RIGHT_UNNEEDED).sentence


# --------------------------------------------------------------------------------------------- roles


def test_a_superuser_is_warned_of_and_refused_when_strict(ward: Ward) -> None:
    url = ward.url.replace("//app:", "//postgres:")
    assert "postgres is a superuser" in ward.warned(Code.SUPERUSER, url=url).sentence
    refused = [one for one in ward.examine(strict=True, url=url) if one.severity == "refuse"]
    assert [one.code for one in refused] == [Code.SUPERUSER]


def test_a_role_that_bypasses_row_security_is_warned_of(ward: Ward) -> None:
    with _altered(ward, "alter role app bypassrls;", "alter role app nobypassrls;"):
        finding = ward.warned(Code.BYPASS_ROW_SECURITY)
        assert Severity.REFUSE in {one.severity for one in ward.examine(strict=True)}
        ward.mend(finding)


def test_row_security_that_hides_every_row_is_refused(ward: Ward) -> None:
    ward.run("alter table hold enable row level security;")
    assert Code.ROW_SECURITY in codes(ward.examine())
    ward.add(3, "now()")
    assert "no row" in ward.refused(Code.ROW_SECURITY).sentence
    ward.run("create policy all_of_it on hold to app using (true);")
    assert "only what its policy shows" in ward.warned(Code.ROW_SECURITY).sentence


def test_row_security_that_raises_without_its_setting_is_refused(ward: Ward) -> None:
    ward.add(3, "now()")
    ward.run(
        "alter table hold enable row level security;\n"
        "create policy by_org on hold using (tenant_id = current_setting('app.org')::bigint);"
    )
    (finding,) = [one for one in ward.examine() if one.code is Code.ROW_SECURITY]
    assert finding.severity is Severity.REFUSE
    assert "app.org" in finding.sentence


def test_commits_that_are_not_durable_by_default_are_warned_of(ward: Ward) -> None:
    off, on = (f"alter role app {how};" for how in ("set synchronous_commit = off", "reset all"))
    with _altered(ward, off, on):
        assert "is off" in ward.warned(Code.SYNCHRONOUS_COMMIT).sentence


@contextmanager
def _altered(ward: Ward, before: str, after: str) -> Iterator[None]:
    """Change the shared role, and change it back."""
    ward.run(before)
    try:
        yield
    finally:
        ward.run(after)


# ------------------------------------------------------------------------------------------- server


class _Late:
    def read(self, database_now: datetime) -> datetime:
        return database_now - timedelta(minutes=10)


def test_a_clock_that_differs_is_warned_of(ward: Ward) -> None:
    assert "600 s ahead of" in ward.warned(Code.CLOCK_SKEW, clock=_Late()).sentence


def test_an_old_server_is_refused(ward: Ward) -> None:
    inspection = ward.inspection()
    now = inspection.server().now
    old = ServerFacts("PostgreSQL", (14, 11), now)
    (finding,) = server_findings(old, now, inspection.mends, strict=False)
    inspection.close()
    assert (finding.code, finding.severity) == (Code.SERVER_VERSION, Severity.REFUSE)
    assert "PostgreSQL 14" in finding.sentence


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("postgresql://app@db:6432/app", "port 6432"),
        ("postgresql://app@eu.pooler.example.com/app", "the host name eu.pooler.example.com"),
        ("postgresql://app@db/app", None),
        ("postgresql:///app", None),
    ],
)
def test_a_pooler_is_guessed_from_the_address(url: str, hint: str | None) -> None:
    assert pooler_hint(url) == hint


def test_a_rule_of_every_action_reads_its_own_plan(ward: Ward) -> None:
    """The proof of an index must not depend on what the table holds."""
    ward.add(50, "now() - interval '1 day'")
    ward.run("analyze hold;")
    rules: list[Rule] = [RULE, due(inclusive=False), due(grace=timedelta(minutes=5))]
    assert codes(ward.examine(*rules)) <= {Code.OVERLAP}


def test_dates_want_an_index_that_goes_on_with_the_key(postgres_ward: Ward) -> None:
    postgres_ward.retype_due("date")
    rule = due(kind=DueKind.DATE)
    postgres_ward.mend(postgres_ward.warned(Code.EQUAL_DUES, rule), rule)
    assert Code.EQUAL_DUES not in codes(postgres_ward.examine(rule))
