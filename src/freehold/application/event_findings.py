"""What is wrong with targets of events, one plain sentence each, over the figures of `status`.

*Not here*: what is wrong with rules (`findings`), how a broker is set up (`doctor`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from shlex import quote

from freehold.application.events import pause_of
from freehold.application.spans import span
from freehold.domain.pauses import Role
from freehold.ports.event_insight import TargetFigures
from freehold.ports.insight import Heartbeat, Reading

FAILING_AFTER = timedelta(minutes=1)  # what fails for less is tried again by itself
START = "start `freehold run`"


@dataclass(frozen=True, slots=True)
class EventFigures:
    """How events and targets stand.

    Attributes:
        targets: all that were ever met, by name.
        unrouted_count: waiting events whose targets are not worked out.
        configured: names of the configured targets.
    """

    targets: Sequence[TargetFigures] = ()
    unrouted_count: int = 0
    configured: Collection[str] = ()


def read_figures(reading: Reading, configured: Collection[str], at_most: int) -> EventFigures:
    """Read how events and targets stand; each count stops at `at_most`."""
    found = reading.events.targets(at_most)
    return EventFigures(found, reading.events.unrouted_count(at_most), configured)


def event_findings(
    figures: EventFigures, now: datetime, alive: Sequence[Heartbeat], most: int
) -> Iterator[str]:
    """Yield what should not be so.

    Args:
        most: where counts stop.
    """
    relaying = any(Role.RELAY in beat.roles.split(",") for beat in alive)
    owing = [one for one in figures.targets if one.state.active and not one.state.is_paused(now)]
    if not relaying and (figures.unrouted_count or any(one.owed_count for one in owing)):
        yield f"Events wait for {_names(owing, figures)}, and no relay is alive; {START}."
    met = {one.state.name for one in figures.targets if one.state.active}
    for name in (one for one in figures.configured if one not in met):
        yield f"The target {name} is configured, and no relay has met it; {START}."
    for one in figures.targets:
        yield from _of_active(one, now, most) if one.state.active else _of_left(one, most)


def _names(owing: Sequence[TargetFigures], figures: EventFigures) -> str:
    names = [one.state.name for one in owing if one.owed_count or figures.unrouted_count]
    return ", ".join(names) or "targets"


def _of_active(one: TargetFigures, now: datetime, most: int) -> Iterator[str]:
    state, name = one.state, quote(one.state.name)
    if state.is_paused(now):
        waits = f"; {_counted(one.owed_count, most)} for it" if one.owed_count else ""
        yield (
            f"The target {state.name} is paused {pause_of(state)}{waits}; "
            f"`freehold events resume {name}` lets it go on."
        )
    elif state.failing_since is not None and now - state.failing_since >= FAILING_AFTER:
        yield (
            f"The target {state.name} has failed for {span(now - state.failing_since)}, "
            f"{state.failure_count:,} times without a delivery between; "
            f"`freehold events list --target {name} --state retrying` says why."
        )
    if one.dead_count:
        yield (
            f"{_counted(one.dead_count, most, 'is', 'are')} dead at {state.name}; look at "
            f"`freehold events list --target {name} --state dead`, then retry or discard them."
        )


def _of_left(one: TargetFigures, most: int) -> Iterator[str]:
    count = min(one.owed_count + one.dead_count, most)
    if count:
        name = quote(one.state.name)
        yield (
            f"{_counted(count, most)} for the target {one.state.name}, which is not configured any "
            f"more; put it back, or `freehold events discard --target {name} --all`."
        )


def _counted(count: int, most: int, one: str = "waits", more: str = "wait") -> str:
    if count >= most:
        return f"{most - 1:,} events and more {more}"
    return f"1 event {one}" if count == 1 else f"{count:,} events {more}"
