"""After downtime a schedule catches up once; short intervals share rows; a missing run shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards, SystemClock
from freehold.application.schedule import Scheduler
from freehold.application.status import RuleStatus, status
from freehold.domain.schedule import Cron, Every, Precise, Schedule
from tests.behaviour.place import NOON
from tests.behaviour.till import Till, cart, open_table, put_holds, statuses

if TYPE_CHECKING:
    from freehold.application.scan import ScanResult
    from freehold.domain.rules import Rule
    from tests.behaviour.place import Place

MINUTE = timedelta(minutes=1)
EVERY_FIVE = Cron("*/5 * * * *")


def scheduler_of(till: Till, name: str = "one") -> Scheduler:
    return Scheduler(till.ledger, till.scanner, SystemClock(), name, Onwards())


def opened(place: Place, schedule: Schedule) -> tuple[Till, Scheduler]:
    open_table(place)
    till = Till.open(place, cart(place, schedule=schedule))
    return till, scheduler_of(till)


def fire(scheduler: Scheduler, rule: Rule) -> ScanResult | None:
    return scheduler.fire(rule).scan


def firings(place: Place) -> list[datetime]:
    return [_utc(at) for (at,) in place.table("tick", "logical_time")]


def _utc(at: object) -> datetime:
    found = at if isinstance(at, datetime) else datetime.fromisoformat(str(at))
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


@pytest.mark.parametrize("schedule", [EVERY_FIVE, Every(300)])
def test_six_hours_of_downtime_are_one_firing(place: Place, schedule: Schedule) -> None:
    till, scheduler = opened(place, schedule)
    fire(scheduler, till.rule)
    put_holds(place, range(1, 51))
    place.advance(timedelta(hours=6, minutes=2))

    fresh = scheduler_of(till, "after the downtime")
    found = fire(fresh, till.rule)
    assert found is not None
    assert found.new_count == 50
    assert fire(fresh, till.rule) is None
    assert fire(scheduler, till.rule) is None
    assert firings(place) == [NOON, NOON + timedelta(hours=6)]
    while till.worker.work(till.rule).claimed_count:
        pass
    assert statuses(place) == {"expired": 50}


def test_a_night_without_a_service_makes_up_the_skipped_hour_once(place: Place) -> None:
    place.clock.at = datetime(2026, 3, 28, 12, tzinfo=UTC)
    till, scheduler = opened(place, Cron("30 2 * * *", "Europe/Berlin"))
    fire(scheduler, till.rule)
    place.clock.at = datetime(2026, 3, 29, 8, tzinfo=UTC)
    assert fire(scheduler, till.rule) is not None
    assert fire(scheduler, till.rule) is None
    hours = [(1, 30), (1, 0)]  # 02:30 CET, then the end of the gap
    days = [datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 3, 29, tzinfo=UTC)]
    wanted = [
        day + timedelta(hours=hour, minutes=minute)
        for day, (hour, minute) in zip(days, hours, strict=True)
    ]
    assert firings(place) == wanted


def test_two_schedulers_share_the_firings(place: Place) -> None:
    till, one = opened(place, EVERY_FIVE)
    two = scheduler_of(Till.open(place, till.rule), "two")
    ran = [0, 0]
    for _ in range(12):
        for index, scheduler in enumerate((one, two)):
            ran[index] += fire(scheduler, till.rule) is not None
        place.advance(5 * MINUTE)
        one, two = two, one
    assert ran == [12, 0]
    assert len(set(firings(place))) == 12


@pytest.mark.parametrize("schedule", [Every(1), Every(20), Precise()])
def test_runs_within_a_minute_share_its_row(place: Place, schedule: Schedule) -> None:
    till, scheduler = opened(place, schedule)
    for second in range(180):
        if second % 10 == 0 and second < 160:
            put_holds(place, [second + 1], due=place.clock.at - timedelta(seconds=1))
        fire(scheduler, till.rule)
        place.advance(timedelta(seconds=1))
    assert firings(place) == [NOON, NOON + MINUTE, NOON + 2 * MINUTE]
    assert sum(new for (new,) in place.table("tick", "new_count")) == 16


def test_a_run_that_does_not_come_shows_as_late(place: Place) -> None:
    till, scheduler = opened(place, EVERY_FIVE)
    fire(scheduler, till.rule)
    assert not look(till).tick_late
    place.advance(5 * MINUTE + timedelta(seconds=29))
    assert not look(till).tick_late
    place.advance(timedelta(seconds=1))
    assert look(till).tick_late
    fire(scheduler, till.rule)
    assert not look(till).tick_late


def look(till: Till) -> RuleStatus:
    found = status(till.ledger, [till.rule], SystemClock())
    return found.rules[0]
