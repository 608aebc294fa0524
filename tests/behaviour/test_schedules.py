"""A schedule's firing is done when its scan is, whatever the workers, the clock or others do."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from freehold.adapters.system import Onwards, SystemClock
from freehold.application.places import FULL_EVERY
from freehold.application.schedule import Scheduler
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.schedule import Cron, Every
from tests.behaviour.place import NOON
from tests.behaviour.till import Till, cart, open_table, put_holds, statuses

if TYPE_CHECKING:
    from tests.behaviour.place import Place

NIGHTLY = Cron("0 12 * * *")


def _scheduler(till: Till, name: str = "one") -> Scheduler:
    return Scheduler(till.ledger, till.scanner, SystemClock(), name, Onwards())


def _found(scheduler: Scheduler, till: Till) -> int | None:
    scan = scheduler.fire(till.rule).scan
    return None if scan is None else scan.new_count


def test_a_firing_goes_on_until_all_is_found(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 101))
    till = Till.open(place, cart(place, schedule=NIGHTLY, batch_size=2))
    scheduler = _scheduler(till)
    for _ in range(10):
        scheduler.fire(till.rule)
        while till.worker.work(till.rule).claimed_count:
            pass
    assert statuses(place) == {"expired": 100}
    assert place.table("tick", "found_count, new_count, outcome") == [(100, 100, "done")]
    assert _found(scheduler, till) is None


def test_a_firing_whose_runner_died_in_between_is_taken_over(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 101))
    rule = cart(place, schedule=NIGHTLY, batch_size=2)
    dying = Till.open(place, rule)
    assert _found(_scheduler(dying), dying) == 40

    place.advance(timedelta(seconds=31))
    till = Till.open(place, rule)
    scheduler = _scheduler(till, "two")
    for _ in range(10):
        scheduler.fire(rule)
        while till.worker.work(rule).claimed_count:
            pass
    assert statuses(place) == {"expired": 100}


def test_a_long_run_stays_in_the_hands_of_its_runner(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 101))
    till = Till.open(place, cart(place, schedule=NIGHTLY, batch_size=2))
    scheduler = _scheduler(till)
    other = Till.open(place, till.rule)
    for _ in range(4):
        scheduler.fire(till.rule)
        while till.worker.work(till.rule).claimed_count:
            pass
        assert _found(_scheduler(other, "two"), other) is None
        place.advance(timedelta(seconds=20))
    assert statuses(place) == {"expired": 100}
    assert place.table("tick", "run_count, outcome") == [(1, "done")]


def test_a_clock_that_is_set_back_stops_no_scan(place: Place) -> None:
    open_table(place)
    till = Till.open(place, cart(place))
    scheduler = _scheduler(till)
    place.advance(timedelta(hours=1))
    till.scanner.scan(till.rule)
    place.clock.at = NOON

    put_holds(place, [1], due=NOON - timedelta(minutes=1))
    assert _found(scheduler, till) == 1


def test_a_clock_that_is_set_back_stops_no_interval(place: Place) -> None:
    open_table(place)
    till = Till.open(place, cart(place, schedule=Every(300)))
    scheduler = _scheduler(till)
    place.advance(timedelta(hours=1))
    assert _found(scheduler, till) == 0
    place.clock.at = NOON

    put_holds(place, [1], due=NOON - timedelta(minutes=1))
    assert _found(scheduler, till) == 1


def test_a_short_interval_is_kept(place: Place) -> None:
    open_table(place)
    till = Till.open(place, cart(place, schedule=Every(30)))
    scheduler = _scheduler(till)
    assert _found(scheduler, till) == 0
    put_holds(place, [1])

    place.advance(timedelta(seconds=29))
    assert _found(scheduler, till) is None
    place.advance(timedelta(seconds=1))
    assert _found(scheduler, till) == 1


def test_a_firing_yields_to_other_rules_within_a_long_row_of_dead_letters(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 101))
    rule = cart(place, batch_size=2)
    till = Till.open(place, rule)
    till.run()
    place.host.run("update hold set status = 'held'")
    till.run_again(5, after=FULL_EVERY)
    assert place.table("operation", "state") == [("dead",)] * 100

    place.advance(FULL_EVERY)
    put_holds(place, [101])
    scheduler = _scheduler(Till.open(place, rule))
    scans = [scheduler.fire(rule).scan for _ in range(3)]
    assert [scan.finished for scan in scans if scan] == [False, False, True]
    assert [scan.new_count for scan in scans if scan] == [0, 0, 1]


def test_a_long_row_of_dead_letters_keeps_nothing_new_waiting(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 101))
    rule = cart(place, batch_size=2)
    till = Till.open(place, rule)
    till.run()
    place.host.run("update hold set status = 'held'")
    till.run_again(6, after=FULL_EVERY)  # the last one ends the walk
    assert place.table("operation", "state") == [("dead",)] * 100

    place.advance(FULL_EVERY)
    put_holds(place, [201], due=place.clock.at)
    put_holds(place, [101])
    place.advance(timedelta(seconds=1))
    first = till.scanner.scan(rule)
    assert (first.finished, first.new_count) == (True, 1)  # the late one lies behind the row
    assert sum(till.scanner.scan(rule).new_count for _ in range(5)) == 1


def test_text_that_must_be_read_whole_rests_after_a_long_pass(place: Place) -> None:
    place.host.run(
        "create table hold (id int primary key, tenant text, status text, token text, due text)"
    )
    place.host.insert("hold", [_text_row(number) for number in range(1, 4)])
    rule = cart(place, due=DueSpec("due", DueKind.ISO), batch_size=2)
    till = Till.open(place, rule, _Slow(place))
    till.scanner.scan(rule)

    assert not till.scanner.something_due(rule)
    place.advance(timedelta(seconds=20))
    assert till.scanner.something_due(rule)


def _text_row(number: int) -> dict[str, object]:
    due = (NOON + timedelta(hours=number)).isoformat()
    return {"id": number, "tenant": "t", "status": "held", "token": "k", "due": due}


class _Slow(Onwards):
    """A second passes at every commit."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def reach(self, boundary: object) -> None:
        if boundary == "operations committed":
            self._place.advance(timedelta(seconds=1))
