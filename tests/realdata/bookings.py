"""Bookings as holds: what is real comes from the file, what a hold needs beside it is SYNTHESISED.

Real: hotel, agent, booking date (arrival minus lead time), adults, children, rate, deposit type,
all with their dirt ("NULL" agents, no adults, children "NA", a negative rate). The file has dates
only, and no holds. Synthesised, from the row's number alone: the time of day, the hold token, and
the hold window of 24 hours. What became of the hold is synthesised from the deposit type: "Non
Refund" was paid at once (confirmed), "Refundable" is still held with a window that ends in 2100, all
else was left to lapse.

Source: Antonio, de Almeida, Nunes (2019), "Hotel booking demand datasets", Data in Brief 22:41-49,
doi 10.1016/j.dib.2018.11.126, CC BY 4.0.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import NAMESPACE_OID, UUID, uuid5

CHECKOUT = Path(__file__).resolve().parents[2]
SAMPLE = Path(__file__).with_name("sample.csv")
FILE = "hotel_bookings.csv.gz"
FOLDER_VARIABLE = "FREEHOLD_DATA"

HOLD_WINDOW = timedelta(hours=24)
NEVER_SOON = datetime(2100, 1, 1, tzinfo=UTC)
SECONDS_A_DAY = 86_400
STRIDE = 7_919  # seconds; a prime spreads the rows of one date over its day


@dataclass(frozen=True, slots=True)
class Booking:
    """One row of the file, with what was synthesised for it.

    Attributes:
        state: held, or confirmed.
        due_at: when the hold lapses.
    """

    number: int
    hotel: str
    agent: str
    adults: int
    children: str
    rate: str
    state: str
    token: UUID
    due_at: datetime

    @property
    def tenant(self) -> str:
        """Return who the hold belongs to: one agent at one hotel."""
        return f"{self.hotel}/{self.agent}"

    @property
    def lapsed(self) -> bool:
        """Tell whether the hold is there to be released."""
        return self.state == "held" and self.due_at < NEVER_SOON


def find_file() -> Path | None:
    """Return the file of real bookings: in FREEHOLD_DATA, or in shared/data beside the checkout."""
    named = os.environ.get(FOLDER_VARIABLE)
    folder = Path(named) if named else CHECKOUT.parent / "shared" / "data"
    return folder / FILE if (folder / FILE).exists() else None


def read_bookings(path: Path) -> list[Booking]:
    """Read a file of bookings, packed or plain."""
    return list(bookings_of(read_rows(path)))


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read the rows of such a file as they stand there."""
    packed = path.suffix == ".gz"
    with gzip.open(path, "rt") if packed else path.open() as lines:
        return list(csv.DictReader(lines))


def bookings_of(rows: Iterable[dict[str, str]]) -> Iterator[Booking]:
    """Make holds of rows."""
    for number, row in enumerate(rows, start=1):
        refundable = row["deposit_type"] == "Refundable"
        yield Booking(
            number=number,
            hotel=row["hotel"],
            agent=row["agent"],
            adults=int(row["adults"]),
            children=row["children"],
            rate=row["adr"],
            state="confirmed" if row["deposit_type"] == "Non Refund" else "held",
            token=uuid5(NAMESPACE_OID, str(number)),
            due_at=NEVER_SOON if refundable else _booked_at(number, row) + HOLD_WINDOW,
        )


def _booked_at(number: int, row: dict[str, str]) -> datetime:
    second = timedelta(seconds=number * STRIDE % SECONDS_A_DAY)
    return arrival(row) - timedelta(days=int(row["lead_time"])) + second


def arrival(row: dict[str, str]) -> datetime:
    """Return the first moment of the day of arrival."""
    date = " ".join(row[f"arrival_date_{part}"] for part in ("year", "month", "day_of_month"))
    return datetime.strptime(date, "%Y %B %d").replace(tzinfo=UTC)


def count_lapsed(bookings: Iterable[Booking]) -> Counter[str]:
    """Count the holds that are to be released, by tenant."""
    return Counter(booking.tenant for booking in bookings if booking.lapsed)
