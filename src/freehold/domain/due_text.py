"""The spellings of a due column: text from a database or a JSON document becomes a value.

*Invariants*: no text makes these functions raise, and none longer than `LONGEST_CHARS` is parsed;
a fraction finer than a microsecond is rounded up, so that no hold ends early.
*Not here*: time zones (`freehold.domain.due_walls`), what a problem means (`EmptyDue`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from fractions import Fraction
from math import ceil

from freehold.domain.due_walls import EPOCH, MICROSECOND, shifted

LONGEST_CHARS = 64  # the longest ISO 8601 spelling in use has 35
_LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59Z
_MICROS_PER_SECOND = 1_000_000

_ZERO = re.compile(r"(?:0+(?:\.0*)?|0000-.*|0{8}.*)?", re.DOTALL)
_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T]00:00(?::00(?:\.0+)?)?)?")
_WHOLE = re.compile(r"[1-9][0-9]{0,15}")  # the fast way through `read_count`
_COUNT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
# As PostgreSQL prints an instant; the fast way through `read_stamp`, which a scan takes row by row.
_PRINTED = re.compile(
    r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?\+00"
)
_STAMP = re.compile(
    r"""
    (?P<year>[0-9]{4}) (?P<dash>-?) (?P<month>[0-9]{2}) (?P=dash) (?P<day>[0-9]{2})
    [Tt ]
    (?P<hour>[0-9]{2}) (?P<colon>:?) (?P<minute>[0-9]{2})
    (?: (?P=colon) (?P<second>[0-9]{2}) (?: [.,] (?P<fraction>[0-9]+) )? )?
    [ ]? (?P<offset> [Zz] | [+-] (?:0[0-9]|1[0-5]) (?: :? [0-5][0-9] (?: :? [0-5][0-9] )? )? )?
    """,
    re.VERBOSE,
)


class DueProblem(StrEnum):
    """Why a column's value names no instant."""

    NULL = "null"
    ZERO = "zero"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Stamp:
    """A date and time as written: what the clock shows (naive), and its offset if one is named."""

    clock: datetime
    offset: timedelta | None


def read_stamp(text: str) -> Stamp | DueProblem:
    """Read a date with a time of day, in any spelling of ISO 8601 or of an SQL database.

    A date alone is unreadable: it names a day, and its first instant would be early.
    """
    try:
        if _PRINTED.fullmatch(text):
            return Stamp(datetime.fromisoformat(text[:-3]), timedelta(0))
        found = _find(_STAMP, text)
        if isinstance(found, DueProblem):
            return found
        return Stamp(_clock(found), _named_offset(found["offset"]))
    except ValueError:  # the 30th of February, 25:00
        return DueProblem.UNREADABLE


def read_day(text: str) -> date | DueProblem:
    """Read a calendar date, also one that is written with a midnight behind it."""
    found = _find(_DAY, text)
    if isinstance(found, DueProblem):
        return found
    try:
        return date(*map(int, found.groups()))
    except ValueError:
        return DueProblem.UNREADABLE


def read_count(text: str, per_second: int) -> datetime | DueProblem:
    """Read a number of units since 1970 as an instant.

    Args:
        text: Digits, with or without fraction and exponent.
        per_second: How many units make a second.
    """
    if _WHOLE.fullmatch(text):
        whole, rest = divmod(int(text), per_second)
        if whole > _LAST_SECOND or (whole == _LAST_SECOND and rest):
            return DueProblem.UNREADABLE
        return EPOCH + timedelta(
            seconds=whole, microseconds=rest * _MICROS_PER_SECOND // per_second
        )
    found = _find(_COUNT, text)
    if isinstance(found, DueProblem):
        return found
    seconds = Fraction(found.group()) / per_second
    if seconds > _LAST_SECOND:
        return DueProblem.UNREADABLE
    return (
        EPOCH + ceil(seconds * _MICROS_PER_SECOND) * MICROSECOND if seconds > 0 else DueProblem.ZERO
    )


def _find(pattern: re.Pattern[str], text: str) -> re.Match[str] | DueProblem:
    if len(text) > LONGEST_CHARS:
        return DueProblem.UNREADABLE
    text = text.strip()
    if _ZERO.fullmatch(text):
        return DueProblem.ZERO
    return pattern.fullmatch(text) or DueProblem.UNREADABLE


def _clock(found: re.Match[str]) -> datetime:
    day = date(*(int(found[name]) for name in ("year", "month", "day")))
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    fraction = Fraction(f"0.{found['fraction'] or 0}")
    clock = datetime.combine(day, time(hour, minute, second))
    return shifted(clock, ceil(fraction * _MICROS_PER_SECOND) * MICROSECOND)


def _named_offset(text: str | None) -> timedelta | None:
    if text is None:
        return None
    if text in "Zz":
        return timedelta(0)
    digits = text[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = (int(digits[at : at + 2]) for at in (0, 2, 4))
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return -offset if text[0] == "-" else offset
