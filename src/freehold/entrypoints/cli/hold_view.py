"""How holds of our own look: as data, as one block, as a table.

*Invariants*: times are shown in the tenant's zone with their offset, as the commands take them
back; a token is shown where it was just made or asked for, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from freehold.domain.due_walls import zone_info
from freehold.domain.inventory import Hold, HoldStatus
from freehold.domain.inventory_text import DEFAULT_ZONE
from freehold.entrypoints.cli.context import people

if TYPE_CHECKING:
    from freehold.ports.ledger import Transaction

_COLOURS = {
    HoldStatus.HELD: "yellow",
    HoldStatus.CONFIRMED: "green",
    HoldStatus.CANCELLED: "dim",
    HoldStatus.EXPIRED: "dim",
}
_NOTHING = "[dim]·[/]"
NARROW_CHARS = 80
TOKEN_CHARS = 36  # a UUID


@dataclass(frozen=True, slots=True)
class SeenHold:
    """A hold with what a person calls its unit, and the zone that its tenant lives in."""

    hold: Hold
    unit: str
    zone: str
    now: datetime

    @property
    def has_lapsed(self) -> bool:
        """Tell whether it is still held though its time is over: it is about to be released."""
        return self.hold.status is HoldStatus.HELD and self.hold.hold_until <= self.now

    def local(self, instant: datetime | None) -> str | None:
        """Write an instant in the tenant's zone; never later than it is."""
        if instant is None:
            return None
        unit = "seconds" if instant.second else "minutes"
        return instant.astimezone(zone_info(self.zone)).isoformat(" ", unit)

    def clock(self, instant: datetime) -> str:
        """Write what a clock there shows, without the offset; for tables."""
        unit = "seconds" if instant.second else "minutes"
        local = instant.astimezone(zone_info(self.zone))
        return local.replace(tzinfo=None).isoformat(" ", unit)


def seen(tx: Transaction, holds: Sequence[Hold]) -> list[SeenHold]:
    """Look up what the holds' units are called and which zone counts."""
    units = {one.id: one.name for one in tx.units.read(sorted({one.unit_id for one in holds}))}
    tenants = tx.tenants.read(sorted({one.tenant for one in holds}))
    zones = {one.id: one.zone or DEFAULT_ZONE for one in tenants}
    return [
        SeenHold(one, units.get(one.unit_id, "?"), zones.get(one.tenant, DEFAULT_ZONE), tx.now)
        for one in holds
    ]


def data(one: SeenHold, *, tokens: bool) -> dict[str, Any]:
    """Return a hold as data: ids as text, instants in UTC."""
    hold = one.hold
    found = {
        "id": str(hold.id),
        "tenant": hold.tenant,
        "unit_id": str(hold.unit_id),
        "unit": one.unit,
        "status": hold.status.value,
        "lapsed": one.has_lapsed,
        "starts_at": hold.stay and hold.stay.starts_at,
        "ends_at": hold.stay and hold.stay.ends_at,
        "hold_until": hold.hold_until,
        "reference": hold.reference,
        "created_at": hold.created_at,
        "changed_at": hold.changed_at,
        "expired_at": hold.expired_at,
    }
    return {**found, "token": str(hold.token)} if tokens else found


def print_one(one: SeenHold, said: str, *, tokens: bool) -> None:
    """Print a hold as a block under a line that says what happened."""
    from rich.table import Table

    hold = one.hold
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    rows = [
        ("hold", str(hold.id)),
        ("unit", f"[bold]{escape(one.unit)}[/] of {escape(hold.tenant)}"),
        ("stay", _stay(one)),
        ("status", _status(one)),
        ("until", one.local(hold.hold_until)),
        ("reference", None if hold.reference is None else escape(hold.reference)),
        ("expired", one.local(hold.expired_at)),
        ("token", str(hold.token) if tokens else None),
    ]
    for name, value in rows:
        if value is not None:
            table.add_row(f"  {name}", value)
    console = people()
    if said:
        console.print(f"[bold green]✓[/] {said}")
    console.print(table)


def print_many(found: Sequence[SeenHold], *, tokens: bool) -> None:
    """Print holds as a table, in local times; where zones differ, each stands below its tenant.

    On a narrow screen dates and times stand below each other, and give way to tokens.
    """
    from rich.table import Table

    console = people()
    narrow = console.width <= NARROW_CHARS
    zones = {one.zone for one in found}
    times = () if tokens and narrow else ("from", "to", "held until")
    table = Table(box=None, padding=(0, 1 if narrow else 2, 0, 0), header_style="dim")
    table.add_column("id", justify="right", no_wrap=True)
    table.add_column("tenant", overflow="fold")
    table.add_column("unit", overflow="fold")
    for name in ("status", *times, "reference"):
        table.add_column(name, min_width=10, overflow="fold")
    if tokens:
        table.add_column("token", no_wrap=True, min_width=TOKEN_CHARS)
    for one in found:
        cells = [*_whose(one, zoned=len(zones) > 1, narrow=narrow), _status(one)]
        cells += _times(one) if times else []
        cells.append(escape(one.hold.reference) if one.hold.reference else _NOTHING)
        table.add_row(*cells, *([str(one.hold.token)] if tokens else []))
    console.print(table)
    if len(zones) == 1:
        console.print(f"[dim]times in {zones.pop()}[/]")


def _whose(one: SeenHold, *, zoned: bool, narrow: bool) -> list[str]:
    zone = one.zone.replace("/", "/\n") if narrow else one.zone
    below = f"\n[dim]{zone}[/]" if zoned else ""
    hold = one.hold
    return [str(hold.id), escape(hold.tenant) + below, f"[bold]{escape(one.unit)}[/]"]


def _times(one: SeenHold) -> list[str]:
    stay = one.hold.stay
    return [
        _NOTHING if stay is None else one.clock(stay.starts_at),
        _NOTHING if stay is None else one.clock(stay.ends_at),
        one.clock(one.hold.hold_until),
    ]


def _status(one: SeenHold) -> str:
    if one.has_lapsed:
        return "[red]held, lapsed[/]"
    return f"[{_COLOURS[one.hold.status]}]{one.hold.status}[/]"


def _stay(one: SeenHold) -> str:
    stay = one.hold.stay
    if stay is None:
        return "the unit itself"
    return f"{one.local(stay.starts_at)} to {one.local(stay.ends_at)}"
