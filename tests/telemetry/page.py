"""Writes docs/reference/telemetry.md from the vocabulary: `python -m tests.telemetry.page`.

The page is committed; a test compares it with what this writes.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from freehold.adapters.logs import ALLOWED, lines_of
from freehold.ports.telemetry import EVENTS, Event, Level
from freehold.testing.contracts.telemetry import EXAMPLES
from tests.house.source import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "reference" / "telemetry.md"
INTRO = """\
# Telemetry

<!-- Written by `python -m tests.telemetry.page`; change src/freehold/ports/telemetry.py. -->

A running process tells what it does as events of a closed vocabulary. `freehold run` writes them to
stderr as JSON, one line an event; `[logs] level` says from which level on. Depths and ages are not
told but read: `freehold status --json`.

- An event is told after the commit that it speaks of. A process killed between the two says nothing;
  the ledger has the record all the same.
- A line holds fields of the list below and no others: no guest data, no value of a column that no
  rule maps, no password, and never the database's own words, only its code. `freehold review show`
  has the words.
- Line ends, escape sequences and marks that turn the direction of text are written as `\\u...`, so
  that a value cannot begin a line of its own or change how a terminal shows it. A value is cut
  after 200 characters.
- Per operation there are lines only for failed attempts and dead letters; at level `debug` one for
  each release too.
- Telemetry never keeps the work from going on: a full disk or a closed pipe loses lines, not
  releases.

Every line has `event`, `level` and `at`, the host's clock.

"""


def page() -> str:
    """Return the whole page."""
    return INTRO + "".join(_events()) + "".join(_fields())


def _events() -> Iterator[str]:
    yield "## Events\n\n| event | level | fields | told when |\n|---|---|---|---|\n"
    for event in EVENTS:
        shown = ", ".join(f"`{name}`" for name in field_names(event))
        yield f"| `{event.name}` | {_levels(event)} | {shown} | {_purpose(event)} |\n"


def field_names(event: type[Event]) -> list[str]:
    """Return the names of all fields that a line of this event may have."""
    example = next(one for one in EXAMPLES if isinstance(one, event))
    return list(next(lines_of(example)))


def _levels(event: type[Event]) -> str:
    if "level" in vars(event):
        return "info or debug"
    return Level(event.usual_level).name.lower()


def _purpose(event: type[Event]) -> str:
    return _first_paragraph(event).rstrip(".")


def _first_paragraph(found: Any) -> str:
    return re.sub(r"\s+", " ", (inspect.getdoc(found) or "").split("\n\n")[0])


def _fields() -> Iterator[str]:
    yield "\n## Fields\n\n| field | what it is |\n|---|---|\n"
    for name, meaning in ALLOWED.items():
        yield f"| `{name}` | {meaning} |\n"


def told_fields() -> set[str]:
    """Return the names of the fields that the vocabulary makes."""
    return {name for event in EVENTS for name in field_names(event)}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
