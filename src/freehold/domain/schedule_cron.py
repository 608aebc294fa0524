"""Five-field cron by the rules of Debian's cron: what a line means, and when it fires.

cronsim knows the calendar. It is asked about local times only; which instants these are is decided
here, because cronsim differs from Debian at some jumps of the clock.

As in Debian's cron: days match if both day fields do where one begins with `*`, and if either does
otherwise. A line is wild if its minute or hour begins with `*`, else fixed. A fixed line fires at
the end of the gap for each time that the clock skipped (a jump of 3 h or more loses it), and only
the first time where the clock repeats itself. A wild line fires whenever the clock on the wall
matches.

Other than cronsim: a wild line also fires the second time where the clock is set back by less than
an hour (Lord Howe), and a day that a country skipped (Apia 2011) brings no extra firing.

Other than Debian's cron: two skipped times of one line are one firing and not two, since a firing
is its instant; a clock set back by over 3 h repeats no fixed line either; inverted ranges, dates
that never come and trailing junk are refused, where Debian never fires or skips them in silence;
and so is `5-5/15`, which cronsim takes for 5-59/15.

*Not here*: macros and the other schedules (`freehold.domain.schedule`), what is said about a firing
near a jump (`freehold.domain.schedule_notes`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

from cronsim import CronSim, CronSimError

from freehold.domain.due_walls import EPOCH, REACH, change_between, offset_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

_SECOND = timedelta(seconds=1)
_NEW_CLOCK = timedelta(hours=3)  # Debian's cron.c: such a jump is somebody setting the clock
_TERM = re.compile(
    r"(?:(?P<all>\*)|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>[0-9]+))?", re.ASCII
)
_NUMBER = re.compile(r"[0-9]{1,2}")


class ScheduleError(ValueError):
    """A schedule or duration cannot be read; the message is one sentence for a person."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()  # three letters each, the first one meaning `first`


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day-of-month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day-of-week", 0, 7, _WEEKDAYS),
)


def check_line(line: str) -> None:
    """Refuse what is not five fields that match some day.

    Raises:
        ScheduleError: The line is wrong; the message names the field.
    """
    fields = line.split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(
            f"a cron line has five fields, not {len(fields)}: {line!r}{_instead(fields)}"
        )
    for field, text in zip(_FIELDS, fields, strict=True):
        for term in text.split(","):
            _check_term(field, term)
    try:
        _simulate(line, EPOCH.replace(tzinfo=None))
    except CronSimError:
        raise ScheduleError(
            f"{line!r} names a day that no calendar has: Debian's cron would take it and never "
            "run; name an earlier day"
        ) from None


def next_firing(line: str, zone: ZoneInfo, instant: datetime) -> datetime:
    """Return the first firing of a checked line strictly after `instant`.

    There is always one: 29 February is a given day of the week at least every 40 years.
    """
    return (_next_wild if is_wild(line) else _next_fixed)(line, zone, instant)


def is_wild(line: str) -> bool:
    """Tell whether a line follows the clock on the wall: its minute or hour begins with `*`."""
    return any(field.startswith("*") for field in line.split()[:2])


def matches_between(line: str, after: datetime, before: datetime) -> list[datetime]:
    """Return the naive local times of a checked line in (after, before)."""
    return list(takewhile(lambda wall: wall < before, _simulate(line, after)))


def _check_term(field: _Field, term: str) -> None:
    found = _TERM.fullmatch(term)
    if found is None:
        raise ScheduleError(
            f"{field.name} {term!r} is neither *, a number, a range nor a step{_cure(field, term)}"
        )
    if found["step"] and not (found["all"] or found["high"]):
        _number(field, found["low"])
        last = field.names[-1] if field.names else field.last
        raise ScheduleError(
            f"{field.name} {term!r} has a step without a range: "
            f"write {found['low']}-{last}/{found['step']}, or */{found['step']}"
        )
    if found["step"] and not int(found["step"]):
        raise ScheduleError(f"{field.name} {term!r} has a step of zero")
    _check_ends(field, term, [_number(field, found[end]) for end in ("low", "high") if found[end]])


def _check_ends(field: _Field, term: str, ends: list[int]) -> None:
    if "/" in term and len(set(ends)) == 1:
        raise ScheduleError(f"{field.name} {term!r} has a step within one value")
    if ends != sorted(ends):
        raise ScheduleError(
            f"{field.name} {term!r} ends before it begins, and Debian's cron would never run it: "
            f"write two ranges, {_wrapped(field, ends)}"
        )


def _number(field: _Field, text: str) -> int:
    if text.lower() in field.names:
        return field.first + field.names.index(text.lower())
    if _NUMBER.fullmatch(text) and field.first <= int(text) <= field.last:
        return int(text)
    names = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
    raise ScheduleError(
        f"{field.name} {text!r} is not {field.first} to {field.last}{names}{_cure(field, text)}"
    )


def _instead(fields: list[str]) -> str:
    """Say what to write for a line that has not five fields, where the intention is plain."""
    if fields[:1] == ["@every"]:
        return f"; write {' '.join(['every', *fields[1:]])}"
    if fields and fields[0].startswith("@"):
        return f"; {fields[0]} stands alone"
    if len(fields) == len(_FIELDS) + 1:
        return "; there is no field for seconds: write every 30s, or leave the sixth away"
    return ""


def _cure(field: _Field, text: str) -> str:
    """Say what to write for a term that other programs know."""
    short = text[:3].lower()
    if short in field.names and text.isalpha():
        return f": write {short}"
    if text == "?":
        return ": write *"
    if text.upper().endswith(("L", "W")):
        return ": no cron knows a last or nearest day; name the days, as in 25-31"
    if "#" in text:
        return ": Debian's cron would skip the # in silence and run every week; name the days"
    if re.match("[0-9]+[^0-9/-]", text):
        return ": Debian's cron would skip what follows the number in silence; leave it away"
    return ""


def _wrapped(field: _Field, ends: list[int]) -> str:
    """Write an inverted range as the two that were meant."""
    low, high = ends
    last = 6 if field.names is _WEEKDAYS else field.last  # 7 is Sunday again
    spans = ((low, last), (field.first, high))
    return ",".join(str(one) if one == end else f"{one}-{end}" for one, end in spans)


def _next_fixed(line: str, zone: ZoneInfo, instant: datetime) -> datetime:
    local = instant.astimezone(zone).replace(tzinfo=None, fold=0)
    firings = (_fixed_firing(wall, zone) for wall in _simulate(line, local))
    return next(firing for firing in firings if firing and firing > instant)


def _fixed_firing(wall: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the first instant of a local time; if it is skipped, the gap's end or, if long, None."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first <= second:
        return first
    is_caught_up = first - second < _NEW_CLOCK  # skipped: PEP 495 swaps the readings
    return change_between(second, first, zone) if is_caught_up else None


def _next_wild(line: str, zone: ZoneInfo, instant: datetime) -> datetime:
    """Follow the clock on the wall from one change of its offset to the next."""
    after = instant.astimezone(UTC).replace(microsecond=0)
    while True:
        start, end = after + _SECOND, after + REACH
        offset = offset_at(start, zone)
        wall = next(_simulate(line, after.replace(tzinfo=None) + offset))
        firing = wall.replace(tzinfo=UTC) - offset
        is_changing = offset_at(end, zone) != offset
        last = change_between(start, end, zone) - _SECOND if is_changing else end
        if firing <= last:
            return firing
        # No other offset brings this local time nearer than the farthest two lie apart (26 h).
        after = last if is_changing else max(last, firing - 2 * REACH)


def _simulate(line: str, wall: datetime) -> Iterator[datetime]:
    """Yield the naive local times after `wall` at which the line matches, for 50 years."""
    return CronSim(line, wall)
