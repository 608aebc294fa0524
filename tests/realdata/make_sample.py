"""Write sample.csv: invented bookings with the dirt and the skew of the real file.

No row is copied; run `python -m tests.realdata.make_sample` after a change here.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from datetime import date, timedelta

from tests.realdata.bookings import SAMPLE

ROWS = 300
FIRST_ARRIVAL = date(2015, 7, 1)
COLUMNS = (
    "hotel",
    "lead_time",
    "arrival_date_year",
    "arrival_date_month",
    "arrival_date_day_of_month",
    "adults",
    "children",
    "deposit_type",
    "agent",
    "adr",
    "stays_in_weekend_nights",
    "stays_in_week_nights",
    "reserved_room_type",
    "reservation_status",
    "reservation_status_date",
)


def _rows() -> Iterator[tuple[object, ...]]:
    dice, stays = random.Random(2015), random.Random(2017)
    for number in range(ROWS):
        arrival = FIRST_ARRIVAL + timedelta(days=dice.randrange(760))
        city = dice.random() < 0.6
        # One agent of the city hotel has about a quarter of all rows, the rest is a long tail.
        no_adults, no_children, negative = number % 60 == 7, number % 90 == 40, number == 111
        clean = not (no_adults or no_children or negative)
        deposits = dice.choices(("No Deposit", "Non Refund", "Refundable"), (87, 12, 1))
        agents = ["9", "9", "9", "NULL", str(dice.randrange(1, 500)), "240", "14"]
        lead_days = dice.choice((0, 0, 1, 7, 30, 69, 342))
        yield (
            "City Hotel" if city else "Resort Hotel",
            lead_days,
            arrival.year,
            arrival.strftime("%B"),
            arrival.day,
            0 if no_adults else dice.choice((1, 2, 2, 3)),
            "NA" if no_children else dice.choice(("0", "0", "0", "1", "2", "10")),
            deposits[0] if clean else "No Deposit",
            dice.choice(agents),
            "-6.38" if negative else f"{dice.uniform(0, 250):.2f}",
            *_stay(stays, arrival, lead_days),
        )


def _stay(dice: random.Random, arrival: date, lead_days: int) -> tuple[object, ...]:
    """Invent nights, room type and what became of the booking; it is cancelled before arrival."""
    nights = (dice.choice((0, 0, 1, 2)), dice.choice((0, 1, 2, 3, 5)))
    room = dice.choice(("A", "A", "A", "D", "E"))
    (status,) = dice.choices(("Check-Out", "Canceled", "No-Show"), (63, 36, 1))
    at = arrival
    if status == "Canceled":
        at -= timedelta(days=max(0, lead_days - dice.choice((0, 0, 1, 26))))
    return (*nights, room, status, at)


def main() -> None:
    """Write the file."""
    with SAMPLE.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(_rows())


if __name__ == "__main__":
    main()
