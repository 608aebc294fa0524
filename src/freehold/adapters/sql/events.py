"""Reading events of the outbox, and finding those of an instant by their ids.

*Invariants*: ids grow with the instants at which events were made, but for what was under way beside
each other; so a search by instants reads a little more on both sides.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from freehold.adapters.sql.session import Row, Runner, Session
from freehold.domain.events import Event, EventType

BESIDE = timedelta(hours=1)  # longer than any transaction that writes an event


def read_event(session: Session, row: Row) -> Event:
    """Read an event from its columns, in the order of the statements that select them."""
    return Event(
        sequence=row[0],
        type=EventType(row[1]),
        rule=row[2],
        tenant=row[3],
        hold_key=row[4],
        digest=session.uuid(row[5]),
        generation=row[6],
        due_at=session.sure_instant(row[7]),
        at=session.sure_instant(row[8]),
        tokens=_object(row[9]),
        carry=_object(row[10]),
    )


def _object(value: Any) -> dict[str, str | None]:
    return dict(json.loads(value)) if isinstance(value, str) else dict(value)


def bounds(sql: Runner, since: datetime | None, until: datetime | None) -> tuple[int, int] | None:
    """Return the ids of the first and the last event that may be made in [since, until).

    Returns:
        None where there is no event.
    """
    first, last = sql.rows("event_bounds")[0]
    if first is None:
        return None
    if since is not None:
        first = _first_from(sql, since - BESIDE, first, last)
    if until is not None:
        last = _first_from(sql, until + BESIDE, first, last)
    return first, last


def _first_from(sql: Runner, at: datetime, first: int, last: int) -> int:
    """Return the id of the first event made at or after an instant, by halves; else the last."""
    while first < last:
        middle = (first + last) // 2
        found_id, made_at = sql.rows("event_from", id=middle)[0]
        if sql.session.sure_instant(made_at) < at:
            first = min(found_id + 1, last)
        else:
            last = middle
    return first
