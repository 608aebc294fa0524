"""The bookings as a file for `freehold hold import`; what a hold needs beside them is SYNTHESISED.

Real: hotel and agent (the tenant), arrival, nights, room type, and what became of the booking:
cancelled when it was cancelled before its hold window was over, confirmed when it was paid at once.
Synthesised beside what `bookings` synthesises: every tenth guest who came had confirmed in the
window; of the last arrivals, and of those who may have their money back, the window ends in 2100; all
else was left to lapse. A stay of no night gets one, from 15:00 to 11:00 in UTC. The file names
no rooms: within a tenant and room type each booking gets the room that has been free longest, so that
no stay overlaps another, whatever became of them.
"""

from __future__ import annotations

import csv
import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from tests.realdata.bookings import NEVER_SOON, Booking, arrival, bookings_of, read_rows

COLUMNS = (
    *("tenant", "unit", "starts_at", "ends_at", "hold_until", "reference", "status", "token"),
    *("adults", "children"),  # not read by the import
)
LAST_ARRIVALS = datetime(2017, 7, 15, tzinfo=UTC)
CONFIRMED_EVERY = 10  # guests who came


@dataclass(frozen=True, slots=True)
class FileHold:
    """One line of the file, as the import must take it over."""

    reference: str
    tenant: str
    token: str
    status: str
    hold_until: datetime

    @property
    def lapsed(self) -> bool:
        """Tell whether it is there to be released."""
        return self.status == "held" and self.hold_until < NEVER_SOON

    @property
    def ends_as(self) -> str:
        """Return its status after everything that lapsed was released."""
        return "expired" if self.lapsed else self.status


@dataclass(frozen=True, slots=True)
class _Stay:
    starts_at: datetime
    ends_at: datetime
    kind: str


def write_holds(source: Path, target: Path) -> list[FileHold]:
    """Write the file; return what is in it."""
    rows = read_rows(source)
    bookings = list(bookings_of(rows))
    stays = [_stay(row) for row in rows]
    holds = [_hold(row, one) for row, one in zip(rows, bookings, strict=True)]
    rooms = _rooms(bookings, stays)
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for hold, stay, room, one in zip(holds, stays, rooms, bookings, strict=True):
            instants = (stay.starts_at, stay.ends_at, hold.hold_until)
            texts = (instant.isoformat() for instant in instants)
            named = (hold.reference, hold.status, hold.token)
            writer.writerow((hold.tenant, room, *texts, *named, one.adults, one.children))
    return holds


def _hold(row: dict[str, str], one: Booking) -> FileHold:
    until = one.due_at
    status = _status(row, one)
    if status == "held" and arrival(row) >= LAST_ARRIVALS:
        until = NEVER_SOON
    return FileHold(str(one.number), one.tenant, str(one.token), status, until)


def _status(row: dict[str, str], one: Booking) -> str:
    became = row["reservation_status"]
    became_at = datetime.fromisoformat(row["reservation_status_date"]).replace(tzinfo=UTC)
    if became == "Canceled" and one.due_at < NEVER_SOON and became_at <= one.due_at:
        return "cancelled"
    confirmed = became == "Check-Out" and one.number % CONFIRMED_EVERY == 0
    return "confirmed" if confirmed else one.state


def _stay(row: dict[str, str]) -> _Stay:
    start = arrival(row) + timedelta(hours=15)
    nights = int(row["stays_in_weekend_nights"]) + int(row["stays_in_week_nights"])
    end = start + timedelta(days=max(nights, 1), hours=-4)
    return _Stay(start, end, row["reserved_room_type"].strip())


def _rooms(bookings: Sequence[Booking], stays: Sequence[_Stay]) -> list[str]:
    """Give each booking a room in the order of arrival."""
    free: dict[tuple[str, str], list[tuple[datetime, int]]] = defaultdict(list)
    built: dict[tuple[str, str], Iterator[int]] = defaultdict(lambda: count(1))
    rooms = [""] * len(bookings)
    for n in sorted(range(len(bookings)), key=lambda n: stays[n].starts_at):
        stay = stays[n]
        place = (bookings[n].tenant, stay.kind)
        if free[place] and free[place][0][0] <= stay.starts_at:
            number = heapq.heappop(free[place])[1]
        else:
            number = next(built[place])
        heapq.heappush(free[place], (stay.ends_at, number))
        rooms[n] = f"{stay.kind}{number}"
    return rooms
