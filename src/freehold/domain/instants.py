"""Instants as a person or a file gives them: RFC 3339, or a local time in a tenant's zone.

*Invariants*: a local time that a clock shows twice or never is refused, since only a person knows
which instant is meant; a reader raises `ValueError` with half a sentence, which never repeats the
text.
*Not here*: due columns of a customer's table, where the later reading is taken (`due_text`).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from freehold.domain.due_walls import zone_info

_STAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(Z|z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_WANTED = "write it as 2026-07-01T15:00:00+02:00, or without the offset in the tenant's zone"


def read_instant(text: str, zone: str) -> datetime:
    """Read an instant; a date alone is its first moment in the zone.

    Args:
        zone: the tz database name that counts where the text has no offset.

    Raises:
        ValueError: the text is no time, or a local time without exactly one instant.
    """
    found = _STAMP.fullmatch(text)
    if found is None:
        raise ValueError(f"is no time; {_WANTED}")
    try:
        written = datetime.fromisoformat(text.upper())
        if found[1] is not None:
            return written.astimezone(UTC)
        return _only_instant(written, zone_info(zone))
    except OverflowError:
        raise ValueError("is outside the years 1 to 9999") from None
    except ValueError as error:
        if error.args and str(error).startswith("is "):
            raise
        raise ValueError(f"is no date of the calendar or time of the day; {_WANTED}") from None


def _only_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    first, second = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return first.astimezone(UTC)
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != wall:
        raise ValueError(
            f"is a local time that is skipped in {zone.key}, where the clock goes forward; add an "
            "offset or choose another"
        )
    raise ValueError(
        f"is a local time that comes twice in {zone.key}, where the clock goes back; add an offset"
    )
