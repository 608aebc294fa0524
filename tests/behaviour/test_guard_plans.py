"""Guards and pauses cost no more when tables grow: their statements go by an index, or stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards
from freehold.domain.pauses import Pause, Role
from freehold.ports.holds import ScanCursor, Weighing
from freehold.ports.ledger import GuardKind
from tests.behaviour.place import NOON
from tests.behaviour.plans import analyse, assert_by_index, explained, fill
from tests.behaviour.till import Till, cart, open_table

if TYPE_CHECKING:
    from tests.behaviour.place import Place

HOLDS = 3_000
POSTGRES = {
    "read_rule": {"rule_state_pkey", "guard_standing", "pause_standing"},
    "weigh_overdue": {"hold_due", "operation_identity"},
    "weigh_before": {"hold_due", "operation_identity"},
    "count_later": {"hold_due"},
    "bring_back": {"operation_paused", "operation_pkey"},
    "standing_guards": {"guard_standing"},
    "newest_guard": {"guard_pkey"},
    "open_pauses": {"pause_standing"},
    "end_pause": {"pause_standing"},
}
SQLITE = {
    "weigh_overdue": {"hold_due", "freehold_operation_identity"},
    "weigh_before": {"hold_due", "freehold_operation_identity"},
    "count_later": {"hold_due"},
    "sample_held": {"rowid of h", "rowid of x"},
    "bring_back": {"freehold_operation_paused"},
    "end_pause": {"freehold_pause_standing"},
}


@pytest.mark.parametrize("statistics", ["stale", "fresh"])
def test_statements_go_by_their_index(place: Place, statistics: str) -> None:
    open_table(place)
    if statistics == "stale":
        analyse(place)
    fill(place, HOLDS)
    rule = cart(place)
    Till.open(place, rule).scanner.scan(rule)
    if statistics == "fresh":
        analyse(place)
    session = explained(place)
    with SqlLedger(session, Onwards()).transaction() as tx:
        holds = tx.holds(rule)
        middle = holds.find_due(None, 100)[-1]
        after = ScanCursor(middle.due or "", middle.hold_key)
        holds.weigh(after, Weighing(NOON, HOLDS, beyond=-1))
        holds.weigh(after, Weighing(NOON, 10, beyond=-1, without=["t1"]))
        tx.pauses.begin(Pause(Role.WORK, "cart", "t1", "ann", "why", NOON))
        tx.guards.trip(GuardKind.CLOCK, None, "why", {})
        tx.guards.newest(GuardKind.CLOCK)
        tx.operations.bring_back("cart", "t1", 500)
        tx.rules.read("cart")
        tx.pauses.end(Role.WORK, "cart", "t1")
    plans = session.plans
    wanted = POSTGRES if place.dialect == "postgres" else SQLITE
    assert_by_index(plans, wanted)
    own = ("hold", "operation", "h", "x", "o")
    whole = {n: p for n, p in plans.items() if any(f"all of {table}" in p for table in own)}
    assert set(whole) <= {"sample_due"}, whole  # it stops at its first row
    sorts = {n for n, p in plans.items() if n.startswith(("weigh", "count")) and "a sort" in p}
    assert not sorts - {"weigh_overdue"}  # by key among rows of one due, as a scan does
