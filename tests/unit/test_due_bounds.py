"""The scan and the decision agree: a value lies in the bound exactly when its instant is due.

Values and instants are drawn around the switch days of awkward zones, where they could differ.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freehold.domain.due import DueBound, DueKind, DueSpec, due_bound, is_due, read_due, zone_info
from freehold.domain.due_walls import later_instant

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.resources.abc import Traversable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
# The longest jump is a day; the closest two changes since 1970 lie 6 days apart.
LONGEST_JUMP = DAY
ZONE_YEARS = [
    ("America/New_York", 2026),
    ("Europe/Berlin", 2026),
    ("America/Sao_Paulo", 2018),  # midnight is skipped, and comes twice
    ("Australia/Lord_Howe", 2026),  # half an hour
    ("Africa/Casablanca", 2026),
    ("Asia/Beirut", 2026),
    ("Pacific/Apia", 2011),  # a day is missing
    ("America/Santiago", 2026),
    ("Antarctica/Vostok", 1994),  # seven hours, both ways
    ("Africa/Monrovia", 1972),  # 44 minutes and a half
    ("Asia/Kathmandu", 2026),  # none
    ("UTC", 2026),
]


@cache
def changes(zone: str, year: int) -> tuple[datetime, ...]:
    """Return the instants of that year at which the zone's offset changes, or its first one."""

    def offset(second: int) -> timedelta | None:
        return (EPOCH + timedelta(seconds=second)).astimezone(zone_info(zone)).utcoffset()

    start = (datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
    found = []
    for low in range(start, start + 366 * 86_400, 86_400):
        early, late = low, low + 86_400
        if offset(early) == offset(late):
            continue
        while late - early > 1:
            middle = (early + late) // 2
            early, late = (middle, late) if offset(middle) == offset(early) else (early, middle)
        found.append(EPOCH + timedelta(seconds=late))
    return tuple(found) or (datetime(year, 1, 1, tzinfo=UTC),)


def spans() -> st.SearchStrategy[timedelta]:
    """Draw a span within a day or so: often a round one, often a microsecond beside it."""
    minutes = st.integers(-27 * 4, 27 * 4).map(lambda quarters: quarters * timedelta(minutes=15))
    beside = st.sampled_from([timedelta(0), MICROSECOND, -MICROSECOND, timedelta(milliseconds=250)])
    odd = st.timedeltas(-27 * HOUR, 27 * HOUR)
    return st.one_of(st.builds(lambda a, b: a + b, minutes, beside), odd)


@st.composite
def scenes(draw: st.DrawFn, kind: DueKind) -> tuple[DueSpec, datetime, datetime]:
    """Draw a spec, an instant, and a local time nearby."""
    zone, year = draw(st.sampled_from(ZONE_YEARS))
    change = draw(st.sampled_from(changes(zone, year)))
    grace = draw(st.sampled_from([timedelta(0), HOUR, timedelta(seconds=90)]))
    spec = DueSpec("due", kind, zone, grace=grace, inclusive=draw(st.booleans()))
    near = change.astimezone(zone_info(zone)).replace(tzinfo=None, fold=0)
    return spec, change + grace + draw(spans()), near + draw(spans())


def is_within(bound: DueBound, value: Any, parse: Any, *, inclusive: bool) -> bool:
    """Compare as a database does, after `parse` made the ends comparable."""
    after, upto = parse(bound.after), parse(bound.upto)
    gap_from, gap_to = parse(bound.gap_from), parse(bound.gap_to)
    is_before = value <= upto if inclusive else value < upto
    return bool(after < value and is_before and not gap_from < value < gap_to)


def is_value_due(spec: DueSpec, text: str, now: datetime) -> bool:
    due_at = read_due(spec, text)
    return isinstance(due_at, datetime) and is_due(spec, due_at, now)


def spellings(wall: datetime) -> Iterable[str]:
    """Spell a local time in the ways that SQLite columns hold, which compare as text."""
    yield wall.isoformat(" ", "microseconds")
    if wall.microsecond:
        yield wall.isoformat(" ").rstrip("0")
    else:
        yield from (wall.isoformat(" "), wall.isoformat(" ", "milliseconds"))


@given(scenes(DueKind.NAIVE))
@settings(max_examples=600, deadline=None)
def test_naive_values_in_the_bound_are_those_due(
    scene: tuple[DueSpec, datetime, datetime],
) -> None:
    spec, now, wall = scene
    bound = due_bound(spec, now)
    expected = is_value_due(spec, str(wall), now)
    parsed = is_within(bound, wall, datetime.fromisoformat, inclusive=spec.inclusive)
    assert parsed == expected
    for text in spellings(wall):
        assert is_value_due(spec, text, now) == expected
        assert is_within(bound, text, str, inclusive=spec.inclusive) == expected, text


@given(scenes(DueKind.DATE))
@settings(max_examples=300, deadline=None)
def test_dates_in_the_bound_are_those_due(scene: tuple[DueSpec, datetime, datetime]) -> None:
    spec, now, wall = scene
    bound, day = due_bound(spec, now), wall.date()
    expected = is_value_due(spec, day.isoformat(), now)
    assert is_within(bound, day, date.fromisoformat, inclusive=spec.inclusive) == expected
    assert is_within(bound, day.isoformat(), str, inclusive=spec.inclusive) == expected


@given(scenes(DueKind.INSTANT))
@settings(max_examples=200, deadline=None)
def test_instants_in_the_bound_are_those_due(scene: tuple[DueSpec, datetime, datetime]) -> None:
    spec, now, wall = scene
    value = wall.replace(tzinfo=UTC)
    expected = is_value_due(spec, str(value), now)
    bound = due_bound(spec, now)
    assert is_within(bound, value, datetime.fromisoformat, inclusive=spec.inclusive) == expected


@given(scenes(DueKind.EPOCH_SECONDS), st.sampled_from([1, 1000]))
@settings(max_examples=200, deadline=None)
def test_whole_numbers_in_the_bound_are_those_due(
    scene: tuple[DueSpec, datetime, datetime], per_second: int
) -> None:
    spec, now, wall = scene
    kind = DueKind.EPOCH_SECONDS if per_second == 1 else DueKind.EPOCH_MILLIS
    spec = DueSpec(spec.column, kind, grace=spec.grace, inclusive=spec.inclusive)
    value = (wall.replace(tzinfo=UTC) - EPOCH) * per_second // timedelta(seconds=1)
    bound = due_bound(spec, now)
    expected = is_value_due(spec, str(value), now)
    assert is_within(bound, value, int, inclusive=spec.inclusive) == expected


@given(
    st.sampled_from(sorted(set(DueKind) - {DueKind.ISO})).flatmap(scenes),
    st.timedeltas(timedelta(0), 30 * HOUR),
)
@settings(max_examples=300, deadline=None)
def test_the_bound_never_moves_back(
    scene: tuple[DueSpec, datetime, datetime], later_by: timedelta
) -> None:
    spec, now, _ = scene
    first, second = due_bound(spec, now), due_bound(spec, now + later_by)
    assert second.upto >= first.upto  # type: ignore[operator]
    assert first.after == second.after


@given(scenes(DueKind.NAIVE))
@settings(max_examples=200, deadline=None)
def test_no_reading_of_a_local_time_is_later(scene: tuple[DueSpec, datetime, datetime]) -> None:
    spec, _, wall = scene
    zone = zone_info(spec.zone or "")
    due_at = later_instant(wall, zone)
    readings = {wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    assert due_at == max(readings)


@given(st.text(max_size=70), st.sampled_from(sorted(DueKind)))
@settings(max_examples=300, deadline=None)
def test_no_text_makes_the_reader_raise(text: str, kind: DueKind) -> None:
    read_due(DueSpec("due", kind, "Asia/Tokyo"), text)


@given(
    st.from_regex(
        r"[0-9]{4}-?(0[0-9]|1[0-3])-?[0-3][0-9]([T ][0-2][0-9]:?[0-6][0-9](:?[0-6][0-9](\.[0-9]*)?)?"
        r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?|-?[0-9]*\.?[0-9]*(e[+-]?[0-9]*)?",
        fullmatch=True,
    ),
    st.sampled_from(sorted(DueKind)),
)
@settings(max_examples=300, deadline=None)
def test_almost_a_time_makes_no_reader_raise(text: str, kind: DueKind) -> None:
    read_due(DueSpec("due", kind, "America/New_York"), text)


# ---------------------------------------------------------------------------- over the whole database


def distinct_zones() -> list[str]:
    """Return one name of each zone: many are links to the same data."""
    names = files("tzdata").joinpath("zones").read_text().split()
    return list({zone_data(name).read_bytes(): name for name in names}.values())


def zone_data(name: str) -> Traversable:
    return files("tzdata").joinpath("zoneinfo", *name.split("/"))


@cache
def recorded_changes(name: str) -> tuple[tuple[datetime, timedelta, timedelta], ...]:
    """Return each change of offset since 1970 in the data, with the offsets around it."""
    reader = import_module("zoneinfo._zoneinfo").ZoneInfo
    with zone_data(name).open("rb") as data:
        zone = reader.from_file(data)
    kinds = [zone._tti_before, *zone._ttinfos]
    steps = zip(zone._trans_utc, pairwise(kinds), strict=True)
    changed = [
        (EPOCH + timedelta(seconds=second), was.utcoff, now.utcoff)
        for second, (was, now) in steps
        if was.utcoff != now.utcoff and second >= 0
    ]
    return tuple(changed)


def test_two_changes_never_lie_closer_than_the_longest_jump() -> None:
    for name in distinct_zones():
        recorded = recorded_changes(name)
        assert all(abs(now - was) <= LONGEST_JUMP for _, was, now in recorded), name
        ruled = changes(name, 2041)  # by the rule behind the data
        instants = [EPOCH, *(instant for instant, _, _ in recorded)]
        for early, late in [*pairwise(instants[1:]), *pairwise(ruled)]:
            assert late - early > 2 * LONGEST_JUMP, (name, late)


def check_around(name: str, change: datetime, was: timedelta, now_offset: timedelta) -> None:
    spec = DueSpec("due", DueKind.NAIVE, name)
    width, wall = abs(now_offset - was), change.replace(tzinfo=None)
    beside = (-MICROSECOND, timedelta(0), MICROSECOND)
    ends = (timedelta(0), width, -width, width / 2, -width / 2)
    walls = {wall + offset + b for offset, b in product((was, now_offset), beside)}
    walls.add(wall + (was + now_offset) / 2)
    for end, by in product(ends, beside):
        bound = due_bound(spec, change + end + by)
        for value in walls:
            expected = is_value_due(spec, str(value), change + end + by)
            assert is_within(bound, value, datetime.fromisoformat, inclusive=True) == expected


def test_the_bound_is_exact_at_this_years_changes_of_every_zone() -> None:
    for name in distinct_zones():
        for change in changes(name, 2026):
            was, now = (
                instant.astimezone(zone_info(name)).utcoffset() or timedelta(0)
                for instant in (change - MICROSECOND, change)
            )
            check_around(name, change, was, now)


@pytest.mark.proof
def test_the_bound_is_exact_at_every_change_of_every_zone() -> None:
    for name in distinct_zones():
        for change in recorded_changes(name):
            check_around(name, *change)
