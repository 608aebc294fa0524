"""Doctor on every database: each defect in a real table is found, and gone once it is mended."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from freehold.application.doctor import Code, Severity
from freehold.bootstrap import open_ledger
from freehold.domain.due import DueKind, EmptyDue
from freehold.domain.errors import RuleRefused
from freehold.domain.rules import (
    Companion,
    Condition,
    DeleteRow,
    Now,
    Predicate,
    Rule,
    SetColumns,
    TableName,
    TenantSource,
    Test,
)
from freehold.settings import DatabaseSettings, Settings
from tests.contract.ward import RULE, Ward, codes, due, where

ENGINE = {Code.ENGINE_VERSION}  # of the SQLite that this Python carries, perhaps
YESTERDAY = {"sqlite": "datetime('now', '-1 day')", "postgres": "now() - interval '1 day'"}


def test_a_sound_rule_has_nothing_to_mend(ward: Ward) -> None:
    ward.add(3, YESTERDAY[ward.dialect])
    found = ward.examine()
    assert codes(found) - ENGINE == set()
    assert Code.FITS in {one.code for one in found}


def test_nothing_is_written(ward: Ward) -> None:
    ward.add(3, YESTERDAY[ward.dialect])
    before = ward.door.execute("select * from hold order by id").fetchall()
    ward.examine(RULE, replace(RULE, name="second", action=DeleteRow()))
    assert ward.door.execute("select * from hold order by id").fetchall() == before


# ------------------------------------------------------------------------------------ names and key


def test_a_missing_table_is_refused_with_a_guess(ward: Ward) -> None:
    rule = replace(RULE, table=TableName("holds"))
    assert "did you mean hold?" in ward.refused(Code.TABLE_MISSING, rule).sentence


def test_a_view_is_refused(ward: Ward) -> None:
    ward.run("create view seen as select * from hold;")
    rule = replace(RULE, table=TableName("seen"))
    assert "view" in ward.refused(Code.NOT_A_TABLE, rule).sentence


def test_a_missing_column_is_refused_with_a_guess(ward: Ward) -> None:
    rule = replace(RULE, fence=("tokn",))
    assert "did you mean token?" in ward.refused(Code.COLUMN_MISSING, rule).sentence


def test_a_key_that_is_not_unique_is_refused(ward: Ward) -> None:
    rule = replace(RULE, key=("tenant_id", "token"))
    ward.mend(ward.refused(Code.KEY_NOT_UNIQUE, rule), rule)


def test_a_partial_unique_index_makes_no_key(ward: Ward) -> None:
    ward.run("create unique index partly on hold (token) where status = 'held';")
    assert ward.refused(Code.KEY_NOT_UNIQUE, replace(RULE, key=("token",))).place == "token"


def test_a_key_that_may_be_null_is_warned_of(ward: Ward) -> None:
    ward.run("create unique index short_key on hold (short);")
    rule = replace(RULE, key=("short",))
    finding = ward.warned(Code.KEY_NULLABLE, rule)
    if ward.dialect == "postgres":
        ward.mend(finding, rule)


# ---------------------------------------------------------------------------------------------- due


@pytest.mark.parametrize("kind", [DueKind.EPOCH_SECONDS, DueKind.EPOCH_MILLIS])
def test_a_due_of_another_type_is_refused(ward: Ward, kind: DueKind) -> None:
    assert ward.refused(Code.DUE_TYPE, due(kind=kind, zone=None)).place == "due"


def test_an_instant_in_a_column_of_local_times_is_refused(ward: Ward) -> None:
    assert "naive" in ward.refused(Code.DUE_TYPE, due(kind=DueKind.INSTANT)).sentence


def test_local_times_without_a_zone_are_refused(ward: Ward) -> None:
    assert "zone" in ward.refused(Code.DUE_ZONE, due(zone=None)).sentence


def test_an_unknown_zone_is_refused(ward: Ward) -> None:
    assert "Mars/Olympus" in ward.refused(Code.DUE_ZONE, due(zone="Mars/Olympus")).sentence


def test_rows_without_due_are_counted_with_their_policy(ward: Ward) -> None:
    ward.add(2, "null")
    ward.add(1, "'1970-01-01 00:00:00'", first=3)
    ward.add(1, "null", first=4, status="sold")
    finding = ward.warned(Code.EMPTY_DUE)
    assert finding.sentence.startswith("3 held rows")
    assert "never due" in finding.sentence
    assert Code.EMPTY_DUE not in codes(ward.examine(due(on_empty=EmptyDue.REVIEW)))


def test_a_zone_that_changes_what_is_due_is_warned_of(ward: Ward) -> None:
    now = {"sqlite": "datetime('now', '+1 hour')", "postgres": "now() + interval '1 hour'"}
    ward.add(2, now[ward.dialect])
    finding = ward.warned(Code.ZONE_GUESS, due(zone="Pacific/Auckland"))
    assert "2 holds are due now" in finding.sentence
    assert "in UTC it would be 0" in finding.sentence
    assert Code.ZONE_GUESS not in codes(ward.examine())


def test_text_in_any_spelling_is_a_full_scan(ward: Ward) -> None:
    if ward.dialect == "postgres":
        ward.run("alter table hold alter due type text;")
    rule = due(kind=DueKind.ISO)
    ward.add(1, "'2026-01-01T10:00:00+02:00'")
    ward.add(2, "'tomorrow'", first=2)
    assert "every held row" in ward.warned(Code.FULL_SCAN, rule).sentence
    assert "'xxxxxxxx'" in ward.warned(Code.UNREADABLE_DUE, rule).sentence


# ------------------------------------------------------------------------------------------- action


def test_a_null_for_a_column_that_forbids_it_is_refused(ward: Ward) -> None:
    rule = replace(RULE, action=SetColumns((("status", "expired"), ("token", None))))
    assert ward.refused(Code.NULL_REFUSED, _granted(ward, rule)).place == "token"


@pytest.mark.parametrize(
    "action",
    [
        SetColumns((("short", "x"),)),
        SetColumns((("status", "held"),)),
        SetColumns((("status", Now()),)),
    ],
)
def test_an_action_that_leaves_the_hold_held_is_refused(ward: Ward, action: SetColumns) -> None:
    rule = _granted(ward, replace(RULE, action=action))
    assert ward.refused(Code.ACTION_KEEPS_HELD, rule).place == "expire"


def test_deleting_needs_no_condition_to_change(ward: Ward) -> None:
    rule = _granted(ward, replace(RULE, held=Predicate(), action=DeleteRow()))
    assert Severity.REFUSE not in {one.severity for one in ward.examine(rule)}


def test_a_word_for_a_number_is_refused(ward: Ward) -> None:
    rule = replace(
        RULE, held=Predicate((*RULE.held.alternatives, *where("tenant_id", "x").alternatives))
    )
    rule = replace(rule, action=SetColumns((("status", "expired"), ("tenant_id", 0))))
    assert "'x'" in ward.refused(Code.LITERAL, _granted(ward, rule)).sentence


def _granted(ward: Ward, rule: Rule) -> Rule:
    """Give Freehold the rights of the rule, so that only its defect is found."""
    if ward.dialect == "postgres":
        ward.run("grant update on hold to app;\ngrant delete on hold to app;")
    return rule


# --------------------------------------------------------------------------------- work and company


def test_a_missing_index_is_warned_of_with_the_plan(ward: Ward) -> None:
    ward.run("drop index hold_due;\ndrop index hold_tenant;")
    finding = ward.warned(Code.DUE_INDEX)
    assert finding.detail
    ward.mend(finding)


def test_an_index_that_is_not_led_by_due_does_not_serve(ward: Ward) -> None:
    ward.run("drop index hold_due;\ncreate index other on hold (status, due);")
    ward.mend(ward.warned(Code.DUE_INDEX))


def test_a_partial_index_on_other_rows_does_not_serve(ward: Ward) -> None:
    ward.run("drop index hold_due;\ncreate index other on hold (due) where status = 'sold';")
    ward.mend(ward.warned(Code.DUE_INDEX))


def test_an_index_over_all_rows_serves(ward: Ward) -> None:
    ward.run("drop index hold_due;\ncreate index whole on hold (due);")
    assert Code.DUE_INDEX not in codes(ward.examine())


def test_the_index_of_several_alternatives_serves(ward: Ward) -> None:
    ward.run("drop index hold_due;")
    held = Predicate(
        (
            *where("status", "held", "reserved").alternatives,
            (Condition("short", Test.IS_NULL), Condition("status", Test.EQUALS, ("it's",))),
        )
    )
    rule = replace(RULE, held=held)
    ward.mend(ward.warned(Code.DUE_INDEX, rule), rule)


def test_a_missing_tenant_index_is_warned_of(ward: Ward) -> None:
    ward.run("drop index hold_tenant;")
    ward.mend(ward.warned(Code.TENANT_INDEX))
    assert Code.TENANT_INDEX not in codes(ward.examine(replace(RULE, tenant=TenantSource())))


def test_a_tenant_index_that_leaves_held_rows_out_serves_nobody(ward: Ward) -> None:
    ward.run(
        "drop index hold_tenant;\n"
        "create index few on hold (tenant_id, due) where status = 'held' and id > 5;"
    )
    assert Code.TENANT_INDEX in codes(ward.examine())


def test_a_fence_without_token_is_warned_of(ward: Ward) -> None:
    assert "same due" in ward.warned(Code.WEAK_FENCE, replace(RULE, fence=())).sentence


def test_rules_that_may_share_a_row_are_warned_of(ward: Ward) -> None:
    other = replace(
        RULE, name="other", held=where("token", "t"), action=SetColumns((("token", "gone"),))
    )
    _granted(ward, other)
    assert "cart and other" in ward.warned(Code.OVERLAP, RULE, other).sentence


def test_rules_with_different_values_in_one_column_are_disjoint(ward: Ward) -> None:
    other = replace(RULE, name="other", held=where("status", "waiting"))
    assert Code.OVERLAP not in codes(ward.examine(RULE, other))


def test_triggers_are_named(ward: Ward) -> None:
    body = {
        "sqlite": "create trigger watch after update on hold begin select 1; end",
        "postgres": "create trigger watch before update on hold for each row "
        "execute function suppress_redundant_updates_trigger()",
    }
    ward.door.execute(body[ward.dialect])
    (finding,) = [one for one in ward.examine() if one.code is Code.TRIGGERS]
    assert finding.severity is Severity.OK
    assert "watch" in finding.sentence


# --------------------------------------------------------------------------------------- companions


def test_a_companion_with_an_error_is_refused(ward: Ward) -> None:
    rule = replace(RULE, companions=(Companion("update stok set free = free + 1", lock_by=None),))
    assert "stok" in ward.refused(Code.COMPANION, rule).sentence


def test_a_companion_of_several_statements_is_refused_and_not_run(ward: Ward) -> None:
    ward.add(1, "null")
    rule = replace(RULE, companions=(Companion("select 1; delete from hold"),))
    assert "more than one statement" in ward.refused(Code.COMPANION, rule).sentence
    assert ward.door.execute("select count(*) from hold").fetchone()[0] == 1


def test_the_work_refuses_such_a_companion_too_and_runs_nothing(ward: Ward) -> None:
    ward.add(1, "null")
    rule = replace(RULE, companions=(Companion("select 1; delete from hold"),))
    ledger = open_ledger(Settings(database=DatabaseSettings(url=ward.url)))
    refused = pytest.raises(RuleRefused, match="more than one")
    with closing(ledger), refused, ledger.transaction() as tx:
        tx.holds(rule).rehearse()
    assert ward.door.execute("select count(*) from hold").fetchone()[0] == 1


def test_a_semicolon_in_quotes_is_no_end(ward: Ward) -> None:
    sql = "update stock set note = ';' where id = :id; -- one; two"
    _make_stock(ward)
    rule = replace(RULE, companions=(Companion(sql, lock_by="id"),))
    assert Severity.REFUSE not in {one.severity for one in ward.examine(rule)}


def test_any_column_of_the_hold_may_be_a_parameter(ward: Ward) -> None:
    _make_stock(ward)
    companion = Companion("update stock set note = :short where id = :id", lock_by="tenant_id")
    found = ward.examine(replace(RULE, companions=(companion,)))
    assert Severity.REFUSE not in {one.severity for one in found}


def test_a_parameter_that_is_no_column_is_refused_with_a_guess(ward: Ward) -> None:
    _make_stock(ward)
    companion = Companion("update stock set note = :tokn where id = :id", lock_by="id")
    rule = replace(RULE, companions=(companion,))
    assert "did you mean token?" in ward.refused(Code.COMPANION_PARAMETER, rule).sentence


def test_a_companion_without_order_is_warned_of(ward: Ward) -> None:
    _make_stock(ward)
    rule = replace(RULE, companions=(Companion("update stock set note = '' where id = :id"),))
    assert "one batch at a time" in ward.warned(Code.COMPANION_ORDER, rule).sentence


def _make_stock(ward: Ward) -> None:
    ward.run("create table stock (id bigint primary key, note text);")
    if ward.dialect == "postgres":
        ward.run("grant select, update on stock to app;")


@pytest.mark.parametrize(
    ("kind", "other", "value"),
    [
        (DueKind.EPOCH_MILLIS, DueKind.EPOCH_SECONDS, 1_900_000_000),
        (DueKind.EPOCH_SECONDS, DueKind.EPOCH_MILLIS, 1_900_000_000_000),
    ],
)
def test_the_wrong_unit_is_refused(ward: Ward, kind: DueKind, other: DueKind, value: int) -> None:
    ward.retype_due("bigint")
    ward.run(
        "insert into hold (id, tenant_id, status, token, due) "
        f"values (1, 1, 'held', 'a', {value}), (2, 1, 'held', 'b', {value + 1});"
    )
    assert other in ward.refused(Code.DUE_UNIT, due(kind=kind)).sentence
    assert Code.DUE_UNIT not in codes(ward.examine(due(kind=other)))
