"""A backlog that was attached with a rate is released at that rate, and keeps nothing new waiting."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards, SystemClock
from freehold.application.attach import attach
from freehold.application.schedule import Scheduler
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.errors import UsageError
from freehold.domain.rules import Mode
from freehold.domain.schedule import Cron
from tests.behaviour.till import Till, cart, open_table, put_holds, statuses

if TYPE_CHECKING:
    from tests.behaviour.place import Place

SECOND = timedelta(seconds=1)


def attached(place: Place, count: int, per_second: float, **changes: object) -> Till:
    """Open a till whose rule has so many overdue holds, and was attached with a rate."""
    open_table(place)
    put_holds(place, range(1, count + 1))
    till = Till.open(place, cart(place, attach_limit=10, **changes))
    step(till)
    assert place.rule("condition") == ("waiting",)
    attach(till.ledger, till.rule, count, "ann", "", per_second)
    return till


def step(till: Till) -> int:
    """Scan and work as the service does at one moment; return how many holds are expired."""
    scheduler = Scheduler(till.ledger, till.scanner, SystemClock(), "one", Onwards())
    scheduler.fire(till.rule)
    while till.worker.work(till.rule).claimed_count:
        pass
    return statuses(till.place).get("expired", 0)


@pytest.mark.parametrize("mode", Mode)
def test_a_backlog_is_released_at_its_rate(place: Place, mode: Mode) -> None:
    till = attached(place, 100, 5, mode=mode)
    assert step(till) == 0
    expired = []
    for _ in range(20):
        place.advance(SECOND)
        expired.append(step(till))
    assert expired == list(range(5, 101, 5))
    place.advance(SECOND)
    step(till)
    assert place.table("attach_rate", "rule") == []


@pytest.mark.parametrize("mode", Mode)
def test_what_falls_due_meanwhile_goes_first(place: Place, mode: Mode) -> None:
    till = attached(place, 100, 1, mode=mode)
    place.advance(SECOND)
    step(till)
    put_holds(place, range(201, 251), due=place.clock.at + SECOND)
    place.advance(2 * SECOND)
    step(till)
    late = place.host.run("select count(*) from hold where id > 200 and status = 'expired'")
    assert late == [(50,)]
    assert statuses(place)["expired"] <= 53


def test_a_process_that_starts_in_between_keeps_to_it(place: Place) -> None:
    till = attached(place, 100, 5)
    place.advance(SECOND)
    assert step(till) == 5
    fresh = Till.open(place, till.rule)
    assert step(fresh) == 5
    place.advance(SECOND)
    assert step(fresh) + step(till) == 20
    assert statuses(place)["expired"] == 10


def test_at_most_a_minute_is_saved_up(place: Place) -> None:
    till = attached(place, 100, 1)
    place.advance(timedelta(hours=1))
    assert step(till) == 60


def test_a_nightly_rule_goes_on_until_its_backlog_is_through(place: Place) -> None:
    till = attached(place, 50, 0.5, schedule=Cron("0 0 * * *"))
    place.advance(timedelta(hours=12))
    scheduler = Scheduler(till.ledger, till.scanner, SystemClock(), "one", Onwards())
    expired = []
    for _ in range(5):
        scheduler.fire(till.rule)
        while till.worker.work(till.rule).claimed_count:
            pass
        expired.append(statuses(place).get("expired", 0))
        place.advance(10 * SECOND)
    assert expired == [30, 35, 40, 45, 50]
    assert len(place.table("tick", "logical_time")) == 2  # the one before the attach, and this


def test_an_attach_without_a_rate_is_at_full_speed(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 51))
    till = Till.open(place, cart(place, attach_limit=10))
    step(till)
    attach(till.ledger, till.rule, 50, "ann", "")
    assert step(till) == 50


def test_a_due_without_order_can_keep_no_rate(place: Place) -> None:
    rule = cart(place, due=DueSpec("due", DueKind.ISO))
    till = Till.open(place, rule)
    with pytest.raises(UsageError, match="leave it out"):
        attach(till.ledger, rule, 50, "ann", "", 1)
