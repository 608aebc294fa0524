"""The bookings as a file for `freehold hold import`; what a hold needs beside them is SYNTHESISED.

Real: hotel and agent (the tenant), arrival, nights, room type. Synthesised beside what `bookings`
synthesises: a stay of no night gets one; arrival at 15:00 and departure at 11:00, in UTC; and the
rooms, since the file names none: within a tenant and room type each booking gets the room that has
been free longest, so that no stay overlaps another.
"""

from __future__ import annotations

import csv
import gzip
import heapq
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from tests.realdata.bookings import Booking, read_bookings

COLUMNS = (
    *("tenant", "unit", "starts_at", "ends_at", "hold_until", "reference", "status", "token"),
    *("adults", "children"),  # not read by the import
)


def write_holds(source: Path, target: Path) -> list[Booking]:
    """Write the file; return the bookings in it."""
    bookings = read_bookings(source)
    stays = list(_stays(source))
    rooms = _rooms(bookings, stays)
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for one, stay, room in zip(bookings, stays, rooms, strict=True):
            writer.writerow(_row(one, stay, room))
    return bookings


def _stays(source: Path) -> Iterator[tuple[datetime, datetime, str]]:
    with gzip.open(source, "rt") as lines:
        for row in csv.DictReader(lines):
            date = " ".join(row[f"arrival_date_{one}"] for one in ("year", "month", "day_of_month"))
            start = datetime.strptime(date, "%Y %B %d").replace(hour=15, tzinfo=UTC)
            nights = int(row["stays_in_weekend_nights"]) + int(row["stays_in_week_nights"])
            end = start + timedelta(days=max(nights, 1), hours=-4)
            yield start, end, row["reserved_room_type"].strip()


def _rooms(bookings: list[Booking], stays: list[tuple[datetime, datetime, str]]) -> list[str]:
    """Give each booking a room in the order of arrival."""
    free: dict[tuple[str, str], list[tuple[datetime, int]]] = defaultdict(list)
    built: dict[tuple[str, str], Iterator[int]] = defaultdict(lambda: count(1))
    rooms = [""] * len(bookings)
    for n in sorted(range(len(bookings)), key=lambda n: stays[n][0]):
        start, end, kind = stays[n]
        place = (bookings[n].tenant, kind)
        if free[place] and free[place][0][0] <= start:
            number = heapq.heappop(free[place])[1]
        else:
            number = next(built[place])
        heapq.heappush(free[place], (end, number))
        rooms[n] = f"{kind}{number}"
    return rooms


def _row(one: Booking, stay: tuple[datetime, datetime, str], room: str) -> tuple[object, ...]:
    start, end, _ = stay
    instants = (start.isoformat(), end.isoformat(), one.due_at.isoformat())
    return (one.tenant, room, *instants, one.number, one.state, one.token, one.adults, one.children)
