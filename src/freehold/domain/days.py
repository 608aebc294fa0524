"""How long a local day is: the windows of reports, and when their mails leave.

A day begins at the first instant whose local date it is, and ends where the next one begins. Where a
clock goes back just after midnight, the minutes that carry the earlier date again belong to the later
day, so that days stay contiguous.

*Invariants*: windows that follow each other tile the time line, also where a tenant moves to another
zone or the tz database changes; dates only grow; a date that does not exist has no window.
*Not here*: who has which window (`ports.report_calendar`); due columns, where the later reading of a
local time counts (`due_walls`).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import tzdata  # type: ignore[import-untyped]  # data, and no stubs

from freehold.domain.due_walls import change_between, zone_info
from freehold.domain.reports import Window

_DAY = timedelta(days=1)
_MOMENT = timedelta(microseconds=1)


def tz_version() -> str:
    """Return the version of the pinned tz database, such as 2026a."""
    return str(tzdata.IANA_VERSION)


def is_zone(name: str) -> bool:
    """Tell whether the pinned tz database has a zone of that name."""
    try:
        zone_info(name)
    except ValueError:
        return False
    return True


def first_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant at which the clock there shows a naive local time, or a later one.

    Of a repeated time it is the first pass; of a skipped one the jump itself, which may come before
    the skipped span would have reached it (Toronto 1919-03-31, where the jump began at 23:30).
    """
    late = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    early = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if early < late:  # only of a skipped time, PEP 495: the second reading has the later offset
        return change_between(early, late, zone)
    return late


def day_start(day: date, zone: ZoneInfo) -> datetime:
    """Return the first instant of a local day; of one that does not exist, of the day after it."""
    return first_instant(datetime.combine(day, time.min), zone)


def day_at(instant: datetime, zone: ZoneInfo) -> date:
    """Return the local day that an instant lies in."""
    shown = instant.astimezone(zone).date()
    return shown + _DAY if day_start(shown + _DAY, zone) <= instant else shown


def window_of(day: date, zone: str, start_at: datetime | None = None) -> Window | None:
    """Return the window of a local day.

    Args:
        zone: a name of the tz database.
        start_at: where the window before ended, if there was one; else the day's own beginning.

    Returns:
        None where nothing of the day is left, or where it does not exist.
    """
    info = zone_info(zone)
    start = day_start(day, info) if start_at is None else start_at.astimezone(UTC)
    end = day_start(day + _DAY, info)
    return Window(day, start, end, zone, tz_version()) if start < end else None


def window_from(day: date, zone: str, start_at: datetime) -> Window:
    """Return the window that begins at an instant, of this day or of the first one after that fits.

    Source: where a tenant moves east over the date line, a date may have passed there already.
    """
    found = window_of(day, zone, start_at)
    while found is None:
        day += _DAY
        found = window_of(day, zone, start_at)
    return found


def window_after(window: Window, zone: str) -> Window:
    """Return the window that follows: it begins where this one ended."""
    return window_from(window.report_date + _DAY, zone, window.end_at)


def window_anew(window: Window, zone: str) -> Window:
    """Return an open window with its end computed again, for another zone or tz database."""
    return window_from(window.report_date, zone, window.start_at)


def window_up_to(window: Window, now: datetime, zone: str) -> Window:
    """Return one window of all days from an open one up to the day in hand, which is left out.

    Args:
        window: over already.
        zone: what its end was computed with.
    """
    info = zone_info(zone)
    end = day_start(day_at(now, info), info)
    last = day_at(end - _MOMENT, info)
    return Window(max(last, window.report_date), window.start_at, end, zone, tz_version())


def due_at(window: Window, hour: int) -> datetime:
    """Return when the report's mail leaves: at a local hour of the next day that exists.

    Never before the window's end. An hour that comes twice counts the first time; one that is skipped
    counts as the jump.

    Args:
        hour: 0 to 23.
    """
    info = zone_info(window.zone)
    day = window.report_date + _DAY
    while day_start(day, info) == day_start(day + _DAY, info):
        day += _DAY
    return max(first_instant(datetime.combine(day, time(hour)), info), window.end_at)


def is_missed(window: Window, now: datetime, catch_up: int, zone: str) -> bool:
    """Tell whether a window that is over lies too far back for its report to be sent.

    The newest `catch_up` windows that are over are sent; the newest one always is.
    """
    for _ in range(max(catch_up, 1)):
        window = window_after(window, zone)
        if window.end_at > now:
            return False
    return True
