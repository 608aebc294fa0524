"""What a person should know about a firing near a jump of the clock, in a few plain words.

*Not here*: which instants fire (`freehold.domain.schedule_cron`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from freehold.domain.due_walls import offset_at, zone_info
from freehold.domain.schedule import Cron, Every
from freehold.domain.schedule_cron import is_wild, matches_between

_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_SHOWN_MOST = 3
_OWN_PACE = timedelta(hours=26)  # between firings farther apart a change of the clock is no news


def note(schedule: Every | Cron, firing: datetime, previous: datetime) -> str:
    """Say what is odd about a firing; empty when nothing is.

    Args:
        schedule: Whose firing it is.
        firing: In UTC.
        previous: The instant from which the firing is the next one.
    """
    if isinstance(schedule, Every):
        return ""
    zone = zone_info(schedule.zone)
    if is_wild(schedule.line):
        return _repeated(zone, firing) or _moved(zone, firing, previous)
    only = f"{repeated}; only it fires" if (repeated := _repeated(zone, firing)) else ""
    return _caught_up(schedule.line, zone, firing) or only or _moved(zone, firing, previous)


def _caught_up(line: str, zone: ZoneInfo, firing: datetime) -> str:
    """Name the skipped local times that a firing at the end of a gap stands for."""
    before, now = offset_at(firing - _SECOND, zone), offset_at(firing, zone)
    if now <= before:
        return ""
    gap_from, gap_to = (firing.replace(tzinfo=None) + offset for offset in (before, now))
    walls = matches_between(line, gap_from - _MINUTE, gap_to)
    if not walls:
        return ""
    named = ", ".join(f"{wall:%H:%M}" for wall in walls[:_SHOWN_MOST])
    more = f" and {len(walls) - _SHOWN_MOST} more" if len(walls) > _SHOWN_MOST else ""
    return f"stands for {named}{more}, which the clock skips"


def _repeated(zone: ZoneInfo, firing: datetime) -> str:
    """Say which of two it is, where the clock shows the same time twice."""
    wall = firing.astimezone(zone).replace(tzinfo=None, fold=0)
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first >= second:
        return ""
    return f"{'first' if firing == first else 'second'} of two {wall:%H:%M}"


def _moved(zone: ZoneInfo, firing: datetime, previous: datetime) -> str:
    by = offset_at(firing, zone) - offset_at(previous, zone)
    if not by or firing - previous > _OWN_PACE + abs(by):
        return ""
    way = "forward" if by > timedelta(0) else "back"
    return f"the clock is set {way} by {_hours(abs(by))} before it"


def _hours(by: timedelta) -> str:
    hours, rest = divmod(by // _MINUTE, 60)
    parts = [f"{hours} h" if hours else "", f"{rest} min" if rest else ""]
    return " ".join(part for part in parts if part)
