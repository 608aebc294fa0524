"""What the demonstration shows: the shop's table on the left, what Freehold did on the right."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

COUNTS = "select status, count(*) from carts group by status"
HELD = (
    "select id, shop, seat, hold_until from carts where status = 'held' order by hold_until limit 8"
)
EVENTS = """
select r.hold_key, r.tenant, r.due_at, r.finished_at, r.outcome, r.reason, r.before_image
from freehold_record r order by r.rowid desc limit 8
"""
COLOURS = {"held": "yellow", "confirmed": "green", "cancelled": "bright_black", "expired": "cyan"}


@dataclass(frozen=True, slots=True)
class View:
    """One look at the database."""

    counts: dict[str, int]
    held: Sequence[tuple[int, str, str, str]]
    events: Sequence[tuple[str, str, str, str, str, str | None, str | None]]

    @property
    def released(self) -> int:
        """Return how many holds were released."""
        return self.counts.get("expired", 0)


def look(path: Path) -> View:
    """Read the shop's table and the ledger, as anybody with the file can."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return View(
            dict(connection.execute(COUNTS).fetchall()),
            connection.execute(HELD).fetchall(),
            connection.execute(EVENTS).fetchall(),
        )
    finally:
        connection.close()


def draw(view: View, now: datetime, seconds_left: float | None, where: str) -> RenderableType:
    """Draw one frame."""
    numbers = Text("  ").join(
        Text(f"{name} {view.counts.get(name, 0)}", style=colour) for name, colour in COLOURS.items()
    )
    end = "Ctrl-C ends it" if seconds_left is None else f"ends in {max(0.0, seconds_left):.0f} s"
    return Group(
        Text.assemble(("Freehold demonstration", "bold"), f"   {end}"),
        numbers,
        Columns([_held(view, now), _events(view)], padding=(0, 2)),
        Text(f"Look yourself: {where}", style="dim"),
    )


def _held(view: View, now: datetime) -> Panel:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("cart", "shop", "seat"):
        table.add_column(name)
    table.add_column("lapses in", justify="right")
    for key, shop, seat, until in view.held:
        left = (datetime.fromisoformat(until).replace(tzinfo=UTC) - now).total_seconds()
        style = "bold red" if left < 1 else "yellow"
        table.add_row(str(key), shop, seat, Text(f"{left:.1f} s", style=style))
    return Panel(table, title="the shop's own table", border_style="yellow", width=44, height=12)


def _events(view: View) -> Panel:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("cart", "shop", "seat", "outcome"):
        table.add_column(name)
    table.add_column("lag", justify="right")
    for key, shop, due_at, finished_at, outcome, reason, image in view.events:
        seat = json.loads(image)["seat"] if image else ""
        lag = datetime.fromisoformat(finished_at) - datetime.fromisoformat(due_at)
        style = "cyan" if outcome == "expired" else "bright_black"
        said = outcome if reason is None else f"{outcome}: {reason}"
        row = (key, shop, seat, said, f"{lag.total_seconds() * 1000:.0f} ms")
        table.add_row(*row, style=style)
    return Panel(table, title="what Freehold did", border_style="cyan", width=56, height=12)


def plain(view: View, now: datetime) -> str:
    """Say one frame in one line, for where there is no terminal."""
    counts = ", ".join(f"{name} {view.counts.get(name, 0)}" for name in COLOURS)
    return f"{now:%H:%M:%S}Z  {counts}"
