"""Cron lines against Debian's cron, minute by minute: random lines in every zone there is."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.domain.schedule import Cron, ScheduleError, last_at_or_before, next_after
from tests.unit.debian_cron import MINUTE, NEW_CLOCK, changes, runs, zone, zone_names

DAY = timedelta(days=1)
FIRST_YEAR, LAST_YEAR = 1973, 2037  # before, offsets with seconds are met
DAILY = [f"{minute} {hour} * * *" for hour in (0, 1, 2, 3, 23) for minute in (0, 15, 30)]


def firings(cron: Cron, start: datetime, end: datetime) -> list[datetime]:
    """Return the firings in [start, end)."""
    found = []
    instant = next_after(cron, start - MINUTE)
    while instant < end:
        found.append(instant)
        instant = next_after(cron, instant)
    return found


@st.composite
def fields(draw: st.DrawFn, first: int, last: int, names: str = "") -> str:
    return ",".join(draw(st.lists(terms(first, last, names), min_size=1, max_size=2)))


@st.composite
def terms(draw: st.DrawFn, first: int, last: int, names: str) -> str:
    numbers = st.integers(first, last)
    low, high = sorted((draw(numbers), draw(numbers)))
    step = draw(st.integers(1, last + 2))
    shapes = ["*", f"*/{step}", f"{low}", f"{low}-{high}"]
    shapes += [f"{low}-{high}/{step}"] if low < high else []
    shapes += [draw(st.sampled_from(names.split()))] if names else []
    return draw(st.sampled_from(shapes))


MONTHS = "jan feb mar APR may jun jul aug Sep oct nov dec"
WEEKDAYS = "sun mon tue wed THU fri Sat"
# Half of the days and months are *, or else most lines would fire once in years.
LINES = st.builds(
    "{} {} {} {} {}".format,
    fields(0, 59),
    fields(0, 23),
    st.just("*") | fields(1, 31),
    st.just("*") | fields(1, 12, MONTHS),
    st.just("*") | fields(0, 7, WEEKDAYS),
)


@st.composite
def spans(draw: st.DrawFn) -> tuple[str, datetime]:
    """Draw a zone, and an instant near a change of its clock if it has any in some years."""
    name = draw(st.sampled_from(zone_names()))
    year = draw(st.integers(FIRST_YEAR, LAST_YEAR - 3))
    known = changes(name, year, year + 3)
    plain = datetime(year, 1, 1, tzinfo=UTC) + draw(st.integers(0, 365)) * DAY
    return name, draw(st.sampled_from([*known, plain]))


def is_new_clock(name: str, middle: datetime) -> bool:
    """Tell whether the clock there is set back so far that Debian's cron calls it a new one."""
    before, after = (
        (middle + by).astimezone(zone(name)).replace(tzinfo=None) - by for by in (-DAY, DAY)
    )
    return before - after > NEW_CLOCK


def check(line: str, name: str, middle: datetime) -> None:
    """Compare firings forwards and backwards with the runs of Debian."""
    try:
        cron = Cron(line, name)
    except ScheduleError as error:
        assert "no calendar has" in str(error)  # noqa: PT017 - a line that Debian never runs
        return
    start, end = middle - DAY, middle + DAY
    wanted = runs(line, name, start, end)
    assert firings(cron, start, end) == wanted, (line, name, middle)
    for late in (middle, end - MINUTE):
        found = last_at_or_before(cron, late)
        known = [run for run in wanted if run <= late]
        assert (found == known[-1]) if known else (found is None or found < start), (line, name)


@given(LINES, spans())
@settings(max_examples=120, deadline=None)
def test_random_lines_in_random_zones_fire_as_debian_runs_them(
    line: str, span: tuple[str, datetime]
) -> None:
    if not is_new_clock(*span):
        check(line, *span)


@pytest.mark.proof
@given(LINES, spans())
@settings(max_examples=800, deadline=None)
def test_many_random_lines_fire_as_debian_runs_them(line: str, span: tuple[str, datetime]) -> None:
    if not is_new_clock(*span):
        check(line, *span)


# ------------------------------------------------ the rule itself, over all zones and their changes


def owed(line: str, name: str, start: datetime, end: datetime) -> int:
    """Count the firings that the documented rule owes a daily line, from the local dates alone.

    One for each local date that the clock shows or skips by less than 3 h.
    """
    there = zone(name)
    minute, hour = (int(field) for field in line.split()[:2])
    first = start.astimezone(there).replace(tzinfo=None, fold=0)
    last = end.astimezone(there).replace(tzinfo=None, fold=0)
    count, day = 0, first.replace(hour=hour, minute=minute, second=0) - DAY
    while day <= last + DAY:
        early, late = (day.replace(tzinfo=there, fold=fold).astimezone(UTC) for fold in (0, 1))
        skipped = early > late
        if not (skipped and early - late >= NEW_CLOCK):
            count += start <= (_gap_end(late, early, there) if skipped else early) < end
        day += DAY
    return count


def _gap_end(early: datetime, late: datetime, there: ZoneInfo) -> datetime:
    """Return the minute at which the clock jumped, between two instants around it."""
    final = late.astimezone(there).utcoffset()
    while early.astimezone(there).utcoffset() != final:
        early += MINUTE
    return early


def check_change(name: str, change: datetime) -> None:
    start, end = change - DAY, change + DAY
    for line in DAILY:
        found = firings(Cron(line, name), start, end)
        assert len(found) == owed(line, name, start, end), (line, name, change)
        assert len(set(found)) == len(found)
    quarter = firings(Cron("*/15 * * * *", name), start, end)
    walls = [start + number * MINUTE for number in range(2 * 24 * 60)]
    there = zone(name)
    assert quarter == [one for one in walls if one.astimezone(there).minute % 15 == 0], name


def test_no_firing_is_lost_or_doubled_in_a_zone() -> None:
    dice = random.Random(2026)
    for name in dice.sample(zone_names(), 150):
        known = changes(name, 2005, 2027)
        for change in dice.sample(known, min(1, len(known))):
            check_change(name, change)


@pytest.mark.proof
def test_no_firing_is_lost_or_doubled_in_any_zone() -> None:
    dice = random.Random(1973)
    most = None if os.environ.get("FREEHOLD_PROOF") == "long" else 8
    for name in zone_names():
        known = list(changes(name, FIRST_YEAR, LAST_YEAR))
        dice.shuffle(known)
        for change in known[:most]:
            check_change(name, change)
