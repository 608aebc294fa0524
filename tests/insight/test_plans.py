"""Every figure of status and every look of why is served by its index, however large the tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.sql.holds import rule_slots
from freehold.adapters.sql.session import Runner

if TYPE_CHECKING:
    from tests.insight.shop import Shop

NOW = datetime(2026, 3, 10, tzinfo=UTC)
VALUES: dict[str, Any] = {
    "rule": "cart",
    "limit": 10_001,
    "after_id": 5,
    "since": NOW,
    "hold_key": "1",
    "id": 1,
    "tenant": "t",
    "report_date": "2026-03-09",
    "least": "0001-01-01",
    "operation_id": 1,
    "now": NOW,
}
# Statement, and the index that serves it. Heartbeats and acts are few.
INDEXES = {
    "claimable_depth": "operation_claim",
    "leased_depth": "operation_leased_until",
    "review_depth": "operation_review",
    "newest_tick": "tick_once",
    "recent_tallies": "tally_at",
    "failed_lately": "attempt_failed_at",
    "count_open_strays": "stray_dead",
    "open_strays": "stray_dead",
    "find_stray": "stray",
    "delivery_counts": "delivery_count",
    "outbox_depth": "outbox_pending",
    "open_of_hold": "operation_identity",
    "records_of_hold": "hold_key",
    "events_of_operation": "outbox_event",
    "failed_attempts": "attempt_operation",
    "count_empty_due": "res_due",
    "oldest_due_rows": "res_due",
    "list_reports": "report_by_date",
    "newest_reports": "report_by_date",
    "owed_reports": "report_due",
    "next_due_report": "report_due",
    "unfrozen_reports": "report_assigned",
    "open_reports": "report_open",
    "unknown_sends": "send_claim",
    "next_day": "report_calendar_end",
    "counted_by_report": "hold_key",
}


def plan(shop: Shop, name: str) -> str:
    """Return the plan of a statement, in a reading like that of status."""
    with shop.ledger() as ledger, ledger.reading() as reading:
        session, compiled = ledger.session, ledger.compiled(shop.rule)
        slots = {**rule_slots(session, compiled), "first_order": compiled.slots["due"]}
        text = Runner(session, slots).text(name)
        values = {**VALUES, **compiled.parameters, **compiled.bounds(reading.now)}
        explain = "explain query plan " if session.dialect == "sqlite" else "explain "
        return "\n".join(str(row[-1]) for row in session.run(explain + text, values)[0])


@pytest.mark.parametrize(("name", "index"), INDEXES.items(), ids=INDEXES)
def test_a_figure_is_served_by_its_index(shop: Shop, name: str, index: str) -> None:
    found = plan(shop, name)
    wanted = "record_hold" if index == "hold_key" and "freehold_" in found else index
    assert wanted in found, found
    assert "Seq Scan" not in found
    assert "SCAN freehold_record" not in found
