"""The due column: reading its values, and turning now into a bound that the bare column meets.

Scan and decision are one rule in two spellings: a value lies within `due_bound(spec, now)` exactly
when `is_due(spec, read_due(spec, value), now)`. Two kinds of column are looser, and the decision
has the last word there: epoch columns that hold fractions, and text that spells one instant in
several ways.

*Invariants*: nothing is due early; a skipped or repeated local time is due at the later of its two
instants; a value at or before 1970 is a zero and never due.
*Not here*: the SQL predicate (the SQL adapter), time zones (`freehold.domain.due_walls`), the
spellings (`freehold.domain.due_text`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from freehold.domain.due_text import DueProblem, read_count, read_day, read_stamp
from freehold.domain.due_walls import (
    EPOCH,
    MICROSECOND,
    check_zone,
    later_instant,
    shifted,
    walls_due,
    zone_info,
)

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

__all__ = [
    "DueBound",
    "DueKind",
    "DueProblem",
    "DueSpec",
    "EmptyDue",
    "check_zone",
    "due_bound",
    "is_due",
    "read_due",
    "released_from",
    "zone_info",
]

_DAY = timedelta(days=1)
_FIRST_WALL = EPOCH.replace(tzinfo=None)


class DueKind(StrEnum):
    """How the column holds an instant."""

    INSTANT = "timestamptz"
    NAIVE = "naive"  # local time in the zone of the rule
    DATE = "date"  # the hold is over when that local day is
    EPOCH_SECONDS = "epoch_s"
    EPOCH_MILLIS = "epoch_ms"
    ISO = "iso"  # text or JSON, in any spelling


_PER_SECOND = {DueKind.EPOCH_SECONDS: 1, DueKind.EPOCH_MILLIS: 1000}


class EmptyDue(StrEnum):
    """What a NULL, zero or unreadable due means.

    `infinity` reads as unreadable, but lies above every bound: NOW must reach only what lies at or
    below `DueBound.after`, and what is NULL.
    """

    NEVER = "never"
    NOW = "now"
    REVIEW = "review"


@dataclass(frozen=True, slots=True)
class DueSpec:
    """How one column says when a hold is due.

    Attributes:
        zone: The zone of local times; required for NAIVE and DATE. Elsewhere it reads the text
            that names no offset, which is unreadable without it.
        grace: Added after due, zero or more.
        inclusive: Whether due at exactly now is due.
    """

    column: str
    kind: DueKind
    zone: str | None = None
    grace: timedelta = timedelta(0)
    inclusive: bool = True
    on_empty: EmptyDue = EmptyDue.NEVER

    def __post_init__(self) -> None:
        if self.grace < timedelta(0):
            raise ValueError(
                f"the grace of {self.column!r} is negative: it would release holds early"
            )

    @property
    def comparable_bare(self) -> bool:
        """Return whether the bare column can be compared; if not, every row must be read."""
        return self.kind is not DueKind.ISO


@dataclass(frozen=True, slots=True)
class DueBound:
    """The values due at one instant, in the column's own kind: text, or int for the epoch kinds.

    A value `v` is due iff after < v <= upto (v < upto where the spec is exclusive) and not
    gap_from < v < gap_to. Without a gap, gap_from and gap_to equal upto. Values up to gap_from are
    all due, so that a scan of what has come due since may start there. An end that equal values
    must not pass is written without trailing zeros, so that SQLite, which compares text, finds
    `02:30:00` and `02:30:00.000` equal as well.
    """

    after: str | int
    upto: str | int
    gap_from: str | int
    gap_to: str | int


def read_due(spec: DueSpec, text: str | None) -> datetime | DueProblem:
    """Return the instant, in UTC and without the grace, that a column's value stands for.

    Args:
        spec: The column.
        text: The value as PostgreSQL (DateStyle ISO, time zone UTC) or SQLite prints it.

    Raises:
        ValueError: Never for a text; only for a spec whose zone is missing or unknown.
    """
    if text is None:
        return DueProblem.NULL
    if spec.kind in _PER_SECOND:
        return read_count(text, _PER_SECOND[spec.kind])
    return _read_day(spec, text) if spec.kind is DueKind.DATE else _read_stamp(spec, text)


def due_bound(spec: DueSpec, now: datetime) -> DueBound:
    """Return which values are due at `now`, for a predicate in which the column stands bare.

    Args:
        spec: The column.
        now: Aware; the database's clock.

    Raises:
        ValueError: The kind cannot be compared bare, or the zone is missing or unknown.
    """
    last = max(_last_due(spec, now), EPOCH)
    match spec.kind:
        case DueKind.INSTANT:
            return _instant_bound(spec, last)
        case DueKind.NAIVE:
            return _naive_bound(spec, last)
        case DueKind.DATE:
            return _date_bound(spec, last)
        case DueKind.EPOCH_SECONDS | DueKind.EPOCH_MILLIS:
            return _epoch_bound(spec, last)
        case DueKind.ISO:
            raise ValueError(f"{spec.column!r} holds ISO text: read it row by row")


def released_from(spec: DueSpec, due_at: datetime) -> datetime:
    """Return the first instant at which release is allowed.

    It is due plus grace, or a microsecond later where the spec is exclusive.
    """
    return shifted(due_at, spec.grace + (timedelta(0) if spec.inclusive else MICROSECOND))


def is_due(spec: DueSpec, due_at: datetime, now: datetime) -> bool:
    """Tell whether a hold may be released; exact to the microsecond."""
    return due_at <= _last_due(spec, now)


def _last_due(spec: DueSpec, now: datetime) -> datetime:
    """Return the last instant that is due; an exclusive end is an inclusive one a moment before."""
    return shifted(now, -spec.grace if spec.inclusive else -spec.grace - MICROSECOND)


def _read_stamp(spec: DueSpec, text: str) -> datetime | DueProblem:
    stamp = read_stamp(text)
    if isinstance(stamp, DueProblem):
        return stamp
    if stamp.offset is not None:
        instant = shifted(stamp.clock.replace(tzinfo=UTC), -stamp.offset)
        return instant if instant > EPOCH else DueProblem.ZERO
    if spec.zone is None and spec.kind is not DueKind.NAIVE:
        return DueProblem.UNREADABLE
    zone = _zone_of(spec)
    return later_instant(stamp.clock, zone) if stamp.clock > _floor(zone) else DueProblem.ZERO


def _read_day(spec: DueSpec, text: str) -> datetime | DueProblem:
    day = read_day(text)
    if isinstance(day, DueProblem):
        return day
    return _day_end(day, _zone_of(spec)) if day > EPOCH.date() else DueProblem.ZERO


def _instant_bound(spec: DueSpec, last: datetime) -> DueBound:
    moment = last if spec.inclusive else last + MICROSECOND
    upto = _instant_text(moment)
    return DueBound(_instant_text(EPOCH), upto, upto, upto)


def _naive_bound(spec: DueSpec, last: datetime) -> DueBound:
    zone = _zone_of(spec)
    due = walls_due(last, zone)
    upto = _wall_text(due.upto) if spec.inclusive else _trimmed(due.upto + MICROSECOND)
    if due.gap_from == due.gap_to:
        return DueBound(_wall_text(_floor(zone)), upto, upto, upto)
    gap_from, gap_to = _wall_text(due.gap_from), _trimmed(due.gap_to)
    return DueBound(_wall_text(_floor(zone)), upto, gap_from, gap_to)


def _date_bound(spec: DueSpec, last: datetime) -> DueBound:
    zone = _zone_of(spec)
    day = last.astimezone(zone).date()
    while _day_end(day, zone) > last:
        day -= _DAY
    upto = (day if spec.inclusive else day + _DAY).isoformat()
    return DueBound(EPOCH.date().isoformat(), upto, upto, upto)


def _epoch_bound(spec: DueSpec, last: datetime) -> DueBound:
    whole = (last - EPOCH) // (timedelta(seconds=1) / _PER_SECOND[spec.kind])
    upto = whole if spec.inclusive else whole + 1
    return DueBound(0, upto, upto, upto)


def _day_end(day: date, zone: ZoneInfo) -> datetime:
    """Return the end of a local day: the later reading of the midnight behind it."""
    midnight = datetime.combine(day, _FIRST_WALL.time())
    return later_instant(shifted(midnight, _DAY), zone)


@lru_cache(maxsize=1024)
def _floor(zone: ZoneInfo) -> datetime:
    """Return the last local time that is a zero: what a clock there, or in UTC, showed at 1970."""
    return max(_FIRST_WALL, walls_due(EPOCH, zone).upto)


def _zone_of(spec: DueSpec) -> ZoneInfo:
    if spec.zone is None:
        raise ValueError(f"{spec.column!r} holds local times: name their time zone")
    return zone_info(spec.zone)


def _instant_text(instant: datetime) -> str:
    return _wall_text(instant.astimezone(UTC).replace(tzinfo=None)) + "+00"


def _wall_text(wall: datetime) -> str:
    return wall.isoformat(" ", "microseconds")


def _trimmed(wall: datetime) -> str:
    return _wall_text(wall).rstrip("0").rstrip(".")
