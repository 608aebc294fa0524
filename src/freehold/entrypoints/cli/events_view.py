"""How events look to a person, and as plain data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from freehold.application.spans import span
from freehold.domain.events import cloud_event
from freehold.domain.forwards import ForwardState
from freehold.entrypoints.cli.context import people
from freehold.ports.event_insight import (
    EventsAsked,
    ListedEvents,
    SeenEvent,
    SeenFailure,
    SeenForward,
    Standing,
)
from freehold.ports.relay import TargetState

if TYPE_CHECKING:
    from rich.console import JustifyMethod

REASON_CHARS = 60  # in a list
WIDE_COLUMNS = 110  # of a screen that has room for a table
_NONE = "[dim]·[/]"
_STATES = {
    ForwardState.READY: "[yellow]waiting[/]",
    ForwardState.LEASED: "[yellow]in hand[/]",
    ForwardState.RETRYING: "[yellow]retrying[/]",
    ForwardState.DEAD: "[bold red]dead[/]",
    ForwardState.DISCARDED: "[dim]discarded[/]",
    ForwardState.DELIVERED: "[green]delivered[/]",
}
_FOLDED = {"key", "what is next"}
_BARE = {
    Standing.KEPT: "[dim]kept[/]",
    Standing.WAITING: "[yellow]waiting[/]",
    None: "[dim]none[/]",
}


# ------------------------------------------------------------------------------------ lists


def list_data(found: ListedEvents) -> dict[str, Any]:
    """Return a list as plain data."""
    return {
        "events": [head_data(one) for one in found.events],
        "after": None if found.after is None else str(found.after),
    }


def head_data(seen: SeenEvent) -> dict[str, Any]:
    """Return an event with its forwards as plain data."""
    event = seen.event
    return {
        "id": str(seen.id),
        "event_key": event.event_key,
        "type": event.type.value,
        "rule": event.rule or None,
        "tenant": event.tenant,
        "key": event.hold_key,
        "at": event.at,
        "state": seen.state,
        "published_at": seen.published_at,
        "forwards": [_forward_data(one) for one in seen.forwards],
    }


def _forward_data(one: SeenForward) -> dict[str, Any]:
    tried_again = one.state in (ForwardState.READY, ForwardState.RETRYING)
    return {
        "target": one.target,
        "state": one.state.value,
        "attempt": one.attempt,
        "replay_count": one.replay_count,
        "owed_at": one.owed_at,
        "available_at": one.available_at if tried_again else None,
        "leased_until": one.leased_until,
        "reason": one.reason,
        "ended_at": one.ended_at,
    }


def print_list(
    found: ListedEvents, targets: Mapping[str, TargetState], now: datetime, asked: EventsAsked
) -> None:
    """Print a line for each event and target."""
    console = people()
    if found.events:
        draw = _table if console.width >= WIDE_COLUMNS else _narrow
        console.print(draw(found.events, targets, now))
    else:
        more = "" if found.after is None else " among those that were looked at"
        console.print(f"there is no such event{more}")
    if found.after is not None:
        console.print(f"[dim]go on with[/] {escape(_again(found.after, asked))}", soft_wrap=True)


def _table(events: Sequence[SeenEvent], targets: Mapping[str, TargetState], now: datetime) -> Table:
    """Return the lines; a reason that is too long is cut, since `events show` has it whole."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("event", "what", "key", "made", "target", "state", "attempts", "what is next"):
        side: JustifyMethod = "right" if name in {"event", "attempts"} else "left"
        table.add_column(name, justify=side, no_wrap=name not in _FOLDED, overflow="fold")
    for seen in events:
        for cells in _lines(seen, targets, now, REASON_CHARS):
            table.add_row(*cells)
    return table


def _narrow(
    events: Sequence[SeenEvent], targets: Mapping[str, TargetState], now: datetime
) -> Group:
    """Return a line for each event, and below it one for each target."""
    width = max((len(one.target) for seen in events for one in seen.forwards), default=0)
    parts: list[RenderableType] = []
    for seen in events:
        lines = list(_lines(seen, targets, now, REASON_CHARS))
        number, about, key, made, *first = lines[0]
        state = "" if seen.forwards else f"  {first[1]}"
        parts.append(f"[bold]{number}[/] {about} {key} [dim]{made}[/]{state}")
        if seen.forwards:
            grid = Table.grid(padding=(0, 2, 0, 0))
            grid.add_column(min_width=width + 2)
            for cells in lines:
                grid.add_row(f"  {cells[4]}", *cells[5:])
            parts.append(grid)
    return Group(*parts)


def _lines(
    seen: SeenEvent, targets: Mapping[str, TargetState], now: datetime, most: int | None = None
) -> Iterator[list[str]]:
    event = seen.event
    about = f"{event.rule} {event.type}" if event.rule else event.type.value
    head = [str(seen.id), escape(about.removesuffix(".v1")), escape(_one_line(event.hold_key))]
    head.append(f"{span(now - event.at)} ago")
    if not seen.forwards:
        yield [*head, _NONE, _BARE[seen.standing], _NONE, _NONE]
    for one in seen.forwards:
        yield [
            *head,
            escape(one.target),
            _STATES[one.state],
            str(one.attempt) if one.attempt else _NONE,
            _next(one, targets[one.target], now, most),
        ]
        head = [""] * len(head)


def _next(one: SeenForward, target: TargetState, now: datetime, most: int | None) -> str:
    """Say when it is tried again, or when it ended, and why."""
    when = _when(one, target, now)
    if not one.reason:
        return when
    reason = _one_line(one.reason)
    cut = reason if most is None or len(reason) <= most else f"{reason[: most - 1]}…"
    return f"{when}, {escape(cut)}"


def _when(one: SeenForward, target: TargetState, now: datetime) -> str:
    if one.ended_at is not None:
        return f"{span(now - one.ended_at)} ago"
    if one.state is ForwardState.LEASED:
        return "a relay has it"
    if not target.active:
        return "[red]never: not configured[/]"
    if target.is_paused(now):
        return "[red]not while it is paused[/]"
    at = one.available_at if target.probe_at is None else max(one.available_at, target.probe_at)
    return f"in {span(at - now)}" if at > now else "now"


def _one_line(text: str) -> str:
    """Write a text on one line, whatever it holds."""
    return " ".join(text.split())


def _again(after: int, asked: EventsAsked) -> str:
    options = {
        "target": asked.target,
        "state": asked.standing,
        "rule": asked.rule,
        "tenant": asked.tenant,
        "key": asked.hold_key,
        "since": None if asked.since is None else asked.since.isoformat(),
    }
    told = "".join(
        f" --{name} {quote(value)}" for name, value in options.items() if value is not None
    )
    return f"freehold events list{told} --after {after}"


# ---------------------------------------------------------------------------------- one event


def event_data(seen: SeenEvent, failures: Sequence[SeenFailure]) -> dict[str, Any]:
    """Return an event in full as plain data, with what is sent."""
    return {
        **head_data(seen),
        "routed_at": seen.routed_at,
        "failures": [_failure_data(one) for one in failures],
        "cloud_event": json.loads(cloud_event(seen.event)),
    }


def _failure_data(one: SeenFailure) -> dict[str, Any]:
    return {
        "target": one.target,
        "replay_count": one.replay_count,
        "attempt": one.attempt,
        "ended_at": one.ended_at,
        "class": one.failure_class,
        "code": one.code,
        "reason": one.reason,
    }


def print_event(
    seen: SeenEvent,
    targets: Mapping[str, TargetState],
    failures: Sequence[SeenFailure],
    now: datetime,
) -> None:
    """Print an event: its head, what each target has of it, what failed, what is sent."""
    console = people()
    console.print(f"[bold]event {seen.id}[/]  {escape(seen.event.event_key)}", soft_wrap=True)
    left = "" if seen.published_at is None else f" {span(now - seen.published_at)} ago"
    console.print(f"[dim]made {span(now - seen.event.at)} ago, {seen.state}{left}[/]\n")
    grid = Table.grid(padding=(0, 2, 0, 0))
    for cells in _lines(seen, targets, now):
        grid.add_row(*cells[4:])
    console.print(grid)
    if failures:
        console.print("\n[dim]hand-overs that failed:[/]")
        console.print(_failed(failures))
    console.print("\n[dim]what is sent:[/]")
    body = json.dumps(json.loads(cloud_event(seen.event)), ensure_ascii=False, indent=2)
    console.print(escape(body), soft_wrap=True)


def _failed(failures: Sequence[SeenFailure]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for one in failures:
        again = "" if not one.replay_count else f", owed again {one.replay_count} times"
        code = f"{one.code}: " if one.code and one.code not in one.reason else ""
        grid.add_row(
            f"[dim]{one.ended_at:%Y-%m-%d %H:%M:%S}[/]",
            escape(one.target),
            f"attempt {one.attempt}{again}",
            f"[yellow]{escape(one.failure_class)}[/]",
            escape(_one_line(f"{code}{one.reason}")),
        )
    return grid
