"""Plan counts and writes nothing; attach needs the true count; detach ends what is open."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.system import Onwards
from freehold.application.attach import attach, detach, is_close
from freehold.application.plan import plan
from freehold.application.scan import Scanner
from freehold.bootstrap import open_ledger
from freehold.domain.due import DueKind
from freehold.domain.errors import RefusedByState, UsageError
from freehold.ports.ledger import RuleCondition
from freehold.settings import DatabaseSettings, Settings
from tests.contract.ward import RULE, due

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.application.plan import RulePlan
    from freehold.domain.rules import Rule
    from tests.contract.ward import Ward

PAST = "'2026-01-01 10:00:00'"
FUTURE = "'9000-01-01 10:00:00'"
CAUTIOUS = replace(RULE, attach_limit=3)


@pytest.fixture
def ledger(ward: Ward) -> Iterator[SqlLedger]:
    ledger = open_ledger(Settings(database=DatabaseSettings(url=ward.url)))
    if ward.dialect == "postgres":
        ward.run("grant update, select on hold to app;")
    yield ledger
    ledger.close()


def planned(ward: Ward, rule: Rule, *, exact: bool = False) -> RulePlan:
    inspection = ward.inspection()
    try:
        return plan(inspection, (rule,), inspection.server().now, exact=exact)[0]
    finally:
        inspection.close()


def state_of(ledger: SqlLedger) -> Any:
    with ledger.transaction() as tx:
        return tx.rules.read(RULE.name)


def ledger_rows(ward: Ward, table: str, columns: str = "count(*)") -> list[Any]:
    prefix = "freehold." if ward.dialect == "postgres" else "freehold_"
    return [tuple(row) for row in ward.door.execute(f"select {columns} from {prefix}{table}")]


# --------------------------------------------------------------------------------------------- plan


def test_a_plan_counts_due_holds_by_tenant(ward: Ward) -> None:
    ward.add(10, PAST)
    ward.add(3, FUTURE, first=11)
    ward.add(2, "null", first=14)
    ward.add(4, PAST, first=16, status="sold")
    found = planned(ward, replace(CAUTIOUS, batch_size=4))
    assert (found.due_count, found.capped, found.empty_count) == (10, False, 2)
    assert [(one.tenant, one.due_count) for one in found.tenants] == [("1", 4), ("0", 3), ("2", 3)]
    assert (found.tenant_count, found.batch_count, found.waits) == (3, 3, True)
    assert found.oldest_due is not None
    assert found.oldest_due.isoformat() == "2026-01-01T10:00:00+00:00"
    assert found.estimate > timedelta(0)


def test_a_plan_of_nothing(ward: Ward) -> None:
    found = planned(ward, RULE)
    assert (found.due_count, found.tenants, found.oldest_due, found.waits) == (0, (), None, False)


def test_a_plan_stops_at_its_cap_unless_it_is_to_be_exact(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.application.plan.COUNT_MOST", 4)
    ward.add(9, PAST)
    assert (planned(ward, RULE).due_count, planned(ward, RULE).capped) == (4, True)
    exact = planned(ward, RULE, exact=True)
    assert (exact.due_count, exact.capped) == (9, False)


def test_a_plan_reads_text_page_by_page(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.adapters.sql.inspection.reading.PAGE_ROWS", 2)
    rule = _textual(ward)
    found = planned(ward, rule)
    assert (found.due_count, found.tenant_count) == (5, 3)


def test_a_plan_writes_nothing(ward: Ward, ledger: SqlLedger) -> None:
    ward.add(5, PAST)
    planned(ward, CAUTIOUS)
    assert state_of(ledger) is None
    assert ledger_rows(ward, "operation") == [(0,)]


def _textual(ward: Ward) -> Rule:
    """Five due instants in several spellings, three that are not due, one that is none."""
    if ward.dialect == "postgres":
        ward.run("alter table hold alter due type text;")
    ward.add(2, "'2026-01-01T10:00:00+02:00'")
    ward.add(3, "'2026-01-01 10:00Z'", first=3)
    ward.add(3, "'9000-01-01T10:00:00Z'", first=6)
    ward.add(1, "'tomorrow'", first=9)
    return due(kind=DueKind.ISO)


# ------------------------------------------------------------------------------------------- attach


def test_a_waiting_rule_is_attached_by_its_true_count(ward: Ward, ledger: SqlLedger) -> None:
    ward.add(5, PAST)
    assert not Scanner(ledger, Onwards()).scan(CAUTIOUS).admitted
    with pytest.raises(RefusedByState, match="has 5 overdue holds now, not 4"):
        attach(ledger, CAUTIOUS, 4, "ann", "")
    assert state_of(ledger).condition is RuleCondition.WAITING
    acts = ledger_rows(ward, "action")[0][0]

    done = attach(ledger, CAUTIOUS, 5, "ann", "looked at the plan")
    assert (done.overdue_count, done.changed) == (5, True)
    assert state_of(ledger).condition is RuleCondition.ACTIVE
    assert Scanner(ledger, Onwards()).scan(CAUTIOUS).new_count == 5
    assert ledger_rows(ward, "action")[0][0] == acts + 1
    last = ledger_rows(ward, "action", "actor, action, subject, reason, before")[-1]
    assert last[:4] == ("ann", "attach", "cart", "looked at the plan")
    assert last[4].startswith("waiting")


def test_an_active_rule_stays_as_it_is(ward: Ward, ledger: SqlLedger) -> None:
    ward.add(1, PAST)
    attach(ledger, CAUTIOUS, 1, "ann", "")
    before = ledger_rows(ward, "action")
    assert not attach(ledger, CAUTIOUS, 99, "ann", "").changed
    assert ledger_rows(ward, "action") == before


def test_a_paused_rule_is_not_attached(ward: Ward, ledger: SqlLedger) -> None:
    attach(ledger, CAUTIOUS, 0, "ann", "")
    paused = replace(state_of(ledger), condition=RuleCondition.PAUSED, reason="no column")
    with ledger.transaction() as tx:
        tx.rules.write(paused)
    with pytest.raises(RefusedByState, match="paused, not waiting: no column"):
        attach(ledger, CAUTIOUS, 0, "ann", "")


def test_future_instants_in_text_are_not_overdue(ward: Ward, ledger: SqlLedger) -> None:
    rule = replace(_textual(ward), attach_limit=5)
    with ledger.transaction() as tx:
        assert [tx.holds(rule).count_overdue(most) for most in (3, 5, 100)] == [3, 5, 5]
    assert Scanner(ledger, Onwards()).scan(rule).admitted


@pytest.mark.parametrize(
    ("confirmed", "overdue", "close"),
    [
        (0, 0, True),
        (999, 1_000, False),
        (1_000, 1_001, True),
        (990, 1_001, False),
        (991, 1_001, True),
        (101_000, 100_000, True),
        (101_001, 100_000, False),
    ],
)
def test_a_large_count_may_have_moved_by_one_percent(
    confirmed: int, overdue: int, *, close: bool
) -> None:
    assert is_close(confirmed, overdue) is close


# ------------------------------------------------------------------------------------------- detach


def test_detach_ends_all_open_operations_with_the_reason(
    ward: Ward, ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.application.attach.PAGE_ROWS", 2)
    ward.add(5, PAST)
    attach(ledger, CAUTIOUS, 5, "ann", "")
    Scanner(ledger, Onwards()).scan(CAUTIOUS)
    records = len(ledger_rows(ward, "record", "outcome"))

    done = detach(ledger, "cart", "bob", "moved away")
    assert (done.closed_count, done.left_count) == (5, 0)
    assert ledger_rows(ward, "operation") == [(0,)]
    why = "detached by bob: moved away"
    assert ledger_rows(ward, "record", "outcome, reason")[records:] == [("closed", why)] * 5
    state = state_of(ledger)
    assert (state.condition, state.reason) == (RuleCondition.WAITING, why)
    assert not Scanner(ledger, Onwards()).scan(CAUTIOUS).admitted
    assert detach(ledger, "cart", "bob", "again").closed_count == 0


def test_detach_leaves_what_a_worker_has_under_a_lease(ward: Ward, ledger: SqlLedger) -> None:
    ward.add(3, PAST)
    attach(ledger, CAUTIOUS, 3, "ann", "")
    Scanner(ledger, Onwards()).scan(CAUTIOUS)
    with ledger.transaction() as tx:
        tx.operations.lease("cart", 1, None, tx.now + timedelta(minutes=1))
    done = detach(ledger, "cart", "bob", "moved away")
    assert (done.closed_count, done.left_count) == (2, 1)
    with ledger.transaction() as tx:
        (token,) = ledger_rows(ward, "operation", "lease_token")[0]
        tx.operations.renew(token, tx.now - timedelta(seconds=1))
    assert detach(ledger, "cart", "bob", "moved away").closed_count == 1


def test_detach_of_a_rule_never_met_is_a_mistake(ledger: SqlLedger) -> None:
    with pytest.raises(UsageError, match="knows no rule named 'cat'"):
        detach(ledger, "cat", "bob", "gone")
