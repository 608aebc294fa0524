"""How `freehold status` looks to a person."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import ceil

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from freehold.application.spans import span
from freehold.application.status import COUNT_MOST, RuleStatus, Status, overdue
from freehold.domain.operations import OperationState
from freehold.domain.pauses import RULE_ROLES
from freehold.domain.tallies import lags
from freehold.entrypoints.cli.context import people
from freehold.entrypoints.cli.targets_view import brief
from freehold.ports.insight import Ended, QueueFigures
from freehold.ports.ledger import RuleCondition
from freehold.ports.report_insight import ReportFigures

TENANTS_IN_TABLE = 3  # under each rule; `--json` has more
TENANT_CHARS = 24
_DAY_SECONDS = 86_400
_NOTHING = "[dim]·[/]"
_UNKNOWN = "[dim]?[/]"
_CONDITIONS = {
    RuleCondition.ACTIVE: "[green]● active[/]",
    RuleCondition.WAITING: "[yellow]◌ waiting[/]",
    RuleCondition.PAUSED: "[red]■ paused[/]",
}


def show(seen: Status, console: Console | None = None) -> None:
    """Print the whole picture: verdict, rules, what ended, processes."""
    console = console or people()
    console.print(_verdict(seen, boxed=console.is_terminal and not console.no_color))
    console.print(
        Group(
            _fitting(seen, console),
            Text(),
            Text("In the last hour, with the lag from due to commit:", style="dim"),
            _ended(seen, console),
            Text(),
            _foot(seen),
        )
    )


def _verdict(seen: Status, *, boxed: bool) -> RenderableType:
    if not seen.findings:
        well = "[bold green]All is well.[/]  Nothing waits beyond its promise."
        return Panel(well, style="green") if boxed else f"{well}\n"
    lines = "\n".join(f"[bold red]✗[/] {escape(finding)}" for finding in seen.findings)
    if not boxed:
        return f"{lines}\n"
    return Panel(
        lines, border_style="red", title=f"{len(seen.findings)} to look at", title_align="left"
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        numeric = name not in {"rule", "condition", "scan", "skipped"}
        table.add_column(name, justify="right" if numeric else "left", no_wrap=name != "skipped")
    return table


WAITING = (
    "rule", "condition", "ready", "leased", "retrying", "put off", "review", "oldest due",
    "promise", "no due", "scan",
)  # fmt: skip


def _fitting(seen: Status, console: Console) -> Table:
    """Return the rules as a table; where that is too wide, a sentence of what there is of each."""
    rows = [_cells(row, seen.now) for row in seen.rules]
    table = _table(*WAITING)
    for cells in rows:
        table.add_row(*cells)
    wide = console.options.update(max_width=1_000)
    if console.measure(table, options=wide).maximum <= console.width:
        return table
    narrow = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for cells in rows:
        named = zip(WAITING[2:], cells[2:], strict=True)
        parts = [f"{name} {cell}" for name, cell in named if cell != _NOTHING]
        narrow.add_row(cells[0], f"{cells[1]}\n{', '.join(parts)}")
    return narrow


def _cells(row: RuleStatus, now: datetime) -> list[str]:
    return [
        f"[bold]{escape(row.rule.name)}[/]",
        _condition(row, now),
        *(number(row.count(one)) for one in _shown_states()),
        _review(row),
        _oldest(row, now),
        span(row.rule.promise),
        _empty(row),
        _scan(row, now),
    ]


def _shown_states() -> tuple[OperationState, ...]:
    return (
        OperationState.READY,
        OperationState.LEASED,
        OperationState.RETRYING,
        OperationState.DEFERRED,
    )


def number(count: int) -> str:
    """Write a count; one that reached the limit says so."""
    if not count:
        return _NOTHING
    return f"{COUNT_MOST:,}+" if count > COUNT_MOST else f"{count:,}"


def _condition(row: RuleStatus, now: datetime) -> str:
    if row.holds.trouble:
        return "[red]■ table unreadable[/]"
    if row.state is None:
        return "[dim]○ never met[/]"
    if row.state.guards:
        return "[red]■ frozen by a guard[/]"
    if row.state.scan_paused:
        return "[yellow]◌ schedule paused[/]"
    if paused := [one for one in RULE_ROLES if row.state.pause_of(one, now) is not None]:
        return f"[yellow]◌ {' and '.join(paused)} paused[/]"
    return _CONDITIONS[row.state.condition]


def _review(row: RuleStatus) -> str:
    dead, discarded = row.count(OperationState.DEAD), row.count(OperationState.DISCARDED)
    aside = f" [dim]({number(discarded)} aside)[/]" if discarded else ""
    return (f"[bold red]{number(dead)}[/]" if dead else _NOTHING) + aside


def _oldest(row: RuleStatus, now: datetime) -> str:
    late = overdue(row, now)
    if late is None:
        return _NOTHING
    return f"[bold red]{span(late)}[/]" if late > row.rule.promise else span(late)


def _empty(row: RuleStatus) -> str:
    if row.holds.empty_count is None:
        return _UNKNOWN
    count = row.holds.empty_count + row.holds.unreadable_count
    return f"[yellow]{number(count)}[/]" if count else _NOTHING


def _scan(row: RuleStatus, now: datetime) -> str:
    if row.tick is None:
        return "[yellow]never[/]"
    if row.tick.finished_at is None:
        return f"[yellow]running for {span(now - row.tick.started_at)}[/]"
    ago = f"{span(now - row.tick.finished_at)} ago"
    return f"[yellow]late, {ago}[/]" if row.tick_late else ago


ENDED = ("rule", "released", "p50", "p95", "p99", "longest", "redelivered", "skipped")
SPARED = ("skipped", "redelivered", "p95", "p50")  # in this order, where the screen is narrow
SKIPPED_CHARS = 16  # skips wrap, the other columns do not


def _ended(seen: Status, console: Console) -> Table:
    """Return what ended; a narrow screen loses empty columns first, then the lesser quantiles."""
    lines = [dict(zip(ENDED, cells, strict=True)) for cells in _ended_lines(seen)]
    shown = list(ENDED)
    for name in SPARED:
        empty = all(line[name] in {_NOTHING, ""} for line in lines)
        if _width(lines, shown) > console.width and (empty or name.startswith("p")):
            shown.remove(name)
    table = _table(*shown)
    for line in lines:
        table.add_row(*(line[name] for name in shown))
    return table


def _width(lines: list[dict[str, str]], shown: list[str]) -> int:
    widths = {
        name: max(len(name), *(Text.from_markup(line[name]).cell_len for line in lines), 0)
        for name in shown
    }
    if "skipped" in widths:
        widths["skipped"] = min(widths["skipped"], SKIPPED_CHARS)
    return sum(widths.values()) + 2 * len(shown)


def _ended_lines(seen: Status) -> Iterator[list[str]]:
    for row in seen.rules:
        name = f"[bold]{escape(row.rule.name)}[/]"
        if row.ended is None:
            yield [name, *[_NOTHING] * 7]
            continue
        yield [name, *_ended_cells(row, row.ended)]
        if row.tenant_count < 2:  # noqa: PLR2004 - the one tenant's line would say the same again
            continue
        for tenant, ended in row.tenants[:TENANTS_IN_TABLE]:
            who = "[dim]nobody[/]" if tenant is None else _cut(tenant)
            yield [f"[dim]└[/] {who}", *_ended_cells(row, ended)]
        if (more := row.tenant_count - TENANTS_IN_TABLE) > 0:
            yield [f"[dim]└ {more:,} more[/]", *[""] * 7]


def _cut(tenant: str) -> str:
    """Write a tenant's id; a long one would push the figures off the screen."""
    return escape(tenant if len(tenant) <= TENANT_CHARS else f"{tenant[: TENANT_CHARS - 1]}…")


def _ended_cells(row: RuleStatus, ended: Ended) -> list[str]:
    *quantiles, longest = lags(ended.lag_counts, ended.lag_max_seconds).values()
    skips = sorted(ended.skipped.items(), key=lambda one: -one[1])
    return [
        f"{ended.expired_count:,}" if ended.expired_count else _NOTHING,
        *(_lag(seconds, row) for seconds in quantiles),
        _lag(longest, row, exact=ended.lag_max_seconds is not None),
        f"[yellow]{ended.redelivery_count:,}[/]" if ended.redelivery_count else _NOTHING,
        ", ".join(f"{count:,} {escape(name)}" for name, count in skips) or _NOTHING,
    ]


def _lag(seconds: float | None, row: RuleStatus, *, exact: bool = False) -> str:
    """Write a lag, or a bucket's upper bound; red where it lies beyond the promise."""
    if seconds is None:
        return _NOTHING
    if seconds == float("inf"):
        return "[bold red]> 1 d[/]"
    text = f"{seconds * 1000:.0f} ms" if seconds < 1 else span(timedelta(seconds=seconds))
    if seconds >= _DAY_SECONDS:  # hours would push the other figures off a narrow screen
        text = f"{ceil(seconds / _DAY_SECONDS)} d"
    text = text if exact else f"≤ {text}"
    return f"[red]{text}[/]" if seconds > row.rule.promise.total_seconds() else text


def _reports(reports: ReportFigures, now: datetime) -> str:
    """Say how the reports of the last days stand, and what is owed."""
    states = [f"{number(count)} {escape(state)}" for state, count in reports.states.items()]
    parts = [", ".join(states) or "[dim]none of the last days yet[/]"]
    if reports.owed_count:
        since = ""
        if reports.oldest_owed_at is not None:
            since = f", the oldest for {span(now - reports.oldest_owed_at)}"
        parts.append(f"[yellow]{number(reports.owed_count)} owed[/]{since}")
    if reports.review_count:
        parts.append(f"[bold red]{number(reports.review_count)} for a person[/]")
    if reports.unknown_count:
        parts.append(f"[yellow]{number(reports.unknown_count)} mails unknown[/]")
    return "; ".join(parts)


def _foot(seen: Status) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for beat in seen.alive:
        hand = f", has {escape(beat.in_hand)} in hand" if beat.in_hand else ""
        up = span(seen.now - beat.started_at)
        grid.add_row(
            "process", f"[green]●[/] {beat.pid} on {escape(beat.host)}: {beat.roles}, up {up}{hand}"
        )
    for beat in seen.silent:
        silence = span(seen.now - beat.beat_at)
        grid.add_row(
            "process",
            f"[red]○[/] {beat.pid} on {escape(beat.host)}: {beat.roles}, silent for [red]{silence}[/]",
        )
    if not seen.alive and not seen.silent:
        grid.add_row("process", "[dim]none is running[/]")
    oldest = (
        ""
        if seen.outbox.oldest_at is None
        else f", the oldest since {span(seen.now - seen.outbox.oldest_at)}"
    )
    grid.add_row(
        "outbox",
        f"{number(seen.outbox.pending_count)} waiting{oldest}"
        if seen.outbox.pending_count
        else "[dim]nothing waits[/]",
    )
    for one in seen.events.targets:
        if one.state.active or one.owed_count or one.dead_count:
            grid.add_row("target", brief(one, seen.now))
    if seen.queue != QueueFigures():
        grid.add_row("queue", _queue(seen.queue))
    if seen.reports is not None:
        grid.add_row("reports", _reports(seen.reports, seen.now))
    if seen.failed:
        told = ", ".join(f"{number(count)} {escape(kind)}" for kind, count in seen.failed.items())
        grid.add_row("attempts", f"failed in the last hour: [yellow]{told}[/]")
    skew = seen.host_skew.total_seconds()
    grid.add_row(
        "clock",
        f"{seen.now:%Y-%m-%d %H:%M:%S} UTC in the database [dim](this host {skew:+.3f} s)[/]",
    )
    return grid


def _queue(queue: QueueFigures) -> str:
    counts = queue.counts
    told = (
        f"{counts.published_count:,} published and {counts.delivered_count:,} taken in the last "
        f"hour, {counts.passed_over_count:,} with nothing to do"
    )
    if not queue.stray_count:
        return told
    return f"{told}; [yellow]{number(queue.stray_count)} in review[/] that nobody can read"
