"""Cron lines fire when Debian's cron runs them, also where the clock jumps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.domain.schedule import Cron, ScheduleError, last_at_or_before, next_after
from tests.unit.debian_cron import MINUTE, runs

DAY = timedelta(days=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def firings(cron: Cron, start: datetime, end: datetime) -> list[datetime]:
    """Return the firings in [start, end)."""
    found = []
    instant = next_after(cron, start - timedelta(microseconds=1))
    while instant < end:
        found.append(instant)
        instant = next_after(cron, instant)
    return found


# ------------------------------------------------------------------------- the calendar (UTC, 2026)


def dates(line: str, count: int) -> list[str]:
    found = [at("2025-12-31T23:59Z")]
    for _ in range(count):
        found.append(next_after(Cron(line), found[-1]))
    return [f"{instant:%y-%m-%d %a}" for instant in found[1:]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0 0 13 * 5", "26-01-02 Fri, 26-01-09 Fri, 26-01-13 Tue, 26-01-16 Fri"),
        ("0 0 */2 * 1", "26-01-05 Mon, 26-01-19 Mon, 26-02-09 Mon"),
        ("0 0 1-31/2 * 1", "26-01-01 Thu, 26-01-03 Sat, 26-01-05 Mon, 26-01-07 Wed"),
        ("0 0 1 * */2", "26-01-01 Thu, 26-02-01 Sun, 26-03-01 Sun, 26-08-01 Sat"),
        ("0 0 1-31 * 1", "26-01-01 Thu, 26-01-02 Fri, 26-01-03 Sat"),
        ("0 0 *,1 * 1", "26-01-05 Mon, 26-01-12 Mon"),
        ("0 0 * * 0", "26-01-04 Sun, 26-01-11 Sun"),
        ("0 0 * * 7", "26-01-04 Sun, 26-01-11 Sun"),
        ("0 0 * * 1", "26-01-05 Mon, 26-01-12 Mon"),
        ("0 0 * * 1-5", "26-01-01 Thu, 26-01-02 Fri, 26-01-05 Mon"),
        ("0 0 * * Mon-FRI", "26-01-01 Thu, 26-01-02 Fri, 26-01-05 Mon"),
        ("0 0 * * 5-7", "26-01-02 Fri, 26-01-03 Sat, 26-01-04 Sun, 26-01-09 Fri"),
        ("0 0 1 jan,mar *", "26-01-01 Thu, 26-03-01 Sun, 27-01-01 Fri"),
        ("0 0 29 2 *", "28-02-29 Tue, 32-02-29 Sun, 36-02-29 Fri"),
        ("0 0 29 2 1", "26-02-02 Mon, 26-02-09 Mon"),
        ("0\t0   1 1 *", "26-01-01 Thu, 27-01-01 Fri"),
    ],
)
def test_the_calendar_is_that_of_debian(line: str, expected: str) -> None:
    wanted = expected.split(", ")
    assert dates(line, len(wanted)) == wanted


def test_steps_count_from_the_start_of_their_range() -> None:
    day, end = at("2026-01-01T00:00Z"), at("2026-01-01T01:00Z")
    assert [f.minute for f in firings(Cron("*/70 * * * *"), day, end)] == [0]
    assert [f.minute for f in firings(Cron("*/7 * * * *"), day, end)] == list(range(0, 60, 7))
    assert [f.minute for f in firings(Cron("5-59/15 * * * *"), day, end)] == [5, 20, 35, 50]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("0 0 * * fri-sun", "ends before it begins.*two ranges, 5-6,0"),
        ("0 22-2 * * *", "ends before it begins.*two ranges, 22-23,0-2"),
        ("0 0 * 6-1 *", "ends before it begins.*two ranges, 6-12,1"),
        ("0 0 * * Sunday", "not 0 to 7 or sun to sat: write sun"),
        ("0 0 * january *", "not 1 to 12 or jan to dec: write jan"),
        ("5/15 * * * *", r"step without a range: write 5-59/15, or \*/15"),
        ("0 0 * * mon/2", r"step without a range: write mon-sat/2, or \*/2"),
        ("mon/2 * * * *", "'mon' is not 0 to 59"),
        ("5-5/15 * * * *", "step within one value"),
        ("*/0 * * * *", "step of zero"),
        ("0 0 31 2 *", "no calendar has.*never run"),
        ("0 0 30 2 *", "no calendar has"),
        ("0 0 31 4,6 *", "no calendar has"),
        ("0 0 31 2 */2", "no calendar has"),
        ("0 0 30,31 2 *,1", "no calendar has"),
        ("0 0 L * *", "not 1 to 31: no cron knows a last"),
        ("0 0 15W * *", "not 1 to 31"),
        ("0 0 LW * *", "not 1 to 31"),
        ("0 0 * * 5L", "not 0 to 7"),
        ("0 0 * * 5#3", "neither.*skip the # in silence and run every week"),
        ("0 0 ? * 1", r"neither.*: write \*"),
        ("R 0 * * *", "not 0 to 59"),
        ("H 0 * * *", "not 0 to 59"),
        ("1~3 0 * * *", "neither"),
        ("1;2 0 * * *", "neither.*skip what follows the number in silence"),
        ("1.5 0 * * *", "neither"),
        ("-1 0 * * *", "neither"),
        ("** 0 * * *", "neither"),
        ("*-5 0 * * *", "neither"),
        ("1-2-3 0 * * *", "neither"),
        ("1/2/3 0 * * *", "neither"),
        ("1- 0 * * *", "neither"),
        ("0 0 * * 1,,3", "neither"),
        ("0 0 * * 1,", "neither"),
        ("60 * * * *", "not 0 to 59"),
        ("0 24 * * *", "not 0 to 23"),
        ("0 0 0 * *", "not 1 to 31"),
        ("0 0 32 * *", "not 1 to 31"),
        ("0 0 1 13 *", "not 1 to 12"),
        ("0 0 1 0 *", "not 1 to 12"),
        ("0 0 * * 8", "not 0 to 7"),
        ("0 jan * * *", "not 0 to 23"),
        ("007 0 * * *", "not 0 to 59"),
        ("٣ 0 * * *", "neither"),
        ("0 0 0 * * *", "five fields, not 6"),
        ("0 0 * *", "five fields, not 4"),
        ("", "five fields, not 0"),
    ],
)
def test_what_debian_refuses_or_never_runs_is_refused(line: str, reason: str) -> None:
    with pytest.raises(ScheduleError, match=reason) as refusal:
        Cron(line)
    assert "\n" not in str(refusal.value)


# ------------------------------------------------------------------------------------ jumping clocks

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
LORD_HOWE, SAO_PAULO, APIA = "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia"


@pytest.mark.parametrize(
    ("zone", "start", "end", "line", "expected"),
    [
        (BERLIN, "2026-03-28T23:00Z", "2026-03-29T22:00Z", "30 2 * * *", ["01:00"]),
        (BERLIN, "2026-03-28T23:00Z", "2026-03-29T22:00Z", "0 2,3 * * *", ["01:00"]),
        (BERLIN, "2026-03-29T00:00Z", "2026-03-29T02:00Z", "30 0-23 * * *", "00:30 01:00 01:30"),
        (BERLIN, "2026-03-29T00:00Z", "2026-03-29T03:00Z", "30 */2 * * *", "02:30"),
        (BERLIN, "2026-03-28T23:00Z", "2026-03-29T22:00Z", "30 2 29 * 1", ["01:00"]),
        (BERLIN, "2026-10-24T22:00Z", "2026-10-25T23:00Z", "30 2 * * *", ["00:30"]),
        (BERLIN, "2026-10-24T22:00Z", "2026-10-25T23:00Z", "30 * * * *", 25),
        (BERLIN, "2026-10-24T22:00Z", "2026-10-25T23:00Z", "30 0-23 * * *", 24),
        (NEW_YORK, "2026-03-08T05:00Z", "2026-03-09T04:00Z", "30 2 * * *", ["07:00"]),
        (NEW_YORK, "2026-11-01T04:00Z", "2026-11-02T05:00Z", "30 1 * * *", ["05:30"]),
        (LORD_HOWE, "2026-04-04T13:00Z", "2026-04-05T13:30Z", "45 1 * * *", ["14:45"]),
        (LORD_HOWE, "2026-04-04T14:30Z", "2026-04-04T16:00Z", "45 * * * *", "14:45 15:15"),
        (LORD_HOWE, "2026-10-03T13:30Z", "2026-10-04T13:00Z", "15 2 * * *", ["15:30"]),
        ("Africa/Casablanca", "2026-02-14T23:00Z", "2026-02-16T00:00Z", "30 2 * * *", ["01:30"]),
        ("Africa/Casablanca", "2026-03-22T00:00Z", "2026-03-22T23:00Z", "30 2 * * *", ["02:00"]),
        (APIA, "2011-12-29T12:00Z", "2011-12-31T12:00Z", "0 12 * * *", "22:00 22:00"),
        (APIA, "2011-12-29T00:00Z", "2012-01-02T00:00Z", "0 12 30 12 *", 0),
        (SAO_PAULO, "2018-11-04T03:00Z", "2018-11-05T02:00Z", "0 0 * * *", ["03:00"]),
        (SAO_PAULO, "2018-11-04T03:00Z", "2018-11-05T02:00Z", "30 0 * * *", ["03:00"]),
        (SAO_PAULO, "2018-11-04T03:00Z", "2018-11-05T02:00Z", "5 0 * * 0", ["03:00"]),
        (SAO_PAULO, "2018-02-17T02:00Z", "2018-02-18T03:00Z", "30 23 * * *", ["01:30"]),
        ("Africa/Cairo", "2026-04-23T22:00Z", "2026-04-24T21:00Z", "0 0 * * *", ["22:00"]),
        ("America/Santiago", "2026-09-06T04:00Z", "2026-09-07T03:00Z", "0 0 * * *", ["04:00"]),
        ("Asia/Beirut", "2026-03-28T22:00Z", "2026-03-29T21:00Z", "15 0 * * *", ["22:00"]),
        ("America/Havana", "2025-11-02T04:00Z", "2025-11-03T05:00Z", "0 0 * * *", ["04:00"]),
        ("Antarctica/Troll", "2026-03-28T23:00Z", "2026-03-29T22:00Z", "30 2 * * *", ["01:00"]),
        (
            "Pacific/Kwajalein",
            "1993-08-21T00:00Z",
            "1993-08-22T12:00Z",
            "0 12 * * *",
            "00:00 00:00",
        ),
    ],
)
def test_a_jump_of_the_clock_is_met_as_debian_meets_it(
    zone: str, start: str, end: str, line: str, expected: str | int | list[str]
) -> None:
    found = [f"{instant:%H:%M}" for instant in firings(Cron(line, zone), at(start), at(end))]
    if isinstance(expected, int):
        assert len(found) == expected
    else:
        assert found == (expected.split() if isinstance(expected, str) else expected)


CHANGES = [
    (BERLIN, "2026-03-29T01:00Z"),
    (BERLIN, "2026-10-25T01:00Z"),
    (NEW_YORK, "2026-03-08T07:00Z"),
    (NEW_YORK, "2026-11-01T06:00Z"),
    (LORD_HOWE, "2026-04-04T15:00Z"),
    (LORD_HOWE, "2026-10-03T15:30Z"),
    (SAO_PAULO, "2018-11-04T03:00Z"),
    (SAO_PAULO, "2018-02-18T02:00Z"),
    (APIA, "2011-12-30T10:00Z"),
    ("Antarctica/Troll", "2026-03-29T01:00Z"),
    ("Antarctica/Casey", "2019-10-03T19:00Z"),
    ("Antarctica/Casey", "2020-03-07T16:00Z"),
    ("Asia/Kathmandu", "2026-01-01T00:00Z"),
]


LINES = st.builds(
    "{} {} {} * {}".format,
    st.sampled_from(["0", "30", "45", "5,50", "0-59/20", "*", "*/15", "*/25,1"]),
    st.sampled_from(["0", "1", "2", "2,3", "23", "0-23", "1-4", "*", "*/2"]),
    st.sampled_from(["*", "*", "*/2", "29", "1-31/2"]),
    st.sampled_from(["*", "*", "1", "5-7", "*/3"]),
)


@given(LINES, st.sampled_from(CHANGES))
@settings(max_examples=150, deadline=None)
def test_firings_are_the_runs_of_debian(line: str, change: tuple[str, str]) -> None:
    zone, instant = change
    start, end = at(instant) - 12 * 60 * MINUTE, at(instant) + 12 * 60 * MINUTE
    assert firings(Cron(line, zone), start, end) == runs(line, zone, start, end)


@given(LINES, st.sampled_from(CHANGES), st.timedeltas(-2 * DAY, 2 * DAY))
@settings(max_examples=150, deadline=None)
def test_no_firing_lies_between_the_last_and_the_next(
    line: str, change: tuple[str, str], by: timedelta
) -> None:
    cron, instant = Cron(line, change[0]), at(change[1]) + by
    last, following = last_at_or_before(cron, instant), next_after(cron, instant)
    assert last is not None
    assert last <= instant < following
    assert next_after(cron, last) == following
    assert last_at_or_before(cron, following) == following
    assert last_at_or_before(cron, following - timedelta(microseconds=1)) == last


def test_a_clock_set_back_by_seven_hours_repeats_no_fixed_line() -> None:
    start, end = at("1994-01-31T00:00Z"), at("1994-02-01T12:00Z")  # at 17:00Z from 24:00 to 17:00
    vostok = "Antarctica/Vostok"
    assert len(firings(Cron("0 20 * * *", vostok), start, end)) == 1
    hours = firings(Cron("0 * * * *", vostok), start, end)
    assert {late - early for early, late in pairwise(hours)} == {60 * MINUTE}


def test_a_rare_line_is_found_forwards_and_backwards() -> None:
    cron = Cron("*/30 12 29 2 *", NEW_YORK)
    assert next_after(cron, at("2026-01-01T00:00Z")) == at("2028-02-29T17:00Z")
    assert last_at_or_before(cron, at("2026-01-01T00:00Z")) == at("2024-02-29T17:30Z")
    sunday = Cron("0 0 29 2 */7")
    assert next_after(sunday, at("2026-01-01T00:00Z")) == at("2032-02-29T00:00Z")
    assert last_at_or_before(sunday, at("2026-01-01T00:00Z")) is None


@pytest.mark.parametrize("line", ["0 0 29 2 */7", "* * 29 2 */7"])
def test_the_rarest_line_is_found_across_a_century_without_its_leap_day(line: str) -> None:
    assert next_after(Cron(line), at("2088-03-01T00:00Z")) == at("2128-02-29T00:00Z")
