"""What a rule cannot say yet is refused in one sentence, by the settings or by doctor.

Each test writes what a person would try. When a later version can say it, its test fails here, and
belongs into the group of its scenario.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import SystemClock
from freehold.application.doctor import Code, Severity, examine
from freehold.bootstrap import open_inspection
from freehold.domain.errors import UsageError
from freehold.settings import load_settings
from tests.scenarios.shop import CART, add, held, open_shop

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stage import Stage

DUE = 'due = { column = "due_at", kind = "naive", zone = "UTC" }'


def refusal(folder: Path, toml: str) -> str:
    """Return the one sentence that refuses a file."""
    file = folder / "freehold.toml"
    file.write_text(toml)
    with pytest.raises(UsageError) as caught:
        load_settings(file, {})
    sentences = str(caught.value).splitlines()
    assert len(sentences) == 1
    assert sentences[0].endswith((".", "?"))
    return sentences[0].removeprefix(f"{file}: ")


def with_due(more: str) -> str:
    return CART.replace(DUE, DUE.replace(" }", f", {more} }}"))


@pytest.mark.parametrize("key", ["base", "plus", "closed_days"])
def test_b16_a_due_is_never_computed(tmp_path: Path, key: str) -> None:
    sentence = refusal(tmp_path, with_due(f'{key} = "x"'))
    assert sentence.startswith(f"rules[0].due.{key} is unknown")


def test_b25_a_second_source_of_due_is_unknown(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, with_due('else = "created_at"'))
    assert sentence.startswith("rules[0].due.else is unknown")


def test_b28_grace_by_a_column_is_refused(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, with_due('grace = { column = "grace_days" }'))
    assert sentence.startswith("rules[0].due.grace ")


GUARD = """
[[rules.guard]]
none = "select 1 from appointment where hold_id = :id"
"""


def test_b36_no_guard_looks_into_other_tables_yet(tmp_path: Path) -> None:
    assert refusal(tmp_path, CART + GUARD).startswith("rules[0].guard is unknown")


def test_n19_no_guard_weighs_child_payments_yet(tmp_path: Path) -> None:
    toml = CART + GUARD.replace("appointment", "payment")
    assert refusal(tmp_path, toml).startswith("rules[0].guard is unknown")


def test_b43_nobody_outside_is_asked_before_a_release(tmp_path: Path) -> None:
    toml = CART + '[[rules.check]]\nurl = "https://example.org/paid"\ntimeout = "2s"\n'
    assert refusal(tmp_path, toml).startswith("rules[0].check is unknown")


def test_n14_a_rate_is_no_setting_yet(tmp_path: Path) -> None:
    toml = CART.replace("[[rules]]", '[[rules]]\nrate = "100/s"')
    assert refusal(tmp_path, toml).startswith("rules[0].rate is unknown")


def test_n14_doctor_says_that_tenants_are_served_in_order_of_due_only(stage: Stage) -> None:
    open_shop(stage)
    found = stage.doctor()[Code.TENANT_INDEX]
    assert "treated fairly only within" in found.sentence


def test_n10_a_json_path_is_no_column(stage: Stage) -> None:
    """The due must be a column of its own, and so must whatever says that a row is held."""
    open_shop(stage)
    for toml in (
        CART.replace('column = "due_at"', 'column = "data.due_at"'),
        CART.replace(
            'status = "held" }]\nconfirmed', 'status = "held", "data.status" = "held" }]\nconfirmed'
        ),
    ):
        stage.attach(toml)
        found = stage.doctor()[Code.COLUMN_MISSING]
        assert found.severity is Severity.REFUSE
        assert "data." in found.sentence


def test_b63_doctor_shows_the_index_that_a_scan_needs_and_the_sql_for_it(stage: Stage) -> None:
    open_shop(stage)
    add(stage, *[held(n, status="expired") for n in range(1, 301)], held(301))
    found = stage.doctor()[Code.DUE_INDEX]
    assert "slows down as the table grows" in found.sentence
    assert found.mend is not None
    stage.host.script(found.mend)
    assert Code.DUE_INDEX not in stage.doctor()
    stage.drain()
    assert stage.ended() == ["301"]


def test_b18_doctor_warns_of_two_rules_that_may_take_one_row(stage: Stage) -> None:
    open_shop(stage)
    stage.attach(CART + CART.replace('"cart"', '"other"'))
    assert "cart" in stage.doctor()[Code.OVERLAP].sentence


def test_b22_doctor_counts_what_has_no_usable_due(stage: Stage) -> None:
    open_shop(stage)
    add(stage, held(1, None), held(2, None), held(3))
    assert re.search(r"\b2\b", stage.doctor()[Code.EMPTY_DUE].sentence)


POLICY = """
create table guarded (like hold including all);
insert into guarded select * from hold;
alter table guarded enable row level security;
alter table guarded force row level security;
create table allowed (tenant_id integer);
create policy own on guarded using (tenant_id in (select tenant_id from allowed));
"""


def test_n16_doctor_refuses_a_table_whose_rows_are_hidden(postgres_stage: Stage) -> None:
    """Nobody allowed: refused. One tenant: that one alone, with a warning. No filter: no word."""
    stage = postgres_stage
    open_shop(stage)
    add(stage, held(1, tenant_id=1), held(2, tenant_id=2))
    stage.host.script(POLICY)
    stage.attach(CART.replace('table = "hold"', 'table = "guarded"'))
    found = stage.doctor()[Code.ROW_SECURITY]
    assert found.severity is Severity.REFUSE
    assert "shows rule cart no row" in found.sentence
    stage.host.script("insert into allowed values (1)")
    assert stage.doctor()[Code.ROW_SECURITY].severity is Severity.WARN
    stage.drain()
    stage.host.script("alter table guarded disable row level security")
    rows = stage.host.run("select id, status from guarded order by id")
    assert rows == [(1, "expired"), (2, "held")]
    assert Code.ROW_SECURITY not in stage.doctor()


class Fast(SystemClock):
    """A host ten minutes ahead."""

    def wall(self) -> datetime:
        """Return the wrong time."""
        return super().wall() + timedelta(minutes=10)


def test_n12_doctor_shows_how_far_the_clocks_are_apart(postgres_stage: Stage) -> None:
    open_shop(postgres_stage)
    inspection = open_inspection(postgres_stage.settings)
    try:
        found = examine(inspection, postgres_stage.rules, Fast())
    finally:
        inspection.close()
    skew = next(one for one in found if one.code is Code.CLOCK_SKEW)
    assert skew.severity is not Severity.OK
    assert re.search(r"\b(10 m|600)", skew.sentence)
