"""The small notations of the file: durations, table names, comparisons, assignments, row ranges.

*Invariants*: a reader raises `ValueError` with half a sentence that follows the place, and never
repeats a value that may be a secret.
*Not here*: which keys there are (`shape`), what must fit together (`consistency`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, NamedTuple

from freehold.domain.rules import Literal, Now, TableName, Test
from freehold.domain.schedule import ScheduleError, parse_duration

_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_PART = r'"(?:[^"]|"")+"|[^\s."]+'
_TABLE = re.compile(rf"(?:(?P<schema>{_PART})\.)?(?P<name>{_PART})")
_ROWS = re.compile(r"(?P<least>[0-9]{1,9})(?P<range>-(?P<most>[0-9]{1,9})?)?")


class Finding(NamedTuple):
    """One thing that is wrong: a dotted place, and the sentence that follows it."""

    place: str
    text: str


class Comparison(NamedTuple):
    """How one column is compared; the column is the key that it stands under."""

    test: Test
    values: tuple[Literal, ...] = ()


class RowRange(NamedTuple):
    """How many rows a companion may change; None is no limit."""

    least: int
    most: int | None


def suggestion(word: str, known: list[str]) -> str:
    """Return `; did you mean ...?` where one of the known words is close, else nothing."""
    close = get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def full_stop(sentence: str) -> str:
    """End a sentence, unless a question mark has."""
    return sentence if sentence.endswith("?") else f"{sentence}."


def read_duration(value: Any) -> timedelta:
    """Read `250ms`, `30s` or `1h30m`."""
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError(f'must be a duration in quotes, such as "30s", not {kind_of(value)}')  # noqa: TRY004 -- pydantic collects ValueError
    try:
        return parse_duration(value)
    except ScheduleError:
        raise ValueError("is no duration: write 250ms, 30s, 15m, 2h or 1h30m") from None


def read_span(value: Any) -> timedelta:
    """Read a duration longer than nothing."""
    span = read_duration(value)
    if not span:
        raise ValueError("must be longer than 0s")
    return span


def duration_text(span: timedelta) -> str:
    """Write a duration as the file has it, in the largest unit that divides it."""
    count_ms = span // timedelta(milliseconds=1)
    unit, length = next(one for one in _UNITS_MS if count_ms % one[1] == 0)
    return f"{count_ms // length}{unit}" if count_ms else "0s"


def read_table(value: Any) -> TableName:
    """Read `name` or `schema.name`; parts in double quotes or bare, always exact names."""
    if not isinstance(value, str):
        raise ValueError(f"must be a table's name in quotes, not {kind_of(value)}")  # noqa: TRY004 -- as above
    found = _TABLE.fullmatch(value.strip())
    if found is None:
        raise ValueError(
            "is no table's name: write name, schema.name or 'schema.\"Exact Name\"' "
            "(a dot, blank or quote belongs within double quotes)"
        )
    schema = found["schema"]
    return TableName(_unquoted(found["name"]), None if schema is None else _unquoted(schema))


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def read_comparison(value: Any) -> Comparison:
    """Read a bare value, a list, `{ lt = ... }` or `{ is = ... }`."""
    if isinstance(value, Comparison):
        return value
    if isinstance(value, list):
        if not value:
            raise ValueError("is an empty list, which nothing matches; name at least one value")
        return Comparison(Test.IN, tuple(read_literal(one) for one in value))
    if isinstance(value, Mapping):
        return _comparison_of(value)
    return Comparison(Test.EQUALS, (read_literal(value),))


def _comparison_of(table: Mapping[str, Any]) -> Comparison:
    match list(table.items()):
        case [("lt", bool())]:
            raise ValueError("compares with <, which needs a number or a text")
        case [("lt", limit)]:
            return Comparison(Test.LESS, (read_literal(limit),))
        case [("is", "null")]:
            return Comparison(Test.IS_NULL)
        case [("is", "not null")]:
            return Comparison(Test.IS_NOT_NULL)
        case [("is", _)]:
            raise ValueError('must be { is = "null" } or { is = "not null" }')
        case _:
            raise ValueError(
                'is no comparison: write a value, a list, { lt = ... }, { is = "null" } '
                'or { is = "not null" }'
            )


def read_assignment(value: Any) -> Literal | Now:
    """Read a bare value, `{ now = true }` or `{ null = true }`."""
    if not isinstance(value, Mapping):
        return value if isinstance(value, Now) or value is None else read_literal(value)
    match list(value.items()):
        case [("now", True)]:
            return Now()
        case [("null", True)]:
            return None
        case _:
            raise ValueError("is no value to set: write a value, { now = true } or { null = true }")


def read_literal(value: Any) -> Literal:
    """Read a text, number, true or false."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must be a finite number")
    if isinstance(value, str | int | float):
        return value
    raise ValueError(
        f"must be a text, a number, true or false, not {kind_of(value)}"
        " (write dates and times as text)"
    )


def read_rows(value: Any) -> RowRange:
    """Read `1`, `0-1`, `1-` or `any`."""
    if isinstance(value, RowRange):
        return value
    if value == "any":
        return RowRange(0, None)
    found = _ROWS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError('must be a row range in quotes: "1", "0-1", "1-" or "any"')
    least = int(found["least"])
    if not found["range"]:
        return RowRange(least, least)
    most = int(found["most"]) if found["most"] else None
    if most is not None and most < least:
        raise ValueError("ends before it starts")
    return RowRange(least, most)


def kind_of(value: Any) -> str:
    """Name the TOML kind of a value, never the value."""
    kinds = ((bool, "true or false"), (str, "a text"), (int, "a whole number"), (float, "a number"))
    for kind, name in (*kinds, (list, "a list"), (Mapping, "a table"), (type(None), "nothing")):
        if isinstance(value, kind):
            return name
    return "a date or time"
