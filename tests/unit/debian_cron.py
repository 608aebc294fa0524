"""Debian's cron as a slow program: every minute it looks at the clock on the wall.

It shares nothing with `freehold.domain`: it reads fields by itself, and steps through minutes.
Source: the loop and the parser of cron 3.0pl1-162 as REPORT.md section 2 tells them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
REPLAYED_MOST = 5 * MINUTE
NEW_CLOCK = timedelta(hours=3)
NAMES = {
    name: str(number)
    for names, first in (
        ("jan feb mar apr may jun jul aug sep oct nov dec", 1),
        ("sun mon tue wed thu fri sat", 0),
    )
    for number, name in enumerate(names.split(), first)
}


@cache
def zone(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


@cache
def values(field: str, first: int, last: int) -> frozenset[int]:
    found: set[int] = set()
    for term in field.lower().split(","):
        span, _, step = term.partition("/")
        low, _, high = span.replace("*", f"{first}-{last}").partition("-")
        low, high = NAMES.get(low, low), NAMES.get(high, high)
        found |= set(range(int(low), int(high or low) + 1, int(step or 1)))
    return frozenset(found)


def is_match(line: str, wall: datetime) -> bool:
    minute, hour, day, month, weekday = line.split()
    days = [
        wall.day in values(day, 1, 31),
        bool({wall.isoweekday() % 7, wall.isoweekday()} & values(weekday, 0, 7)),
    ]
    return (
        (all(days) if "*" in (day[0], weekday[0]) else any(days))
        and wall.minute in values(minute, 0, 59)
        and wall.hour in values(hour, 0, 23)
        and wall.month in values(month, 1, 12)
    )


def runs(line: str, zone_name: str, start: datetime, end: datetime) -> list[datetime]:
    """Return the instants in [start, end) at which Debian's cron runs the line.

    Its virtual clock chases the one on the wall: up to 5 minutes ahead it replays each minute, up
    to 3 h ahead it runs every skipped fixed line at once; 3 h back fixed lines rest.
    """
    is_wild = "*" in (line[0], line.split()[1][0])
    virtual = _wall(start, zone_name) - MINUTE
    ran = []
    for number in range((end - start) // MINUTE):
        instant = start + number * MINUTE
        wall = _wall(instant, zone_name)
        ahead = wall - virtual
        if abs(ahead) > NEW_CLOCK:
            virtual = wall - MINUTE
        is_replayed = not is_wild or MINUTE < ahead <= REPLAYED_MOST
        looked_at = _minutes(virtual, wall) if is_replayed else [wall]
        if any(is_match(line, each) for each in looked_at):
            ran.append(instant)
        virtual = max(virtual, wall)
    return ran


def _wall(instant: datetime, zone_name: str) -> datetime:
    return instant.astimezone(zone(zone_name)).replace(tzinfo=None, fold=0)


def _minutes(after: datetime, upto: datetime) -> Iterator[datetime]:
    """Yield the minutes in (after, upto]."""
    while after < upto:
        after += MINUTE
        yield after


@cache
def zone_names() -> list[str]:
    """Return one name of each zone that differs from the others."""
    names = files("tzdata").joinpath("zones").read_text("utf-8").split()
    texts: dict[bytes, str] = {}
    for name in names:
        data = files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
        texts.setdefault(data, name)
    return sorted(texts.values())


@cache
def changes(zone_name: str, first_year: int, last_year: int) -> list[datetime]:
    """Return the instants, to the minute, at which the zone's offset changes."""
    at, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(last_year + 1, 1, 1, tzinfo=UTC)
    there = zone(zone_name)
    found = []
    offset = at.astimezone(there).utcoffset()
    while at < end:
        late = at + timedelta(days=1)
        if (after := late.astimezone(there).utcoffset()) != offset:
            found.append(_first_with(after, at, late, there))
        at, offset = late, after
    return found


def _first_with(
    offset: timedelta | None, early: datetime, late: datetime, there: ZoneInfo
) -> datetime:
    while late - early > MINUTE:
        middle = early + (late - early) // MINUTE // 2 * MINUTE
        if middle.astimezone(there).utcoffset() == offset:
            late = middle
        else:
            early = middle
    return late
