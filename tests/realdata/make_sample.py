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
)


def _rows() -> Iterator[tuple[object, ...]]:
    dice = random.Random(2015)
    for number in range(ROWS):
        arrival = FIRST_ARRIVAL + timedelta(days=dice.randrange(760))
        city = dice.random() < 0.6
        # One agent of the city hotel has about a quarter of all rows, the rest is a long tail.
        no_adults, no_children, negative = number % 60 == 7, number % 90 == 40, number == 111
        clean = not (no_adults or no_children or negative)
        deposits = dice.choices(("No Deposit", "Non Refund", "Refundable"), (87, 12, 1))
        agents = ["9", "9", "9", "NULL", str(dice.randrange(1, 500)), "240", "14"]
        yield (
            "City Hotel" if city else "Resort Hotel",
            dice.choice((0, 0, 1, 7, 30, 69, 342)),
            arrival.year,
            arrival.strftime("%B"),
            arrival.day,
            0 if no_adults else dice.choice((1, 2, 2, 3)),
            "NA" if no_children else dice.choice(("0", "0", "0", "1", "2", "10")),
            deposits[0] if clean else "No Deposit",
            dice.choice(agents),
            "-6.38" if negative else f"{dice.uniform(0, 250):.2f}",
        )


def main() -> None:
    """Write the file."""
    with SAMPLE.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(_rows())


if __name__ == "__main__":
    main()
