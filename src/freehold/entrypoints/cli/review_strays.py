"""Strays in `freehold review`: their ids, and bytes shown so that no terminal obeys them."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from freehold.domain.inventory import ID_MAX
from freehold.entrypoints.cli.context import people

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehold.ports.strays import Stray

SHOWN_BYTES = 40  # of each in the list
_PLAIN = frozenset(string.ascii_letters + string.digits + string.punctuation + " ") - {"\\"}
_ID = re.compile(r"(?P<stray>stray-)?(?P<number>[1-9][0-9]{0,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ReviewId:
    """An id as `review list` shows it: 17 for an operation, stray-12 for a stray."""

    number: int
    is_stray: bool = False


def review_id(text: str | ReviewId) -> ReviewId:
    """Read an id.

    Raises:
        typer.BadParameter: it is none.
    """
    if isinstance(text, ReviewId):
        return text
    found = _ID.fullmatch(text)
    if found is None or int(found["number"]) > ID_MAX:
        raise typer.BadParameter(f"{text[:40]!r} is no id up to {ID_MAX} such as 17 or stray-12")
    return ReviewId(int(found["number"]), is_stray=found["stray"] is not None)


def escaped(raw: bytes) -> str:
    """Write bytes in letters of ASCII; what is none, and the backslash, as its number."""
    return "".join(chr(one) if chr(one) in _PLAIN else f"\\x{one:02x}" for one in raw)


def data_of(one: Stray) -> dict[str, Any]:
    """Return a stray as data."""
    return {
        "id": f"stray-{one.id}",
        "kind": "stray",
        "queue": one.queue,
        "reason": one.reason,
        "byte_count": one.byte_count,
        "seen_count": one.seen_count,
        "first_seen_at": one.first_seen_at.isoformat(),
        "last_seen_at": one.last_seen_at.isoformat(),
        "sha256": one.digest,
        "raw": escaped(one.raw),
    }


def print_list(found: Sequence[Stray]) -> None:
    """Print strays below the operations."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("id", "queue", "seen", "bytes", "what is wrong", "begins with"):
        table.add_column(name, justify="right" if name in ("seen", "bytes") else "left")
    for one in found:
        begin = escaped(one.raw[:SHOWN_BYTES]) + ("..." if one.byte_count > SHOWN_BYTES else "")
        counts = (f"{one.seen_count:,}", f"{one.byte_count:,}")
        table.add_row(f"stray-{one.id}", one.queue, *counts, one.reason, Text(begin))
    people().print(table)


def print_one(one: Stray) -> None:
    """Print a stray with all that is kept of its bytes."""
    for name, value in data_of(one).items():
        typer.echo(f"{name:<14} {value}")
    if one.byte_count > len(one.raw):
        typer.echo(f"the first {len(one.raw):,} of {one.byte_count:,} bytes are kept")
