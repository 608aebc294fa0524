"""The cost of status does not grow with what is dead and what has ended."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import SystemClock
from freehold.application.findings import judged
from freehold.application.status import COUNT_MOST, status
from freehold.domain.operations import OperationState
from tests.insight.shop import open_shop

if TYPE_CHECKING:
    from tests.insight.shop import Shop

ROUNDS = 9
RATIO_MOST = 1.5
NUMBERS = {
    "sqlite": "with recursive g(n) as (select {first} union all select n + 1 from g where n < {last})",
    "postgres": "with g(n) as (select generate_series({first}, {last}))",
}
AT = "'2026-03-10T12:00:00.000000Z'"


def kind_of(shop: Shop) -> str:
    """Return the dialect's name."""
    return "sqlite" if shop.url.startswith("sqlite") else "postgres"


def numbers(shop: Shop, first: int, last: int) -> str:
    """Return a WITH clause that counts."""
    return NUMBERS[kind_of(shop)].format(first=first, last=last)


def fill(shop: Shop, first: int, last: int, dead: int) -> None:
    """Add records, a tally for every 500 of them, and dead operations with their held rows."""
    count, few = numbers(shop, first, last), numbers(shop, first, first + dead - 1)
    padded = {"sqlite": "printf('%012d', n)", "postgres": "lpad(n::text, 12, '0')"}[kind_of(shop)]
    digest = f"'00000000-0000-0000-0000-' || {padded}"
    if kind_of(shop) == "postgres":
        digest = f"({digest})::uuid"
    head = (
        "insert into {s}record (operation_id, rule, hold_key, digest, generation, due_at, outcome,"
    )
    operation = (
        "insert into {s}operation (rule, hold_key, digest, identity, guard, due_at, generation,"
    )
    shop.run(
        f"{head} attempt, found_at, finished_at) {count} select n, 'cart', n, {digest}, 1, {AT},"
        f" 'expired', 1, {AT}, {AT} from g",
        "insert into {s}tally (rule, at, expired_count, skipped, lag_counts)"
        f" {count} select 'cart', {AT}, 500, '{{}}', '[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]'"
        " from g where n % 500 = 0",
        f"insert into res {few} select n, 't', 'held', 'k', '2026-03-10 12:00:00' from g",
        f"{operation} after_expired, state, reason, available_at, found_at, changed_at)"
        f" {few} select 'cart', n, "
        f"{digest}, '[\"2026-03-10 12:00:00\",\"k\"]', '[\"held\"]', {AT}, 1, false, 'dead', 'broken',"
        f" {AT}, {AT}, {AT} from g",
    )
    shop.run("analyze")


def median_ms(shop: Shop) -> float:
    """Return the median time of a status, judged too, on one connection."""
    times = []
    with shop.ledger() as ledger:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            judged(status(ledger, [shop.rule], SystemClock()))
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times[2:])


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_status_costs_the_same_beside_a_million_records(a_url: str) -> None:
    shop = open_shop(a_url)
    fill(shop, 1, 12_000, 12_000)
    small = median_ms(shop)
    fill(shop, 12_001, 1_000_000, 288_000)
    large = median_ms(shop)
    with shop.ledger() as ledger:
        row = status(ledger, [shop.rule], SystemClock()).rules[0]
    assert row.count(OperationState.DEAD) == COUNT_MOST + 1
    print(f"status: {small:.1f} ms small, {large:.1f} ms large")  # noqa: T201 - a measurement
    assert large <= RATIO_MOST * small, f"{large:.1f} ms against {small:.1f} ms"
