"""Wall clocks: which instants a local time stands for, and which local times are due at an instant.

Where a clock jumps, one local time has two readings (repeated) or none (skipped, which PEP 495
reads twice as well). Freehold always takes the later one, so that no hold ends early.

*Invariants*: the tz database is the one of the pinned tzdata package, never the host's, so that
two hosts agree; offsets change at whole seconds, and after 1970 never twice within `REACH`
(tested over every zone).
*Not here*: the column kinds and their bounds (`freehold.domain.due`).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# The longest jump of a clock since 1970 is 24 h (Apia 2011); the closest two lie 6 days apart.
REACH = timedelta(hours=25)


@cache
def _zone_names() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text("utf-8").split())


def check_zone(name: str) -> None:
    """Refuse a name that is not in the pinned tz database.

    Raises:
        ValueError: The name is unknown; the message is one sentence.
    """
    if name not in _zone_names():
        raise ValueError(
            f"time zone {name!r} is not known: use a name such as Europe/Berlin or UTC"
        )


@lru_cache(maxsize=1024)
def zone_info(name: str) -> ZoneInfo:
    """Return the zone of that name from the pinned tz database.

    Raises:
        ValueError: The name is unknown.
    """
    check_zone(name)
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def shifted(moment: datetime, by: timedelta) -> datetime:
    """Return `moment + by`, or the first or last datetime there is where that would overflow."""
    try:
        return moment + by
    except OverflowError:
        return (_LAST if by > timedelta(0) else _FIRST).replace(tzinfo=moment.tzinfo)


def later_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant of a naive local time: the later one where it is repeated or skipped.

    Source: PEP 495; a skipped time read with the offset before the jump is the later reading.
    """
    readings = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    return shifted(wall.replace(tzinfo=UTC, fold=0), -min(map(_offset, readings)))


def offset_at(instant: datetime, zone: ZoneInfo) -> timedelta:
    """Return how far the clock there is ahead of UTC."""
    return _offset(instant.astimezone(zone))


def change_between(early: datetime, late: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant with the offset of `late`, which `early` has not.

    Args:
        early: Aware.
        late: At most `REACH` later, with another offset.
        zone: Where the clock hangs.
    """
    final = offset_at(late, zone)
    seconds = range((early - EPOCH) // _SECOND, (late - EPOCH) // _SECOND + 1)

    def is_changed(second: int) -> bool:
        return offset_at(EPOCH + second * _SECOND, zone) == final

    return EPOCH + seconds[bisect_left(seconds, True, key=is_changed)] * _SECOND


@dataclass(frozen=True, slots=True)
class WallsDue:
    """The naive local times `v` due at an instant: v <= upto and not gap_from < v < gap_to."""

    upto: datetime
    gap_from: datetime
    gap_to: datetime


def walls_due(instant: datetime, zone: ZoneInfo) -> WallsDue:
    """Return exactly the local times whose later reading is at or before `instant`.

    In the first pass of a repeated span nothing of that span is due. For as long after a forward
    jump as the jump was wide, the skipped times follow the old offset and the others the new one,
    so that what is due is not one interval. Without such a gap the three values are equal.

    Args:
        instant: Aware, 1970 or later, to the microsecond.
        zone: Where the clock hangs.
    """
    shown = instant.astimezone(zone).replace(tzinfo=None, fold=0)
    upto = _end_of_first_pass(instant, zone) or shown
    gap_from, gap_to = _gap_in_force(instant, zone) or (upto, upto)
    return WallsDue(upto, gap_from, gap_to)


def _end_of_first_pass(instant: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the last local time before the repeated span that the clock is in for the first time."""
    local = instant.astimezone(zone)
    again = _offset(local.replace(fold=1))
    back_by = _offset(local) - again
    if not back_by:
        return None
    return _read_with(change_between(instant, instant + back_by, zone), again) - MICROSECOND


def _gap_in_force(instant: datetime, zone: ZoneInfo) -> tuple[datetime, datetime] | None:
    """Return the ends, both exclusive, of the skipped local times that are not due yet."""
    was, now = offset_at(instant - REACH, zone), offset_at(instant, zone)
    if now <= was:
        return None
    gap_from = _read_with(instant, was)
    gap_to = _read_with(change_between(instant - REACH, instant, zone), now)
    return (gap_from, gap_to) if gap_from < gap_to else None


def _read_with(instant: datetime, offset: timedelta) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None) + offset


def _offset(local: datetime) -> timedelta:
    offset = local.utcoffset()
    assert offset is not None
    return offset
