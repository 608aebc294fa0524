"""Schedules: when a rule is looked at, as people write it and as logical times.

*Invariants*: a schedule that exists is valid; its logical times are UTC and depend on nothing but
the schedule and the pinned tz database, so that any process computes the same ones.
*Not here*: the rules of cron (`freehold.domain.schedule_cron`), sleeping, runs and their leases.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime, timedelta

from cronsim import CronSim

from freehold.domain.due_walls import EPOCH, check_zone, zone_info
from freehold.domain.schedule_cron import ScheduleError, check_line, next_firing

__all__ = [
    "Cron",
    "Every",
    "Precise",
    "Schedule",
    "ScheduleError",
    "describe",
    "last_at_or_before",
    "next_after",
    "parse_duration",
    "parse_schedule",
]

LONGEST_CHARS = 100
LONGEST_DURATION = timedelta(days=3650)
LOOK_BACK = timedelta(days=5 * 366)  # longer than from one 29 February to the next
_SECOND = timedelta(seconds=1)
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_ORDINAL = re.compile(r"\b([0-9]+)th\b")  # cronsim writes 31th
_UNITS = {"days": "d", "hours": "h", "minutes": "m", "seconds": "s", "milliseconds": "ms"}
_DURATION = re.compile("".join(f"(?:(?P<{unit}>[0-9]+){mark})?" for unit, mark in _UNITS.items()))


@dataclass(frozen=True, slots=True)
class Every:
    """At every multiple of an interval, counted from 1970."""

    seconds: int

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= LONGEST_DURATION // _SECOND:
            raise ScheduleError(f"an interval of {self.seconds} s is not between 1 s and 3650 d")


@dataclass(frozen=True, slots=True)
class Precise:
    """At each due instant; the poll sees the holds made since."""

    poll_seconds: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.poll_seconds <= LONGEST_DURATION // _SECOND:
            raise ScheduleError(f"a poll every {self.poll_seconds} s is not between 0 s and 3650 d")


@dataclass(frozen=True, slots=True)
class Cron:
    """A five-field cron line, read in a zone by the rules of Debian's cron."""

    line: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        check_line(self.line)
        _check_zone(self.zone)


Schedule = Every | Precise | Cron


def parse_schedule(text: str, zone: str = "UTC") -> Schedule:
    """Read a schedule as a person writes it.

    Args:
        text: `precise`, `30s`, `every 1h30m`, five cron fields, or a macro such as `@daily`.
        zone: Where the clock hangs that a cron line is read from.

    Raises:
        ScheduleError: The text or the zone is wrong.
    """
    if len(text) > LONGEST_CHARS:
        raise ScheduleError(f"a schedule has at most {LONGEST_CHARS} characters, not {len(text)}")
    _check_zone(zone)
    words = text.split()
    if words == ["precise"]:
        return Precise()
    if len(words) == 2 and words[0] == "every":  # noqa: PLR2004 -- "every" and its interval
        return _parse_every(words[1])
    if len(words) == 1:
        return _parse_word(words[0], zone)
    return Cron(" ".join(words), zone)


def parse_duration(text: str) -> timedelta:
    """Read a duration such as `250ms`, `30s` or `1h30m`, largest unit first.

    Raises:
        ScheduleError: The text is wrong, or longer than 3650 days.
    """
    found = _DURATION.fullmatch(text.strip()) if len(text) <= LONGEST_CHARS else None
    if found is None or not found.group():
        raise ScheduleError(f"{text[:LONGEST_CHARS]!r} is no duration: write 30s, 15m, 2h or 1h30m")
    try:
        duration = timedelta(**{unit: int(count or 0) for unit, count in found.groupdict().items()})
    except OverflowError:
        duration = timedelta.max
    if duration > LONGEST_DURATION:
        raise ScheduleError(f"{text!r} is longer than {LONGEST_DURATION.days}d")
    return duration


def next_after(schedule: Every | Cron, instant: datetime) -> datetime:
    """Return the first logical time strictly after `instant`, in UTC."""
    if isinstance(schedule, Every):
        return _last_multiple(schedule, instant) + schedule.seconds * _SECOND
    return next_firing(schedule.line, zone_info(schedule.zone), instant)


def last_at_or_before(schedule: Every | Cron, instant: datetime) -> datetime | None:
    """Return the newest logical time at or before `instant`, in UTC.

    Returns:
        None for a cron line that did not fire in the five years before.
    """
    if isinstance(schedule, Every):
        return _last_multiple(schedule, instant)
    return _last_firing(schedule, (instant - EPOCH) // _SECOND)


def describe(schedule: Schedule) -> str:
    """Say in a few plain words when the schedule fires."""
    match schedule:
        case Precise():
            return "at each due instant"
        case Every(seconds=seconds):
            return f"every {_span_text(seconds)}"
        case Cron(line=line, zone=zone):
            words = _ORDINAL.sub(_ordinal, CronSim(line, EPOCH).explain())
            return f"{words[0].lower()}{words[1:]}, {zone}"


def _ordinal(found: re.Match[str]) -> str:
    number = int(found[1])
    teen = number % 100 // 10 == 1
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _parse_word(word: str, zone: str) -> Schedule:
    if word.startswith("@"):
        return Cron(_expand(word), zone)
    return _parse_every(word)


def _expand(macro: str) -> str:
    if macro == "@reboot":
        raise ScheduleError(
            "'@reboot' is no time: run `freehold run --until-idle` at the boot, as a systemd unit"
        )
    if macro.lower() in _MACROS and macro not in _MACROS:
        raise ScheduleError(f"{macro!r} must be in lower case: write {macro.lower()}")
    if macro not in _MACROS:
        raise ScheduleError(f"{macro!r} is not one of {', '.join(_MACROS)}")
    return _MACROS[macro]


def _parse_every(text: str) -> Every:
    interval = parse_duration(text)
    if interval % _SECOND or not interval:
        raise ScheduleError(f"an interval is one or more whole seconds, not {text!r}")
    return Every(interval // _SECOND)


def _check_zone(zone: str) -> None:
    try:
        check_zone(zone)
    except ValueError as error:
        raise ScheduleError(str(error)) from None


def _last_multiple(every: Every, instant: datetime) -> datetime:
    interval = every.seconds * _SECOND
    return EPOCH + (instant - EPOCH) // interval * interval


def _last_firing(cron: Cron, until: int) -> datetime | None:
    """Return the newest firing up to a second since 1970: the first after which none follows."""
    zone = zone_info(cron.zone)
    seconds = range(until - LOOK_BACK // _SECOND, until + 1)

    def is_last(second: int) -> bool:
        return (next_firing(cron.line, zone, EPOCH + second * _SECOND) - EPOCH) // _SECOND > until

    found = bisect_left(seconds, True, key=is_last)
    return EPOCH + seconds[found] * _SECOND if found else None


def _span_text(seconds: int) -> str:
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds % length == 0:
            return _count_text(seconds // length, unit)
    return _count_text(seconds, "second")


def _count_text(count: int, unit: str) -> str:
    return unit if count == 1 else f"{count} {unit}s"
