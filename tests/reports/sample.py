"""Facts to write reports from: a busy, a calm and a bad day."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from freehold.adapters.rendering import MimeRenderer
from freehold.domain.facts import Facts, LateFacts, ReleasedItem, RuleFacts
from freehold.domain.reports import ReportPolicy
from freehold.ports.rendering import Rendered

DAY = date(2026, 3, 14)
START = datetime(2026, 3, 13, 23, tzinfo=UTC)  # midnight in Berlin
DUE = START + timedelta(hours=31)
TO = "desk@harbour.example"
POLICY = ReportPolicy("reports@harbour.example")
CALM = Facts(
    tenant="harbour",
    tenant_name="Harbour Hotel",
    report_date=DAY,
    start_at=START,
    end_at=START + timedelta(days=1),
    zone="Europe/Berlin",
    tz_version="2026a",
    watermark_at=START + timedelta(days=1),
    frozen_at=START + timedelta(days=1, minutes=1),
)
ROOMS = RuleFacts(
    rule="rooms",
    released_count=1_204,
    unit_count=860,
    skipped={"renewed": 310, "confirmed": 1_022, "something new": 2},
    retried_count=7,
    lag_p50_seconds=1.0,
    lag_p95_seconds=3.0,
    lag_max_seconds=74.2,
    promise_seconds=60.0,
    within_promise_count=1_201,
)


def items(count: int, **fields: str) -> tuple[ReleasedItem, ...]:
    """Return released holds, a minute apart."""
    minute, second = timedelta(minutes=1), timedelta(seconds=1)
    named = {"rule": "rooms", "unit": "Room 204", **fields}
    return tuple(
        ReleasedItem(
            **{"hold_key": f"{4_000 + number}", **named},
            due_at=START + number * minute,
            released_at=START + number * minute + second,
            lag_seconds=1.25,
        )
        for number in range(count)
    )


BUSY = replace(
    CALM, rules=(ROOMS,), items=items(200), day_before_count=1_190, week_before_count=1_300
)
BAD = replace(
    BUSY,
    rules=(replace(ROOMS, dead_count=3, oldest_due_at=START + timedelta(hours=17)),),
    late=(LateFacts(None, 2, 0), LateFacts(date(2026, 3, 12), 4, 1)),
)


def render(facts: Facts, locale: str = "en", summary: str | None = None, **policy: str) -> Rendered:
    """Write one report."""
    return MimeRenderer(replace(POLICY, **policy)).render(facts, locale, summary)  # type: ignore[arg-type]


def head(facts: Facts, to: str = TO, locale: str = "en", **policy: str) -> str:
    """Return the header lines of one copy."""
    renderer = MimeRenderer(replace(POLICY, **policy))  # type: ignore[arg-type]
    ((_, lines),) = renderer.heads(facts, renderer.render(facts, locale), [to], DUE)
    return lines
