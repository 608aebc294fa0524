"""The due column, case by case: the spellings, the switch days, the edges of the bound."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from freehold.domain.due import (
    DueBound,
    DueKind,
    DueProblem,
    DueSpec,
    EmptyDue,
    check_zone,
    due_bound,
    is_due,
    read_due,
    released_from,
)

MICROSECOND = timedelta(microseconds=1)
NEW_YORK = DueSpec("due", DueKind.NAIVE, "America/New_York")
ISO = DueSpec("due", DueKind.ISO)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def plain_bound(after: str | int, upto: str | int) -> DueBound:
    return DueBound(after, upto, upto, upto)


def is_released(spec: DueSpec, text: str, now: str) -> bool:
    due_at = read_due(spec, text)
    return isinstance(due_at, datetime) and is_due(spec, due_at, at(now))


# ------------------------------------------------------------------------------------- spellings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T10:00Z", "2026-11-30T10:00Z"),
        ("2026-11-30T10:00:00z", "2026-11-30T10:00Z"),
        ("2026-11-30t10:00:00+00:00", "2026-11-30T10:00Z"),
        ("2026-11-30T12:00:00+0200", "2026-11-30T10:00Z"),
        ("2026-11-30 12:00:00 +02:00", "2026-11-30T10:00Z"),
        ("2026-11-30 04:30:00-05:30", "2026-11-30T10:00Z"),
        ("2026-11-30 10:00:00.120+00", "2026-11-30T10:00:00.120Z"),
        ("2026-11-30T10:00:00,123456Z", "2026-11-30T10:00:00.123456Z"),
        ("20261130T100000Z", "2026-11-30T10:00Z"),
        ("  2026-11-30T10:00:00Z\n", "2026-11-30T10:00Z"),
        ("1969-12-31 23:00:00-05", "1970-01-01T04:00Z"),
        ("1890-01-01 00:00:00+00:53:28", DueProblem.ZERO),
    ],
)
def test_every_spelling_names_its_instant(text: str, expected: str) -> None:
    wanted = expected if isinstance(expected, DueProblem) else at(expected)
    assert read_due(ISO, text) == wanted


def test_a_fraction_finer_than_a_microsecond_is_rounded_up() -> None:
    assert read_due(ISO, "2026-11-30T10:00:00.123456000Z") == at("2026-11-30T10:00:00.123456Z")
    assert read_due(ISO, "2026-11-30T10:00:00.123456001Z") == at("2026-11-30T10:00:00.123457Z")
    assert read_due(ISO, "2026-11-30T10:00:00.9999999Z") == at("2026-11-30T10:00:01Z")


@pytest.mark.parametrize(
    "text",
    [
        "tomorrow",
        "infinity",
        "-infinity",
        "0044-03-15 00:00:00 BC",
        "12026-01-01 00:00:00+00",
        "2026-11-30",  # names a day, not an instant
        "2026-02-30T00:00:00Z",
        "2026-11-30T25:00:00Z",
        "2026-11-30T10:00:00+99:00",
        "2026-11-30T10:00:00Z; DROP",
        "٢٠٢٦-11-30T10:00:00Z",
        "2026-11-30T10:00:00",  # local, and no zone is given
        "2026-11-30T10:00:00." + "0" * 60 + "Z",
        "x" * 1_000_000,
    ],
)
def test_what_names_no_instant_is_unreadable(text: str) -> None:
    assert read_due(ISO, text) is DueProblem.UNREADABLE
    assert read_due(DueSpec("due", DueKind.INSTANT), text) is DueProblem.UNREADABLE


@pytest.mark.parametrize("kind", DueKind)
@pytest.mark.parametrize("text", ["", " ", "0", "0.0", "0000-00-00 00:00:00", "0000-00-00"])
def test_zero_is_zero_in_every_kind(kind: DueKind, text: str) -> None:
    assert read_due(DueSpec("due", kind, "Asia/Tokyo"), text) is DueProblem.ZERO
    assert read_due(DueSpec("due", kind, "Asia/Tokyo"), None) is DueProblem.NULL


@pytest.mark.parametrize(
    ("kind", "zone", "text"),
    [
        (DueKind.INSTANT, None, "1970-01-01 00:00:00+00"),
        (DueKind.INSTANT, None, "0001-01-01 00:00:00+05"),
        (DueKind.NAIVE, "UTC", "1970-01-01 00:00:00"),
        (DueKind.NAIVE, "Europe/Berlin", "1970-01-01 01:00:00"),  # what its clock showed then
        (DueKind.NAIVE, "America/New_York", "1970-01-01 00:00:00"),  # a zero written as UTC
        (DueKind.DATE, "America/New_York", "1969-12-31"),
        (DueKind.DATE, "America/New_York", "1970-01-01"),
        (DueKind.EPOCH_SECONDS, None, "-5"),
        (DueKind.EPOCH_MILLIS, None, "-0.5"),
    ],
)
def test_at_or_before_1970_is_zero(kind: DueKind, zone: str | None, text: str) -> None:
    assert read_due(DueSpec("due", kind, zone), text) is DueProblem.ZERO


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (DueKind.EPOCH_SECONDS, "1767225600", "2026-01-01T00:00Z"),
        (DueKind.EPOCH_SECONDS, "1767225600.5", "2026-01-01T00:00:00.5Z"),
        (DueKind.EPOCH_SECONDS, "1.7672256e9", "2026-01-01T00:00Z"),
        (DueKind.EPOCH_SECONDS, "1.7672256E+09", "2026-01-01T00:00Z"),
        (DueKind.EPOCH_MILLIS, "1767225600001", "2026-01-01T00:00:00.001Z"),
        (DueKind.EPOCH_SECONDS, "1e-300", "1970-01-01T00:00:00.000001Z"),
        (DueKind.EPOCH_SECONDS, "253402300799", "9999-12-31T23:59:59Z"),
    ],
)
def test_numbers_count_from_1970(kind: DueKind, text: str, expected: str) -> None:
    assert read_due(DueSpec("due", kind), text) == at(expected)


@pytest.mark.parametrize("text", ["nan", "inf", "1_000", "1e999", "253402300800", "2026-01-01"])
def test_a_number_that_is_none_is_unreadable(text: str) -> None:
    assert read_due(DueSpec("due", DueKind.EPOCH_SECONDS), text) is DueProblem.UNREADABLE


def test_the_last_days_of_the_calendar_do_not_overflow() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    assert read_due(NEW_YORK, "9999-12-31 23:59:59") == last
    assert read_due(DueSpec("due", DueKind.DATE, "America/New_York"), "9999-12-31") == last
    assert read_due(ISO, "9999-12-31T23:59:59.9999999Z") == last
    assert released_from(DueSpec("due", DueKind.ISO, grace=timedelta(days=1)), last) == last


# ------------------------------------------------------------------- holds in the field (SCENARIOS)


def test_one_instant_in_many_spellings_is_due_at_one_instant() -> None:
    spellings = [
        "2026-11-30T10:00Z",
        "2026-11-30T12:00+02:00",
        "2026-11-30T10:00:00.000+0000",
        "2026-11-30T10:00:00.000000Z",
    ]
    assert not any(is_released(ISO, text, "2026-11-30T09:59:59Z") for text in spellings)
    assert all(is_released(ISO, text, "2026-11-30T10:00:01Z") for text in spellings)
    assert read_due(ISO, "") is DueProblem.ZERO
    assert read_due(ISO, "tomorrow") is DueProblem.UNREADABLE


def test_a_naive_utc_column_ignores_the_zone_of_the_tenant() -> None:
    spec = DueSpec("due", DueKind.NAIVE, "UTC")  # the tenant lives at UTC+10
    assert not is_released(spec, "2026-11-30 11:00:00", "2026-11-30T20:59:59.999999+10:00")
    assert is_released(spec, "2026-11-30 11:00:00", "2026-11-30T21:00:00+10:00")
    bound = due_bound(spec, at("2026-11-30T20:00:00+10:00"))
    assert bound == plain_bound("1970-01-01 00:00:00.000000", "2026-11-30 10:00:00.000000")


@pytest.mark.parametrize(("inclusive", "expected"), [(True, [1, 1, 0]), (False, [1, 0, 0])])
def test_the_boundary_instant_follows_the_spec(inclusive: bool, expected: list[int]) -> None:
    spec = DueSpec("due", DueKind.INSTANT, inclusive=inclusive)
    dues = ["2026-11-30 09:00:00+00", "2026-11-30 10:00:00+00", "2026-11-30 11:00:00+00"]
    assert [is_released(spec, due, "2026-11-30T10:00:00Z") for due in dues] == expected


@pytest.mark.parametrize("inclusive", [True, False])
def test_release_is_allowed_from_its_first_instant(inclusive: bool) -> None:
    spec = DueSpec("due", DueKind.INSTANT, grace=timedelta(minutes=5), inclusive=inclusive)
    due_at = at("2026-11-30T10:00:00Z")
    first = released_from(spec, due_at)
    assert first - due_at == timedelta(minutes=5) + MICROSECOND * (not inclusive)
    assert is_due(spec, due_at, first)
    assert not is_due(spec, due_at, first - MICROSECOND)


# --------------------------------------------------------------------------------- local switch days


def test_a_skipped_local_time_is_due_at_the_later_of_its_instants() -> None:
    assert read_due(NEW_YORK, "2026-03-08 02:30:00") == at("2026-03-08T07:30:00Z")  # 03:30 there


def test_a_repeated_local_time_is_due_the_second_time() -> None:
    assert read_due(NEW_YORK, "2026-11-01 01:30:00") == at("2026-11-01T06:30:00Z")
    berlin = DueSpec("due", DueKind.NAIVE, "Europe/Berlin")
    assert read_due(berlin, "2026-10-25 02:30:00") == at("2026-10-25T01:30:00Z")


def test_skipped_times_leave_a_gap_in_the_bound_until_they_are_due() -> None:
    floor = "1970-01-01 00:00:00.000000"
    assert due_bound(NEW_YORK, at("2026-03-08T06:59:59Z")) == plain_bound(
        floor, "2026-03-08 01:59:59.000000"
    )
    assert due_bound(NEW_YORK, at("2026-03-08T07:30:00Z")) == DueBound(
        floor, "2026-03-08 03:30:00.000000", "2026-03-08 02:30:00.000000", "2026-03-08 03:00:00"
    )
    assert due_bound(NEW_YORK, at("2026-03-08T08:00:00Z")) == plain_bound(
        floor, "2026-03-08 04:00:00.000000"
    )


def test_the_bound_waits_before_a_repeated_span() -> None:
    floor = "1970-01-01 00:00:00.000000"
    expected = {
        "2026-11-01T05:00:00Z": "2026-11-01 00:59:59.999999",
        "2026-11-01T05:59:59Z": "2026-11-01 00:59:59.999999",
        "2026-11-01T06:00:00Z": "2026-11-01 01:00:00.000000",
        "2026-11-01T06:30:00Z": "2026-11-01 01:30:00.000000",
    }
    for now, upto in expected.items():
        assert due_bound(NEW_YORK, at(now)) == plain_bound(floor, upto)


@pytest.mark.parametrize(
    ("zone", "day", "end"),
    [
        ("Europe/Berlin", "2026-03-29", "2026-03-29T22:00Z"),  # 23 hours
        ("Europe/Berlin", "2026-10-25", "2026-10-25T23:00Z"),  # 25 hours
        ("Australia/Lord_Howe", "2026-04-05", "2026-04-05T13:30Z"),
        ("America/Sao_Paulo", "2018-11-03", "2018-11-04T03:00Z"),  # midnight is skipped
        ("America/Sao_Paulo", "2018-02-17", "2018-02-18T03:00Z"),  # 23:00 to 24:00 twice
        ("Asia/Beirut", "2026-03-28", "2026-03-28T22:00Z"),
        ("America/Havana", "2025-11-01", "2025-11-02T05:00Z"),  # midnight comes twice
        ("Pacific/Apia", "2011-12-29", "2011-12-30T10:00Z"),
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00Z"),  # never was
        ("Etc/GMT+8", "2026-11-30", "2026-12-01T08:00Z"),
        ("Etc/GMT-13", "2026-11-30", "2026-11-30T11:00Z"),
    ],
)
def test_a_date_is_due_when_that_local_day_is_over(zone: str, day: str, end: str) -> None:
    spec = DueSpec("due", DueKind.DATE, zone)
    assert read_due(spec, day) == at(end)
    assert read_due(spec, f"{day} 00:00:00") == at(end)
    assert str(due_bound(spec, at(end)).upto) >= day
    assert str(due_bound(spec, at(end) - MICROSECOND).upto) < day


@pytest.mark.parametrize("text", ["2026-02-30", "2026-11-30 10:00:00", "infinity", "2026-11-3"])
def test_a_day_that_is_none_is_unreadable(text: str) -> None:
    assert read_due(DueSpec("due", DueKind.DATE, "UTC"), text) is DueProblem.UNREADABLE


def test_an_offset_in_a_local_column_is_believed() -> None:
    assert read_due(NEW_YORK, "2026-11-30 10:00:00Z") == at("2026-11-30T10:00:00Z")


def test_bare_iso_text_is_read_in_the_zone_given() -> None:
    spec = DueSpec("due", DueKind.ISO, "Asia/Kathmandu")
    assert read_due(spec, "2026-11-30T10:00:00") == at("2026-11-30T04:15:00Z")


# -------------------------------------------------------------------------------- edges of the bound


@pytest.mark.parametrize(
    ("now", "inclusive", "exclusive"),
    [
        ("2026-01-01T00:00:00Z", 1767225600, 1767225600),
        ("2026-01-01T00:00:00.000001Z", 1767225600, 1767225601),
        ("2026-01-01T00:00:00.999999Z", 1767225600, 1767225601),
    ],
)
def test_whole_seconds_are_bounded_without_rounding(
    now: str, inclusive: int, exclusive: int
) -> None:
    kind = DueKind.EPOCH_SECONDS
    assert due_bound(DueSpec("due", kind), at(now)) == plain_bound(0, inclusive)
    assert due_bound(DueSpec("due", kind, inclusive=False), at(now)) == plain_bound(0, exclusive)


def test_grace_moves_the_bound_back() -> None:
    spec = DueSpec("due", DueKind.EPOCH_MILLIS, grace=timedelta(seconds=2))
    assert due_bound(spec, at("2026-01-01T00:00:02.0019Z")) == plain_bound(0, 1767225600001)


def test_an_instant_bound_is_utc_with_six_digits() -> None:
    for inclusive in (True, False):
        spec = DueSpec("due", DueKind.INSTANT, inclusive=inclusive)
        assert due_bound(spec, at("2026-11-30T12:00:00+02:00")) == plain_bound(
            "1970-01-01 00:00:00.000000+00", "2026-11-30 10:00:00.000000+00"
        )


def test_an_end_that_excludes_equals_carries_no_trailing_zeros() -> None:
    spec = DueSpec("due", DueKind.NAIVE, "UTC", inclusive=False)
    assert due_bound(spec, at("2026-11-30T10:00:00Z")).upto == "2026-11-30 10:00:00"
    assert due_bound(spec, at("2026-11-30T10:00:00.250Z")).upto == "2026-11-30 10:00:00.25"
    assert due_bound(spec, at("2026-11-30T10:00:10Z")).upto == "2026-11-30 10:00:10"


def test_nothing_is_due_before_1970_however_long_the_grace() -> None:
    for kind in set(DueKind) - {DueKind.ISO}:
        bound = due_bound(
            DueSpec("due", kind, "UTC", grace=timedelta(days=900_000)), at("2026-01-01T00:00Z")
        )
        assert bound.upto <= bound.after  # type: ignore[operator]


# ------------------------------------------------------------------------------------------- refusals


def test_iso_text_cannot_be_compared_bare() -> None:
    assert [kind for kind in DueKind if not DueSpec("due", kind).comparable_bare] == [DueKind.ISO]
    with pytest.raises(ValueError, match="row by row"):
        due_bound(ISO, at("2026-01-01T00:00Z"))


@pytest.mark.parametrize("kind", [DueKind.NAIVE, DueKind.DATE])
def test_local_times_need_a_zone(kind: DueKind) -> None:
    with pytest.raises(ValueError, match="name their time zone"):
        due_bound(DueSpec("due", kind), at("2026-01-01T00:00Z"))
    with pytest.raises(ValueError, match="name their time zone"):
        read_due(DueSpec("due", kind), "2026-01-01" + " 00:00:00" * (kind is DueKind.NAIVE))


def test_a_negative_grace_is_refused() -> None:
    with pytest.raises(ValueError, match="early"):
        DueSpec("due", DueKind.INSTANT, grace=timedelta(seconds=-1))


@pytest.mark.parametrize("name", ["Mars/Olympus", "europe/berlin", "../../etc/passwd", "", "/UTC"])
def test_an_unknown_zone_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(ValueError, match="not known") as refusal:
        check_zone(name)
    assert "\n" not in str(refusal.value)
    check_zone("Europe/Berlin")
    check_zone("UTC")


def test_an_empty_due_means_never_unless_told() -> None:
    assert DueSpec("due", DueKind.INSTANT).on_empty is EmptyDue.NEVER
