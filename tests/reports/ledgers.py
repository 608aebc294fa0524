"""Ledgers full of ends, made up by a seed and written by the plain driver."""

from __future__ import annotations

import json
import random
from bisect import bisect_left
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from freehold.domain.expiry import SkipReason
from freehold.domain.reports import ReportReason, Window
from freehold.domain.tallies import LAG_BOUNDS_SECONDS
from freehold.ports.report_calendar import Closing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from freehold.adapters.sql.ledger import SqlLedger
    from tests.behaviour.place import Place

DAY = timedelta(days=1)
FIRST = date(2026, 3, 9)
ODD_NAMES = (
    "",
    "t1",
    'q"uote',
    "a'b",
    "päï\u202e",
    "{brace}",
    "back\\slash",
    "sp ace,comma",
    "NULL",
)
REASONS = [one.value for one in SkipReason]


def day_window(day: date) -> Window:
    """Return a day of UTC."""
    start_at = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return Window(day, start_at, start_at + DAY, "UTC", "test")


def close(
    ledger: SqlLedger, tenants: Iterable[str], day: date, reason: ReportReason | None = None
) -> None:
    """Close one day of all these tenants, whatever the clock says."""
    this = day_window(day)
    with ledger.transaction() as tx:
        tx.report_calendar.enrol(dict.fromkeys(tenants, this))
        for group in tx.report_calendar.due(this.end_at, 1_000):
            closing = Closing(group, this, day_window(day + DAY), this.end_at, reason)
            tx.report_calendar.close(closing, 10_000)


class MadeUp:
    """Writes tallies with their records; ids and lags come from the seed."""

    def __init__(self, place: Place, seed: int) -> None:
        self._place = place
        self._dice = random.Random(seed)
        self._operation = 0
        self._records: list[dict[str, Any]] = []
        self._tallies: list[dict[str, Any]] = []

    def tell(self, rule: str, tenant: str, at: datetime, released: int, skipped: int = 0) -> None:
        """Make up one tally and the records of what it counts."""
        lag_counts = [0] * (len(LAG_BOUNDS_SECONDS) + 1)
        longest = None
        tally_id = len(self._tallies) + 1
        for _ in range(released):
            lag = timedelta(microseconds=round(10 ** self._dice.uniform(3, 11.5)))
            lag_counts[bisect_left(LAG_BOUNDS_SECONDS, lag.total_seconds())] += 1
            longest = max(longest or 0.0, lag.total_seconds())
            key = self._dice.choice(["k1", "K1", "é", f"k{self._dice.randrange(50)}"])
            self._record(rule, tenant, tally_id, at, key, "expired", None, at - lag)
        skips = Counter(self._dice.choice(REASONS) for _ in range(skipped))
        for reason in skips.elements():
            self._record(rule, tenant, tally_id, at, "s", "skipped", reason, at)
        self._tallies.append(
            {
                "id": tally_id,
                "rule": rule,
                "tenant": tenant or None,
                "at": self._written(at),
                "expired_count": released,
                "skipped": json.dumps(dict(skips)),
                "lag_counts": json.dumps(lag_counts),
                "lag_max_seconds": longest,
                "redelivery_count": self._dice.choice([0, 0, 0, 2]),
            }
        )

    def _record(
        self,
        rule: str,
        tenant: str,
        tally_id: int,
        at: datetime,
        key: str,
        outcome: str,
        reason: str | None,
        due_at: datetime,
    ) -> None:
        self._operation += 1
        room = self._dice.choice([None, "1", "2", "$", 'a"b'])
        image = {"id": key, "$room": room, "unit_id": self._dice.choice(["1", "2", "77", "x"])}
        self._records.append(
            {
                "operation_id": self._operation,
                "rule": rule,
                "tenant": tenant or None,
                "hold_key": key,
                "digest": str(UUID(int=self._operation)),
                "generation": 1,
                "due_at": self._written(due_at),
                "outcome": outcome,
                "reason": reason,
                "attempt": 1,
                "before_image": json.dumps(image) if outcome == "expired" else None,
                "tally_id": tally_id,
                "found_at": self._written(due_at),
                "finished_at": self._written(at),
            }
        )

    def _written(self, at: datetime) -> str:
        return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def at_random(self, tenants: Sequence[str], days: Sequence[date], tally_count: int) -> None:
        """Tell of holds of all these tenants, on all these days and the one before."""
        for _ in range(tally_count):
            day = day_window(self._dice.choice(days) - self._dice.choice([0, 0, 0, 1]) * DAY)
            at = day.start_at + self._dice.choice([0, 1, 2, self._dice.randrange(1, 86_400)]) * (
                timedelta(seconds=1)
            )
            rule = self._dice.choice(["cart", "holds", "gone"])
            released, skipped = self._dice.choice([(0, 2), (1, 0), (3, 4), (7, 0)])
            self.tell(rule, self._dice.choice(tenants), at, released, skipped)

    def write(self) -> None:
        """Put all of it into the tables, which are empty."""
        if self._place.dialect == "postgres":  # which numbers the tallies itself, from 1
            for row in self._tallies:
                row.pop("id")
        for table, rows in (("tally", self._tallies), ("record", self._records)):
            self._place.host.insert(f"{self._place.prefix}{table}", rows)
