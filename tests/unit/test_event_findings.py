"""One sentence for each thing about targets that should not be so, and none where all is well."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from freehold.application.event_findings import EventFigures, event_findings
from freehold.domain.forwards import TargetKind
from freehold.ports.event_insight import TargetFigures
from freehold.ports.insight import Heartbeat
from freehold.ports.relay import TargetState

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
MOST = 101
HOUR = timedelta(hours=1)
WORKING = TargetState("shop", TargetKind.WEBHOOK, active=True)
LEFT = replace(WORKING, active=False)
FAILING = replace(WORKING, failing_since=NOW - HOUR, failure_count=1_200)
PAUSED = replace(WORKING, pause_id=1, pause_reason="their upgrade.", paused_by="ann", paused_at=NOW)


def beat(roles: str) -> Heartbeat:
    """Return a process that is alive."""
    return Heartbeat("w", roles, "host", 1, None, NOW, NOW, NOW)


def found(state: TargetState = WORKING, roles: str = "scan,relay", **counts: Any) -> list[str]:
    """Judge one target."""
    figures = EventFigures([TargetFigures(state, **counts)], configured=("shop",))
    return list(event_findings(figures, NOW, [beat(roles)], MOST))


def test_all_is_well_while_a_relay_works() -> None:
    assert found(waiting_count=50, retrying_count=3) == []
    assert list(event_findings(EventFigures(), NOW, [], MOST)) == []


@pytest.mark.parametrize(
    ("state", "counts", "said"),
    [
        (
            FAILING,
            {"retrying_count": 2},
            (
                "The target shop has failed for 1 h, 1,200 times without a delivery between; "
                "`freehold events list --target shop --state retrying` says why."
            ),
        ),
        (
            PAUSED,
            {"waiting_count": 1},
            (
                "The target shop is paused by ann: their upgrade; 1 event waits for it; "
                "`freehold events resume shop` lets it go on."
            ),
        ),
        (
            replace(PAUSED, paused_by=None, paused_until=NOW + HOUR),
            {},
            (
                "The target shop is paused by itself: their upgrade, until 2026-05-01 13:00:00 UTC; "
                "`freehold events resume shop` lets it go on."
            ),
        ),
        (
            WORKING,
            {"dead_count": 2},
            (
                "2 events are dead at shop; look at `freehold events list --target shop --state dead`, "
                "then retry or discard them."
            ),
        ),
        (
            WORKING,
            {"dead_count": MOST},
            (
                "100 events and more are dead at shop; look at "
                "`freehold events list --target shop --state dead`, then retry or discard them."
            ),
        ),
    ],
)
def test_what_is_wrong_with_a_target(state: TargetState, counts: dict[str, Any], said: str) -> None:
    assert found(state, **counts) == [said]


def test_what_is_over_or_short_is_not_wrong() -> None:
    assert found(replace(PAUSED, paused_until=NOW)) == []
    assert found(replace(FAILING, failing_since=NOW - timedelta(seconds=59))) == []
    assert found(replace(FAILING, failing_since=NOW - timedelta(seconds=60))) != []


@pytest.mark.parametrize("counts", [{"waiting_count": 1}, {"retrying_count": 1}])
def test_events_wait_and_no_relay_is_alive(counts: dict[str, Any]) -> None:
    said = "Events wait for shop, and no relay is alive; start `freehold run`."
    assert found(roles="scan,work", **counts) == [said]
    assert found(roles="scan,work", dead_count=1) != [said]
    assert said not in found(PAUSED, roles="scan,work", **counts)


def test_events_without_a_route_wait_for_a_relay_too() -> None:
    figures = EventFigures([TargetFigures(WORKING)], unrouted_count=1, configured=("shop",))
    assert list(event_findings(figures, NOW, [], MOST)) == [
        "Events wait for shop, and no relay is alive; start `freehold run`."
    ]
    assert list(event_findings(figures, NOW, [beat("relay")], MOST)) == []


def test_a_target_that_no_relay_has_met_is_told() -> None:
    figures = EventFigures([TargetFigures(LEFT)], configured=("shop", "bus"))
    assert list(event_findings(figures, NOW, [beat("relay")], MOST)) == [
        f"The target {name} is configured, and no relay has met it; start `freehold run`."
        for name in ("shop", "bus")
    ]


def test_what_is_owed_to_a_target_that_left_is_told() -> None:
    figures = EventFigures([TargetFigures(LEFT, waiting_count=2, dead_count=1)])
    assert list(event_findings(figures, NOW, [], MOST)) == [
        (
            "3 events wait for the target shop, which is not configured any more; put it back, or "
            "`freehold events discard --target shop --all`."
        )
    ]
    assert list(event_findings(EventFigures([TargetFigures(LEFT)]), NOW, [], MOST)) == []
