"""Facts counted anew from the raw tables, row by row in Python, by no code of the product."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from freehold.domain.facts import Facts, LateFacts, ReleasedItem, RuleFacts
from freehold.domain.tallies import LAG_BOUNDS_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from freehold.ports.reports import RuleNote
    from tests.behaviour.place import Place

Raw = dict[str, Any]


def rows_of(place: Place, table: str) -> list[Raw]:
    """Read a whole table of the ledger, instants and JSON read as what they are."""
    cursor = place.host.connection.execute(f"select * from {place.prefix}{table}")
    names = [one[0] for one in cursor.description]
    return [
        {name: _plain(name, value) for name, value in zip(names, row, strict=True)}
        for row in cursor.fetchall()
    ]


def _plain(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in ("skipped", "lag_counts", "before_image"):
        return json.loads(value) if isinstance(value, str) else value
    if name == "at" or name.endswith("_at"):
        return (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)
    if name == "report_date":
        return date.fromisoformat(value) if isinstance(value, str) else value
    return value


def recount(place: Place, notes: Mapping[str, RuleNote], items_max: int) -> Iterator[Facts]:
    """Yield the facts of every report that has some, in the order of ids."""
    names: dict[str, str] = {row["id"]: row["name"] for row in rows_of(place, "tenant")}
    units = {(row["tenant"], str(row["id"])): row["name"] for row in rows_of(place, "unit")}
    reports = sorted(rows_of(place, "report"), key=lambda one: one["id"])
    counts = {(one["tenant"], one["report_date"]): one["expired_count"] for one in reports}
    tallies: dict[int, list[Raw]] = defaultdict(list)
    for row in rows_of(place, "tally"):
        tallies[row["report_id"]].append(row)
    records: dict[int, list[Raw]] = defaultdict(list)
    for row in rows_of(place, "record"):
        if row["outcome"] == "expired":
            records[row["tally_id"]].append(row)
    for report in reports:
        if report["facts"] is None:
            continue
        tenant: str = report["tenant"]
        day: date = report["report_date"]
        own = tallies[report["id"]]
        within = [one for one in own if one["at"] >= report["start_at"]]
        mine = [one for one in reports if one["tenant"] == tenant]
        released = [record for one in within for record in records[one["id"]]]
        yield Facts(
            tenant=tenant,
            tenant_name=names.get(tenant, tenant),
            report_date=day,
            start_at=report["start_at"],
            end_at=report["end_at"],
            zone=report["zone"],
            tz_version=report["tz_version"],
            watermark_at=report["watermark_at"],
            frozen_at=report["frozen_at"],
            rules=tuple(_rules(within, released, notes, _open(place, tenant))),
            late=tuple(_late([one for one in own if one["at"] < report["start_at"]], mine)),
            items=tuple(_items(released, notes, units, items_max)),
            day_before_count=counts.get((tenant, day - timedelta(days=1))),
            week_before_count=counts.get((tenant, day - timedelta(days=7))),
        )


def _open(place: Place, tenant: str) -> dict[str, list[Raw]]:
    found: dict[str, list[Raw]] = defaultdict(list)
    for row in rows_of(place, "operation"):
        if (row["tenant"] or "") == tenant and row["window_until"] is None:
            found[row["rule"]].append(row)
    return found


def _rules(
    within: Sequence[Raw],
    released: Sequence[Raw],
    notes: Mapping[str, RuleNote],
    left: Mapping[str, Sequence[Raw]],
) -> Iterator[RuleFacts]:
    for rule in sorted({one["rule"] for one in within} | set(left)):
        own = [one for one in within if one["rule"] == rule]
        mine = [one for one in released if one["rule"] == rule]
        skipped: Counter[str] = Counter()
        for one in own:
            skipped.update(one["skipped"])
        lag_seconds = sorted((one["finished_at"] - one["due_at"]).total_seconds() for one in mine)
        dead = [one for one in left.get(rule, ()) if one["state"] == "dead"]
        dues = [
            one["due_at"]
            for one in left.get(rule, ())
            if one["state"] not in ("dead", "discarded") and one["due_at"] is not None
        ]
        made = RuleFacts(
            rule=rule,
            released_count=len(mine),
            unit_count=len({_unit_of(one, notes) for one in mine}),
            skipped=dict(skipped),
            retried_count=sum(one["redelivery_count"] for one in own),
            dead_count=len(dead),
            oldest_due_at=min(dues, default=None),
            lag_p50_seconds=_quantile(lag_seconds, 0.5),
            lag_p95_seconds=_quantile(lag_seconds, 0.95),
            lag_max_seconds=lag_seconds[-1] if lag_seconds else None,
            promise_seconds=notes[rule].promise_seconds if rule in notes else None,
            within_promise_count=_within(lag_seconds, notes[rule].promise_seconds)
            if rule in notes
            else None,
        )
        if made != RuleFacts(rule, promise_seconds=made.promise_seconds, within_promise_count=0):
            yield made


def _quantile(lag_seconds: Sequence[float], share: float) -> float | None:
    """Take the lag at this share, then the bound above it, but never more than the longest."""
    if not lag_seconds:
        return None
    wanted = next(n for n in range(1, len(lag_seconds) + 1) if n >= share * len(lag_seconds))
    bounds = [*LAG_BOUNDS_SECONDS, lag_seconds[-1]]
    bound = bounds[bisect_left(LAG_BOUNDS_SECONDS, lag_seconds[wanted - 1])]
    return min(bound, lag_seconds[-1])


def _within(lag_seconds: Sequence[float], promise_seconds: float) -> int:
    """Count as within the promise what surely was: buckets do not tell inside of one."""
    if lag_seconds and lag_seconds[-1] <= promise_seconds:
        return len(lag_seconds)
    bound = max((one for one in LAG_BOUNDS_SECONDS if one <= promise_seconds), default=-1.0)
    return sum(1 for one in lag_seconds if one <= bound)


def _unit_of(record: Raw, notes: Mapping[str, RuleNote]) -> tuple[str, str]:
    column = notes[record["rule"]].unit_column if record["rule"] in notes else None
    image = record["before_image"] or {}
    unit = None if column is None else image.get(column)
    return ("key", record["hold_key"]) if unit is None else ("unit", unit)


def _late(late: Sequence[Raw], reports: Sequence[Raw]) -> Iterator[LateFacts]:
    found: dict[date | None, list[int]] = defaultdict(lambda: [0, 0])
    for one in late:
        days = [
            report["report_date"]
            for report in reports
            if report["start_at"] <= one["at"] < report["end_at"]
        ]
        sums = found[days[0] if days else None]
        sums[0] += one["expired_count"]
        sums[1] += sum(one["skipped"].values())
    for day in sorted(found, key=lambda one: (one is not None, one)):
        if any(found[day]):
            yield LateFacts(day, *found[day])


def _items(
    released: Sequence[Raw],
    notes: Mapping[str, RuleNote],
    units: Mapping[tuple[str, str], str],
    items_max: int,
) -> Iterator[ReleasedItem]:
    ordered = sorted(
        released,
        key=lambda one: (
            one["finished_at"],
            one["due_at"],
            one["rule"],
            one["hold_key"].encode(),
            one["operation_id"],
        ),
    )
    for one in ordered[:items_max]:
        kind, unit = _unit_of(one, notes)
        name = unit if kind == "unit" else None
        if name is not None and notes[one["rule"]].own_units:
            name = units.get((one["tenant"] or "", name), name)
        lag_seconds = (one["finished_at"] - one["due_at"]).total_seconds()
        yield ReleasedItem(
            one["rule"], one["hold_key"], name, one["due_at"], one["finished_at"], lag_seconds
        )
