"""Times of people: an offset counts, else the tenant's zone, and what is not one instant is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.domain.instants import read_instant

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-07-01T15:00:00+05:30", datetime(2026, 7, 1, 9, 30, tzinfo=UTC)),
        ("2026-07-01t15:00:00z", datetime(2026, 7, 1, 15, tzinfo=UTC)),
        ("2026-07-01 15:00", datetime(2026, 7, 1, 13, tzinfo=UTC)),
        ("2026-07-01 15:00:00.5", datetime(2026, 7, 1, 13, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-07-01", datetime(2026, 6, 30, 22, tzinfo=UTC)),
        ("2026-10-25T02:30:00+01:00", datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
    ],
)
def test_times_are_read(text: str, expected: datetime) -> None:
    assert read_instant(text, BERLIN) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2026-03-29 02:30", "is a local time that is skipped in Europe/Berlin"),
        ("2026-10-25 02:30", "is a local time that comes twice in Europe/Berlin"),
        ("2026-02-30", "is no date of the calendar"),
        ("2026-07-01 25:00", "is no date of the calendar"),
        ("0001-01-01", "is outside the years 1 to 9999"),
        ("9999-12-31T23:00:00-05:00", "is outside the years 1 to 9999"),
        ("tomorrow", "is no time; write it as"),
        ("20260701", "is no time; write it as"),
        ("", "is no time; write it as"),
    ],
)
def test_what_is_not_one_instant_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_instant(text, BERLIN)


@given(st.text(max_size=40) | st.from_regex(r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6]0\Z"))
def test_no_text_raises_anything_else(text: str) -> None:
    assert said(text).startswith(("is ", "read"))


def said(text: str) -> str:
    try:
        return f"read {read_instant(text, BERLIN)}"
    except ValueError as error:
        return str(error)
