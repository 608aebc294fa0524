"""When an event is tried next, as people read it: no sooner than its target is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from freehold.domain.events import Event, EventType
from freehold.domain.forwards import ForwardState, TargetKind
from freehold.entrypoints.cli.events_view import print_list
from freehold.entrypoints.cli.targets_view import print_targets
from freehold.ports.event_insight import (
    EventsAsked,
    ListedEvents,
    SeenEvent,
    SeenForward,
    TargetFigures,
)
from freehold.ports.relay import TargetState

NOW = datetime(2031, 5, 6, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def target(probe_seconds: int | None) -> TargetState:
    probe_at = None if probe_seconds is None else NOW + probe_seconds * SECOND
    failing = {"failing_since": NOW - 90 * SECOND, "failure_count": 4}
    return TargetState("shop", TargetKind.WEBHOOK, active=True, probe_at=probe_at, **failing)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("probe_seconds", "forward_seconds", "told"),
    [
        (None, 0, "now"),
        (None, 5, "in 5 s"),
        (-1, 0, "now"),
        (40, 5, "in 40 s"),
        (5, 40, "in 40 s"),
    ],
)
def test_an_event_waits_for_itself_and_for_its_target(
    probe_seconds: int | None,
    forward_seconds: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    event = Event(
        sequence=1,
        type=EventType.HOLD_EXPIRED,
        rule="cart",
        tenant=None,
        hold_key="7",
        digest=UUID(int=1),
        generation=1,
        due_at=NOW,
        at=NOW,
        tokens={},
        carry={},
    )
    at = NOW + forward_seconds * SECOND
    forward = SeenForward("shop", ForwardState.READY, 0, 0, NOW, at, None, None, None)
    found = ListedEvents([SeenEvent(1, event, "routed", NOW, None, [forward])], None)
    print_list(found, {"shop": target(probe_seconds)}, NOW, EventsAsked())
    assert capsys.readouterr().out.rstrip().endswith(f"  {told}")


@pytest.mark.parametrize(
    ("probe_seconds", "told"),
    [(40, "tried again at 12:00:40 UTC"), (-40, "tried again as soon as a relay is free")],
)
def test_a_failing_target_is_not_said_to_be_tried_in_the_past(
    probe_seconds: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_targets([TargetFigures(target(probe_seconds), waiting_count=1)], NOW)
    assert told in " ".join(capsys.readouterr().out.split())
