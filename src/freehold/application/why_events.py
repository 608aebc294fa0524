"""What became of a hold's events, target by target, for `freehold why`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from freehold.application.events import pause_of
from freehold.domain.forwards import ForwardState
from freehold.ports.event_insight import SeenForward
from freehold.ports.insight import Reading, ToldEvent
from freehold.ports.relay import TargetState

ENDS = {
    ForwardState.DELIVERED: "arrived at",
    ForwardState.DEAD: "is dead at",
    ForwardState.DISCARDED: "was discarded for",
}


def told(reading: Reading, event: ToldEvent) -> Iterator[tuple[datetime, str]]:
    """Yield when an event was written and what came of it, each with its instant."""
    yield event.at, f"event {event.type} written, {event.state}"
    forwards = reading.events.forwards([event.id]).get(event.id, ())
    if not forwards:
        return
    for one in reading.events.failures(event.id):
        code = f" [{one.code}]" if one.code else ""
        what = f"event {event.id} failed to reach {one.target} at attempt {one.attempt}, "
        yield one.ended_at, f"{what}{one.failure_class}: {one.reason}{code}"
    states = reading.events.states()
    for forward in forwards:
        yield _standing(event.id, forward, states, reading.now)


def _standing(
    event_id: int, one: SeenForward, states: Mapping[str, TargetState], now: datetime
) -> tuple[datetime, str]:
    if one.ended_at is not None:
        attempt = f", at attempt {one.attempt}" if one.state is ForwardState.DELIVERED else ""
        reason = f": {one.reason}" if one.reason else ""
        return one.ended_at, f"event {event_id} {ENDS[one.state]} {one.target}{attempt}{reason}"
    state = states[one.target]
    if not state.active:
        why = ", which is not configured any more"
    elif state.is_paused(now):
        why = f", which is paused {pause_of(state)}"
    elif one.state is ForwardState.RETRYING:
        why = f" until {one.available_at:%Y-%m-%d %H:%M:%S} UTC, after attempt {one.attempt}"
    else:
        why = ""
    return one.owed_at, f"event {event_id} waits for {one.target}{why}"
