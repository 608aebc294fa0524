"""Events as they leave Freehold, for the consumers of examples/, and what the consumers then hold."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

import psycopg

from freehold.domain.events import Event, EventType, cloud_event
from freehold.domain.names import digest
from freehold.ports.target import Parcel

AT = datetime(2031, 5, 6, 12, tzinfo=UTC)
RULE = "cart"


def event(number: int, type_: EventType = EventType.HOLD_EXPIRED) -> Event:
    """Return an event about the hold of that number."""
    key = f"seat {number}"
    return Event(
        sequence=2**60 + number,
        type=type_,
        rule=RULE,
        tenant="anna",
        hold_key=key,
        digest=digest(RULE, key, "[]"),
        generation=1,
        due_at=AT,
        at=AT + timedelta(seconds=number),
        tokens={"hold_token": f"t{number}"},
        carry={"price": None, "name": 'é"\\'},
    )


def parcel(one: Event) -> Parcel:
    """Pack an event as the relay does."""
    return Parcel(one.event_key, one.type.value, one.rule, one.tenant, cloud_event(one).encode())


def parcels(count: int, *, others: int = 0) -> list[Parcel]:
    """Return expired holds, and some events of another type behind them."""
    expired = [event(number) for number in range(count)]
    confirmed = [event(count + n, EventType.HOLD_CONFIRMED) for n in range(others)]
    return [parcel(one) for one in (*expired, *confirmed)]


def offers(url: str) -> list[str]:
    """Return the keys of the events whose effect was done, sorted, once for each time."""
    return _column(url, "select event_key from offers")


def received(url: str) -> list[str]:
    """Return the keys in the inbox, sorted."""
    return _column(url, "select event_key from freehold_inbox")


def _column(url: str, statement: str) -> list[str]:
    with closing(psycopg.connect(url)) as connection:
        return sorted(row[0] for row in connection.execute(statement))
