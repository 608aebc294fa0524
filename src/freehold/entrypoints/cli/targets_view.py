"""How targets of events look to a person, and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from freehold.application.events import pause_of
from freehold.application.spans import span
from freehold.application.status import COUNT_MOST
from freehold.entrypoints.cli.context import people
from freehold.ports.event_insight import TargetFigures

if TYPE_CHECKING:
    from rich.console import JustifyMethod

_NONE = "[dim]·[/]"


def target_data(one: TargetFigures, now: datetime) -> dict[str, Any]:
    """Return how a target stands as plain data."""
    state = one.state
    paused = None
    if state.pause_id is not None and state.is_paused(now):
        paused = {
            "by": state.paused_by,
            "reason": state.pause_reason,
            "paused_at": state.paused_at,
            "until": state.paused_until,
        }
    return {
        "target": state.name,
        "kind": state.kind.value,
        "configured": state.active,
        "condition": condition(one, now),
        "paused": paused,
        "failing_since": state.failing_since,
        "failure_count": state.failure_count,
        "probe_at": state.probe_at,
        "waiting_count": one.waiting_count,
        "retrying_count": one.retrying_count,
        "dead_count": one.dead_count,
        "oldest_owed_seconds": _age(one.oldest_owed_at, now),
        "oldest_dead_seconds": _age(one.oldest_dead_at, now),
    }


def _age(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else max(0.0, (now - at).total_seconds())


def condition(one: TargetFigures, now: datetime) -> str:
    """Return in a word how a target stands."""
    if not one.state.active:
        return "gone"
    if one.state.is_paused(now):
        return "paused"
    return "working" if one.state.failing_since is None else "failing"


_MARKS = {
    "gone": "[dim]○ not configured[/]",
    "paused": "[red]■ paused[/]",
    "failing": "[yellow]◌ failing[/]",
    "working": "[green]● working[/]",
}


def print_targets(found: Sequence[TargetFigures], now: datetime) -> None:
    """Print a line for each target, and what is to be known about it below."""
    console = people()
    if not found:
        console.print("no target was ever met; add [[targets]] to freehold.toml", markup=False)
        return
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("target", "kind", "condition", "waiting", "retrying", "dead", "oldest owed"):
        left = name in {"target", "kind", "condition"}
        side: JustifyMethod = "left" if left else "right"
        table.add_column(name, justify=side, no_wrap=name != "target", overflow="fold")
    for one in found:
        table.add_row(*_cells(one, now))
    console.print(table)
    for one in found:
        if (told := _told(one, now)) is not None:
            console.print(f"[bold]{escape(one.state.name)}[/] {escape(told)}", soft_wrap=True)


def _cells(one: TargetFigures, now: datetime) -> list[str]:
    oldest = _NONE if one.oldest_owed_at is None else span(now - one.oldest_owed_at)
    dead = f"[bold red]{_number(one.dead_count)}[/]" if one.dead_count else _NONE
    return [
        f"[bold]{escape(one.state.name)}[/]",
        one.state.kind.value,
        _MARKS[condition(one, now)],
        _number(one.waiting_count),
        _number(one.retrying_count),
        dead,
        oldest,
    ]


def _number(count: int) -> str:
    if not count:
        return _NONE
    return f"{COUNT_MOST:,}+" if count > COUNT_MOST else f"{count:,}"


def _told(one: TargetFigures, now: datetime) -> str | None:
    state = one.state
    if state.is_paused(now) and state.paused_at is not None:
        return f"is paused since {state.paused_at:%Y-%m-%d %H:%M:%S} UTC {pause_of(state)}"
    if state.failing_since is None or not state.active:
        return None
    again = ""
    if state.probe_at is not None:
        waits = state.probe_at > now
        when = f"at {state.probe_at:%H:%M:%S} UTC" if waits else "as soon as a relay is free"
        again = f"; it is tried again {when}"
    since = span(now - state.failing_since)
    return (
        f"has failed for {since}, {state.failure_count:,} times without a delivery between{again}"
    )


def brief(one: TargetFigures, now: datetime) -> str:
    """Say in a line how a target stands, for `freehold status`."""
    parts = [_MARKS[condition(one, now)]]
    if one.owed_count:
        oldest = (
            ""
            if one.oldest_owed_at is None
            else f", the oldest for {span(now - one.oldest_owed_at)}"
        )
        parts.append(f"{_number(one.owed_count)} waiting{oldest}")
    if one.dead_count:
        parts.append(f"[bold red]{_number(one.dead_count)} dead[/]")
    return f"[bold]{escape(one.state.name)}[/] {', '.join(parts)}"
