"""Nothing lets a rule work whose overdue holds nobody confirmed: no mend, no probe, no empty due."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from freehold.adapters.system import Onwards, SystemClock
from freehold.application.schedule import Scheduler
from freehold.application.sweep import Sweeper
from freehold.application.work import PassEnd
from freehold.domain.due import EmptyDue
from tests.behaviour.till import Till, cart, due_spec, hold, open_table, put_holds, statuses

if TYPE_CHECKING:
    from tests.behaviour.place import Place

BREAK = "alter table hold rename column token to removed"
MEND = "alter table hold rename column removed to token"
LATER = timedelta(minutes=6)


def _fire(till: Till) -> None:
    scheduler = Scheduler(till.ledger, till.scanner, SystemClock(), "one", Onwards())
    scheduler.fire(till.rule)
    till.worker.work(till.rule)


def test_a_rule_that_was_broken_when_first_met_still_waits(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 21))
    place.host.run(BREAK)
    till = Till.open(place, cart(place, attach_limit=10))
    _fire(till)
    place.host.run(MEND)

    for _ in range(3):
        place.advance(LATER)
        _fire(till)
    assert place.rule("condition") == ("waiting",)
    assert statuses(place) == {"held": 20}


def test_a_rule_that_was_broken_when_first_met_works_when_little_is_overdue(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 6))
    place.host.run(BREAK)
    till = Till.open(place, cart(place, attach_limit=10))
    _fire(till)
    place.host.run(MEND)

    till.run_again(2, after=LATER)
    assert place.rule("condition") == ("active",)
    assert statuses(place) == {"expired": 5}


def test_a_waiting_rule_that_breaks_and_is_mended_still_waits(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 21))
    till = Till.open(place, cart(place, attach_limit=10))
    _fire(till)
    assert place.rule("condition") == ("waiting",)
    place.host.run(BREAK)
    _fire(till)
    place.host.run(MEND)

    for _ in range(3):
        place.advance(LATER)
        _fire(till)
    assert place.rule("condition") == ("waiting",)
    assert statuses(place) == {"held": 20}


def test_holds_without_a_due_count_as_overdue_where_they_are_due_now(place: Place) -> None:
    open_table(place)
    place.host.insert("hold", [hold(number) | {"due": None} for number in range(1, 21)])
    rule = cart(place, attach_limit=10, due=due_spec(place, on_empty=EmptyDue.NOW))
    till = Till.open(place, rule)
    assert till.worker.work(rule).end is PassEnd.NOT_ATTACHED

    Sweeper(till.ledger, Onwards(), till.scanner).sweep([rule])
    assert place.table("operation", "hold_key") == []
    assert statuses(place) == {"held": 20}
