"""Days of a clock on the wall: where they begin and end, what follows them, when their mail leaves."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.domain import days
from freehold.domain.days import (
    day_at,
    day_start,
    due_at,
    is_missed,
    is_zone,
    tz_version,
    window_after,
    window_anew,
    window_of,
    window_up_to,
)
from freehold.domain.due_walls import zone_info
from freehold.domain.reports import Window

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = timedelta(days=1)
MOMENT = timedelta(microseconds=1)
LONG = os.environ.get("FREEHOLD_PROOF") == "long"
ZONES = tuple(files("tzdata").joinpath("zones").read_text("utf-8").split())
CASABLANCA, VANCOUVER, HAVANA = "Africa/Casablanca", "America/Vancouver", "America/Havana"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def window(zone: str, day: str) -> Window:
    found = window_of(date.fromisoformat(day), zone)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("zone", "day", "start", "end", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00", "2026-03-29T22:00", 23),
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00", "2026-10-25T23:00", 25),
        ("America/New_York", "2026-03-08", "2026-03-08T05:00", "2026-03-09T04:00", 23),
        ("America/New_York", "2026-11-01", "2026-11-01T04:00", "2026-11-02T05:00", 25),
        ("Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00", "2026-04-05T13:30", 24.5),
        ("Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30", "2026-10-04T13:00", 23.5),
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00", "2018-11-05T02:00", 23),
        ("America/Sao_Paulo", "2018-02-17", "2018-02-17T02:00", "2018-02-18T03:00", 25),
        ("Pacific/Apia", "2011-12-29", "2011-12-29T10:00", "2011-12-30T10:00", 24),
        ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00", "2011-12-31T10:00", 24),
        ("America/Toronto", "1919-03-31", "1919-03-31T04:30", "1919-04-01T04:00", 23.5),
        # The clock goes back at 00:01: the minute before belongs to the new day, and comes again.
        ("America/St_Johns", "2010-11-07", "2010-11-07T02:30", "2010-11-08T03:30", 25),
        ("UTC", "2026-06-01", "2026-06-01T00:00", "2026-06-02T00:00", 24),
    ],
)
def test_a_day_has_its_bounds(zone: str, day: str, start: str, end: str, hours: float) -> None:
    found = window(zone, day)
    assert (found.start_at, found.end_at) == (utc(start), utc(end))
    assert found.span == timedelta(hours=hours)
    assert (found.zone, found.tz_version) == (zone, tz_version())


def test_a_day_that_does_not_exist_has_no_window() -> None:
    assert window_of(date(2011, 12, 30), "Pacific/Apia") is None
    before = window("Pacific/Apia", "2011-12-29")
    assert window_after(before, "Pacific/Apia") == window("Pacific/Apia", "2011-12-31")


@pytest.mark.parametrize(
    ("zone", "day", "hours", "older_hours"),
    [
        (CASABLANCA, "2026-09-20", 25, 24),
        (CASABLANCA, "2027-02-07", 24, 25),
        (VANCOUVER, "2026-11-01", 24, 25),
        (HAVANA, "2026-11-01", 24, 25),
    ],
)
def test_another_tz_database_has_other_days(
    zone: str, day: str, hours: int, older_hours: int
) -> None:
    """Whatever the pinned database says now: each row is one of the two that it was measured with."""
    expected = hours if tz_version() >= "2026f" else older_hours
    assert window(zone, day).span == timedelta(hours=expected)


def test_the_zones_are_those_of_the_pinned_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONTZPATH", "/nowhere")
    assert is_zone("Europe/Berlin")
    assert not is_zone("Europe/Nowhere")
    assert tz_version() >= "2024a"


class TestEveryZone:
    """N days tile their span: no gap, no overlap, lengths in UTC, the right dates."""

    @pytest.mark.parametrize("years", [(2011, 2012), (2026, 2027)])
    def test_in_some_years(self, years: tuple[int, int]) -> None:
        for name in _different_zones():
            assert _tiles(name, date(years[0], 1, 1), date(years[1], 1, 1)), name

    @pytest.mark.proof
    def test_in_many_years(self) -> None:
        years = (1995, 2038) if LONG else (2006, 2012)
        for name in ZONES if LONG else _different_zones():
            assert _tiles(name, date(years[0], 1, 1), date(years[1], 1, 1)), name


def _different_zones() -> Iterator[str]:
    """Name one zone of each set that has the same rules."""
    seen = set()
    for name in ZONES:
        rules = files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
        if rules not in seen:
            seen.add(rules)
            yield name


def _tiles(name: str, first: date, until: date) -> bool:
    zone = zone_info(name)
    begin = reached = day_start(first, zone)
    total, day = timedelta(0), first
    while day < until:
        found = window_of(day, name)
        if found is None:
            assert name in ("Pacific/Apia", "Pacific/Fakaofo"), (name, day)
        else:
            assert found.start_at == reached, (name, day)
            assert found.start_at.astimezone(zone).date() == day
            assert (found.start_at - MOMENT).astimezone(zone).date() < day
            assert day_at(found.start_at, zone) == day_at(found.end_at - MOMENT, zone) == day
            assert timedelta(hours=20) < found.span < timedelta(hours=28)
            total += found.span
            reached = found.end_at
        day += DAY
    return total == reached - begin


@pytest.mark.parametrize(
    ("zone", "day", "hour", "due"),
    [
        ("Asia/Kolkata", "2026-03-09", 23, "2026-03-10T17:30"),  # metabase#4398
        ("Europe/Berlin", "2026-01-14", 12, "2026-01-15T11:00"),  # matomo#7658
        ("Europe/Berlin", "2026-07-14", 12, "2026-07-15T10:00"),
        ("Europe/Berlin", "2026-03-27", 7, "2026-03-28T06:00"),  # odoo#68612
        ("Europe/Berlin", "2026-03-28", 7, "2026-03-29T05:00"),
        ("Europe/Berlin", "2026-03-29", 7, "2026-03-30T05:00"),
        ("Europe/Berlin", "2026-10-23", 7, "2026-10-24T05:00"),
        ("Europe/Berlin", "2026-10-24", 7, "2026-10-25T06:00"),
        ("Europe/Berlin", "2026-10-25", 7, "2026-10-26T06:00"),
        ("Europe/Berlin", "2026-10-24", 2, "2026-10-25T00:00"),  # 02:00 twice: the first time
        ("America/New_York", "2026-03-07", 2, "2026-03-08T07:00"),  # rundeck#3234
        ("America/Sao_Paulo", "2018-11-03", 0, "2018-11-04T03:00"),
        ("Pacific/Honolulu", "2026-03-09", 7, "2026-03-10T17:00"),  # mattermost PR#834
        ("Pacific/Kiritimati", "2026-03-09", 7, "2026-03-09T17:00"),
        ("Asia/Shanghai", "2026-03-08", 5, "2026-03-08T21:00"),  # matomo#24980: on Monday there
        ("Pacific/Apia", "2011-12-29", 7, "2011-12-30T17:00"),  # 07:00 of the 31st
        ("UTC", "2026-03-09", 0, "2026-03-10T00:00"),
    ],
)
def test_the_mail_leaves_at_the_hour_of_the_next_day(
    zone: str, day: str, hour: int, due: str
) -> None:
    assert due_at(window(zone, day), hour) == utc(due)


def test_a_week_of_mondays_is_a_monday_there() -> None:
    """matomo#24980: the day of the week counts where the tenant is."""
    at = due_at(window("Asia/Shanghai", "2026-03-08"), 5).astimezone(zone_info("Asia/Shanghai"))
    assert (at.weekday(), at.hour) == (0, 5)


@given(
    zone=st.sampled_from(ZONES),
    day=st.dates(date(2000, 1, 1), date(2037, 12, 1)),
    hour=st.integers(0, 23),
)
def test_each_day_has_one_due_after_its_end(zone: str, day: date, hour: int) -> None:
    """rundeck#3234, zulip#549: an hour that is skipped or comes twice gives one mail a day."""
    found = window_of(day, zone)
    if found is None:
        return
    dues = []
    for _ in range(3):
        dues.append(due_at(found, hour))
        assert found.end_at <= dues[-1] < window_after(found, zone).end_at + timedelta(hours=24)
        found = window_after(found, zone)
    assert dues == sorted(set(dues))


@given(
    day=st.dates(date(2008, 1, 1), date(2037, 12, 1)),
    moves=st.lists(st.sampled_from(ZONES), min_size=2, max_size=8),
)
def test_windows_tile_wherever_a_tenant_moves(day: date, moves: list[str]) -> None:
    _chain_tiles(day, moves)


@pytest.mark.parametrize(
    ("moves", "dates", "hours"),
    [
        (["Pacific/Honolulu", "Pacific/Kiritimati"], ["2026-06-01", "2026-06-03"], [24, 24]),
        (["Pacific/Kiritimati", "Pacific/Honolulu"], ["2026-06-01", "2026-06-02"], [24, 48]),
        (["Europe/Berlin", "America/New_York"], ["2026-06-01", "2026-06-02"], [24, 30]),
        (["America/New_York", "Europe/Berlin"], ["2026-06-01", "2026-06-02"], [24, 18]),
    ],
)
def test_a_move_makes_one_odd_day(moves: list[str], dates: list[str], hours: list[int]) -> None:
    chain = _chain_tiles(date(2026, 6, 1), moves)
    assert [one.report_date.isoformat() for one in chain] == dates
    assert [one.span / timedelta(hours=1) for one in chain] == hours


def _chain_tiles(day: date, moves: list[str]) -> list[Window]:
    first = window_of(day, moves[0]) or window_of(day + DAY, moves[0])
    assert first is not None
    chain = [first]
    for zone in moves[1:]:
        chain.append(window_after(chain[-1], zone))
    for before, after in pairwise(chain):
        assert after.start_at == before.end_at
        assert after.report_date > before.report_date
        assert timedelta(0) < after.span <= timedelta(hours=52)
        assert after.end_at == day_start(after.report_date + DAY, zone_info(after.zone))
    return chain


@given(
    day=st.dates(date(2008, 1, 1), date(2037, 12, 1)),
    moves=st.lists(st.sampled_from(ZONES), min_size=2, max_size=6),
)
def test_an_open_window_keeps_its_beginning_and_its_date_only_grows(
    day: date, moves: list[str]
) -> None:
    found = window_of(day, moves[0])
    if found is None:
        return
    for zone in moves[1:]:
        anew = window_anew(found, zone)
        assert anew.start_at == found.start_at
        assert anew.report_date >= found.report_date
        assert anew.end_at > anew.start_at
        assert (anew.zone, window_anew(anew, zone)) == (zone, anew)
        found = anew


class TestAnotherDatabase:
    """The tz database changes while a window is open, or between two."""

    @pytest.fixture(autouse=True)
    def _newer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let `switch` give a zone the rules of another one, under its own name."""
        self.rules: dict[str, str] = {}
        self.patch = monkeypatch

    def switch(self, zone: str, like: str, version: str) -> None:
        rules = files("tzdata").joinpath("zoneinfo", *like.split("/"))

        def load(name: str) -> ZoneInfo:
            if name != zone:
                return zone_info(name)
            with rules.open("rb") as data:
                return ZoneInfo.from_file(data, key=name)

        self.patch.setattr(days, "zone_info", load)
        self.patch.setattr(days, "tz_version", lambda: version)

    def test_a_later_end_leaves_no_gap(self) -> None:
        before = window(CASABLANCA, "2026-06-01")
        self.switch(CASABLANCA, "Etc/GMT", "2099z")
        after = window_after(before, CASABLANCA)
        assert after.start_at == before.end_at == utc("2026-06-01T23:00")
        assert (after.span, after.tz_version) == (timedelta(hours=25), "2099z")

    def test_an_earlier_end_leaves_no_overlap(self) -> None:
        before = window(CASABLANCA, "2026-06-01")
        self.switch(CASABLANCA, "Etc/GMT-2", "2099z")
        after = window_after(before, CASABLANCA)
        assert after.start_at == before.end_at
        assert after.span == timedelta(hours=23)

    def test_an_open_window_ends_where_the_newer_one_says(self) -> None:
        before = window(CASABLANCA, "2026-06-01")
        self.switch(CASABLANCA, "Etc/GMT", "2099z")
        anew = window_anew(before, CASABLANCA)
        assert (anew.report_date, anew.start_at) == (before.report_date, before.start_at)
        assert anew.end_at == before.end_at + timedelta(hours=1)
        assert (before.tz_version, anew.tz_version) == (tz_version(), "2099z")

    def test_a_zone_that_crosses_the_date_line_skips_a_date(self) -> None:
        before = window("Pacific/Honolulu", "2026-06-01")
        self.switch("Pacific/Honolulu", "Pacific/Kiritimati", "2099z")
        after = window_after(before, "Pacific/Honolulu")
        assert after.start_at == before.end_at
        assert after.report_date == date(2026, 6, 3)


@pytest.mark.parametrize("closed_count", [1, 2, 3, 4, 5, 30])
@pytest.mark.parametrize("catch_up", [0, 1, 3])
def test_the_oldest_of_missed_days_are_not_sent(closed_count: int, catch_up: int) -> None:
    first = window("Europe/Berlin", "2026-03-20")
    chain = [first]
    while len(chain) < closed_count:
        chain.append(window_after(chain[-1], "Europe/Berlin"))
    now = chain[-1].end_at
    missed = [is_missed(one, now, catch_up, "Europe/Berlin") for one in chain]
    sent_count = min(closed_count, max(catch_up, 1))
    assert missed == [True] * (closed_count - sent_count) + [False] * sent_count


def test_days_in_between_are_one_window() -> None:
    first = window("Pacific/Apia", "2011-12-20")
    now = window("Pacific/Apia", "2011-12-31").start_at + timedelta(hours=5)
    whole = window_up_to(first, now, "Pacific/Apia")
    assert (whole.start_at, whole.report_date) == (first.start_at, date(2011, 12, 29))
    assert window_after(whole, "Pacific/Apia") == window("Pacific/Apia", "2011-12-31")
