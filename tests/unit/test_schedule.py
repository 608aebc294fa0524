"""Schedules as people write them, and the intervals among them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.domain.schedule import (
    Cron,
    Every,
    Precise,
    Schedule,
    ScheduleError,
    describe,
    last_at_or_before,
    next_after,
    parse_duration,
    parse_schedule,
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("precise", Precise()),
        (" precise ", Precise()),
        ("30s", Every(30)),
        ("5m", Every(300)),
        ("1h", Every(3600)),
        ("2d", Every(172_800)),
        ("every 30s", Every(30)),
        ("every  1h30m", Every(5400)),
        ("30 2 * * *", Cron("30 2 * * *", "Europe/Berlin")),
        ("  30\t2 * * MON ", Cron("30 2 * * MON", "Europe/Berlin")),
        ("@hourly", Cron("0 * * * *", "Europe/Berlin")),
        ("@daily", Cron("0 0 * * *", "Europe/Berlin")),
        ("@midnight", Cron("0 0 * * *", "Europe/Berlin")),
        ("@weekly", Cron("0 0 * * 0", "Europe/Berlin")),
        ("@monthly", Cron("0 0 1 * *", "Europe/Berlin")),
        ("@yearly", Cron("0 0 1 1 *", "Europe/Berlin")),
        ("@annually", Cron("0 0 1 1 *", "Europe/Berlin")),
    ],
)
def test_a_schedule_is_read_as_written(text: str, expected: Schedule) -> None:
    assert parse_schedule(text, "Europe/Berlin") == expected


def test_the_zone_is_utc_unless_named() -> None:
    assert parse_schedule("@daily") == Cron("0 0 * * *", "UTC")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@reboot", "is no time: run `freehold run --until-idle` at the boot"),
        ("@fortnightly", "is not one of @hourly, @daily"),
        ("@DAILY", "lower case: write @daily"),
        ("@every 5m", "five fields, not 2: '@every 5m'; write every 5m"),
        ("@daily now", "five fields, not 2: '@daily now'; @daily stands alone"),
        ("every", "no duration"),
        ("every 5", "no duration"),
        ("every 5 m", "five fields"),
        ("every -5m", "no duration"),
        ("every 0s", "whole seconds"),
        ("250ms", "whole seconds"),
        ("1s500ms", "whole seconds"),
        ("3651d", "longer than 3650d"),
        ("sometimes", "no duration"),
        ("", "five fields"),
        ("0 0 0 * * *", "five fields, not 6: .*; there is no field for seconds: write every 30s"),
        ("* " * 60, "at most 100 characters, not 120"),
    ],
)
def test_what_is_no_schedule_is_refused_in_one_sentence(text: str, reason: str) -> None:
    with pytest.raises(ScheduleError, match=reason) as refusal:
        parse_schedule(text)
    assert "\n" not in str(refusal.value)


def test_an_unknown_zone_is_refused_whatever_the_schedule() -> None:
    for text in ("@daily", "30s", "precise"):
        with pytest.raises(ScheduleError, match="'Mars' is not known"):
            parse_schedule(text, "Mars")
    with pytest.raises(ScheduleError, match="'Mars' is not known"):
        Cron("0 0 * * *", "Mars")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("250ms", timedelta(milliseconds=250)),
        ("30s", timedelta(seconds=30)),
        ("15m", timedelta(minutes=15)),
        ("2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        ("1h30m", timedelta(minutes=90)),
        ("1d2h3m4s5ms", timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)),
        ("90m", timedelta(minutes=90)),
        (" 0s ", timedelta(0)),
        ("3650d", timedelta(days=3650)),
    ],
)
def test_a_duration_is_read_as_written(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "5",
        "m",
        "30m1h",
        "1h1h",
        "1.5h",
        "-5m",
        "5 m",
        "5M",
        "1w",
        "٣s",
        "9" * 99 + "d",
        "9d" * 99,
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        parse_duration(text)
    assert len(str(refusal.value)) < 200


def test_an_interval_is_aligned_to_the_epoch() -> None:
    every = Every(300)
    assert next_after(every, at("2026-11-30T10:02:03.4Z")) == at("2026-11-30T10:05Z")
    assert next_after(every, at("2026-11-30T12:05+02:00")) == at("2026-11-30T10:10Z")
    assert last_at_or_before(every, at("2026-11-30T10:05Z")) == at("2026-11-30T10:05Z")
    assert last_at_or_before(every, at("2026-11-30T10:04:59.999999Z")) == at("2026-11-30T10:00Z")


@given(
    st.integers(1, 10**7),
    st.datetimes(datetime(1969, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_no_multiple_lies_between_the_last_and_the_next(seconds: int, instant: datetime) -> None:
    every = Every(seconds)
    last, following = last_at_or_before(every, instant), next_after(every, instant)
    assert last is not None
    assert last <= instant < following
    assert following - last == timedelta(seconds=seconds)
    assert last.timestamp() % seconds == 0
    assert last.tzinfo is UTC


@pytest.mark.parametrize("seconds", [0, -1, 10**12])
def test_an_interval_has_limits(seconds: int) -> None:
    with pytest.raises(ScheduleError, match="not between"):
        Every(seconds)
    with pytest.raises(ScheduleError, match="not between"):
        Precise(seconds)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Precise(), "at each due instant"),
        (Every(1), "every second"),
        (Every(90), "every 90 seconds"),
        (Every(60), "every minute"),
        (Every(7200), "every 2 hours"),
        (Every(86_400), "every day"),
        (Cron("30 2 * * *", "Europe/Berlin"), "at 02:30 every day, Europe/Berlin"),
        (Cron("* * * * *"), "every minute, UTC"),
        (Cron("0 0 13 * *"), "at 00:00 on the 13th day of every month, UTC"),
        (Cron("0 0 31 * *"), "at 00:00 on the 31st day of every month, UTC"),
    ],
)
def test_a_schedule_is_described_in_plain_words(schedule: Schedule, words: str) -> None:
    assert describe(schedule) == words
