"""A migration that makes most holds overdue at once trips the guard before the first release."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from freehold.application import masses
from freehold.application.attach import attach
from freehold.application.guards import release_guards
from freehold.application.rulestate import switch_schedule
from freehold.application.work import PassEnd
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.rules import Mode
from tests.behaviour.place import NOON
from tests.behaviour.till import Till, cart, hold, open_table, put_holds, statuses

if TYPE_CHECKING:
    from tests.behaviour.place import Place

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
LATER = timedelta(seconds=20)  # the next walk from the beginning
MODES = pytest.mark.parametrize("mode", list(Mode))
RESTARTED = pytest.mark.parametrize(
    "restarted", [False, pytest.param(True, marks=pytest.mark.proof)], ids=["running", "restarted"]
)
MOVE = {
    "postgres": "update hold set due = due - interval '2 days' where id % 10 < {tenths}",
    "sqlite": "update hold set due = strftime('%Y-%m-%d %H:%M:%f', due, '-2 days') || '000'"
    " where id % 10 < {tenths}",
}


def _shop(place: Place, count: int, **changes: Any) -> Till:
    """Return a process that has scanned a shop with so many holds, all due tomorrow."""
    open_table(place)
    put_holds(place, range(1, count + 1), due=NOON + DAY)
    till = Till.open(place, cart(place, **changes))
    till.run()
    place.advance(LATER)
    till.run()
    place.advance(LATER)
    return till


def _move(place: Place, tenths: int) -> None:
    """Run the bad migration over so many tenths of the holds."""
    place.host.run(MOVE[place.dialect].format(tenths=tenths))


def _guards(place: Place) -> list[tuple[Any, ...]]:
    return place.table("guard", "kind, rule")


def _frozen(till: Till) -> None:
    till.run()
    assert _guards(till.place) == [("mass", "cart")]
    assert "expired" not in statuses(till.place)
    assert till.place.table("operation", "id") == []
    assert till.worker.work(till.rule).end is PassEnd.GUARDED


@MODES
@RESTARTED
def test_a_bad_migration_trips_before_the_first_release(
    place: Place, mode: Mode, restarted: bool
) -> None:
    till = _shop(place, 1_500, mode=mode)
    _move(place, 8)
    if restarted:
        till = Till.open(place, till.rule)
    _frozen(till)
    place.advance(LATER)
    _frozen(Till.open(place, till.rule))
    [(reason,)] = place.table("guard", "reason")
    assert reason.startswith("1,200 holds, about 80% of those that rule cart holds, turned up")

    release_guards(till.ledger, "cart", "ann", "the new dues are right")
    for _ in range(3):
        till.run()
        place.advance(LATER)
    assert statuses(place) == {"expired": 1_200, "held": 300}
    assert _guards(place) == [("mass", "cart")]
    acts = place.table("action", "actor, action, subject, reason")
    assert acts == [("ann", "guard release", "cart", "the new dues are right")]


@pytest.mark.parametrize(("count", "tenths"), [(1_000, 10), (2_400, 5)], ids=["few", "half"])
def test_no_mass_trips_nothing(place: Place, count: int, tenths: int) -> None:
    till = _shop(place, count)
    _move(place, tenths)
    till.run()
    place.advance(LATER)
    till.run()
    assert _guards(place) == []
    assert statuses(place)["expired"] == count * tenths // 10


@pytest.mark.proof
def test_rows_that_are_held_again_trip_it_too(place: Place) -> None:
    till = _shop(place, 300)
    put_holds(place, range(1_001, 2_501), due=NOON - DAY, status="sold")
    place.host.run("update hold set status = 'held' where id > 1000")
    _frozen(till)


def test_what_fell_due_while_nobody_scanned_trips_nothing(place: Place) -> None:
    till = _shop(place, 1_500)
    place.advance(2 * DAY)
    Till.open(place, till.rule).run()
    assert _guards(place) == []
    assert statuses(place) == {"expired": 1_500}


def test_an_attach_that_was_confirmed_trips_nothing(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 1_501), due=NOON - DAY)
    till = Till.open(place, cart(place, attach_limit=100))
    till.run()
    attach(till.ledger, till.rule, 1_500, "ann", "they are really over")
    for _ in range(3):
        till.run()
        place.advance(LATER)
    assert _guards(place) == []
    assert statuses(place) == {"expired": 1_500}


@pytest.mark.proof
def test_a_schedule_that_is_resumed_trips_nothing(place: Place) -> None:
    till = _shop(place, 1_500)
    with till.ledger.transaction() as tx:
        switch_schedule(tx, till.rule, "ann", "prices are updated", paused=True)
    _move(place, 8)
    till.run()
    place.advance(LATER)
    with till.ledger.transaction() as tx:
        switch_schedule(tx, till.rule, "ann", "done", paused=False)
    for _ in range(3):
        till.run()
        place.advance(LATER)
    assert _guards(place) == []
    assert statuses(place) == {"expired": 1_200, "held": 300}


@pytest.mark.proof
def test_the_guard_watches_again_after_a_release(place: Place) -> None:
    till = _shop(place, 4_000)
    _move(place, 8)
    _frozen(till)
    place.host.run("update hold set status = 'sold' where id <= 3000")
    release_guards(till.ledger, "cart", "ann", "mended")
    for _ in range(3):
        till.run()
        place.advance(LATER)
    put_holds(place, range(5_001, 7_501), due=NOON + 30 * DAY)
    till.run()
    place.host.run("update hold set due = (select min(due) from hold) where id > 5000")
    till.run()
    place.advance(LATER)
    till.run()
    assert _guards(place) == [("mass", "cart"), ("mass", "cart")]


@pytest.mark.proof
def test_a_share_beyond_the_count_is_sampled(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masses, "EXAMINED_MOST", 1_100)
    till = _shop(place, 4_000)
    _move(place, 4)
    till.run()
    place.advance(LATER)
    till.run()
    assert _guards(place) == []
    assert statuses(place) == {"expired": 1_600, "held": 2_400}


def test_a_mass_beyond_the_count_trips(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masses, "EXAMINED_MOST", 1_100)
    till = _shop(place, 4_000)
    _move(place, 7)
    _frozen(till)
    [(reason,)] = place.table("guard", "reason")
    assert reason.startswith("at least 1,1")


def test_text_that_cannot_be_compared_is_watched(place: Place) -> None:
    due = DueSpec("note", DueKind.ISO)
    open_table(place)
    rows = [hold(n, note=f"{NOON + DAY:%Y-%m-%dT%H:%MZ}") for n in range(1, 1_501)]
    if place.dialect == "postgres":
        rows = [{**row, "due": row["due"] + "+00"} for row in rows]
    place.host.insert("hold", rows)
    till = Till.open(place, cart(place, due=due))
    till.run()
    place.advance(LATER)
    place.host.run("update hold set note = '2026-03-09T10:00Z' where id % 10 < 8")
    _frozen(till)


def test_a_migration_in_the_middle_of_a_reading_trips_as_well(place: Place) -> None:
    till = _shop(place, 100, attach_limit=10_000, batch_size=100)
    put_holds(place, range(1_001, 3_001), due=NOON + LATER / 2)
    place.advance(LATER)
    till.scanner.scan(till.rule)
    place.host.run(f"update {place.prefix}operation set state = 'dead'")
    place.advance(LATER)
    till.scanner.scan(till.rule)
    walk = till.scanner._walks["cart"].places["cart"].after
    assert walk is not None
    place.host.run("delete from hold where id > 1000 and id % 10 > 1")
    put_holds(place, range(4_001, 5_001), due=NOON - DAY)
    put_holds(place, range(6_001, 7_001), due=NOON + 2 * LATER)
    place.advance(LATER)
    till.scanner.scan(till.rule)
    assert _guards(place) == [("mass", "cart")]
    assert len(place.table("operation", "id")) == 2_000


@pytest.mark.proof
def test_dead_letters_before_the_mass_are_passed_over(place: Place) -> None:
    """What stands in review was seen: it counts as held, and is neither weighed nor released."""
    till = _shop(place, 10, attach_limit=10_000)
    put_holds(place, range(1_001, 3_501), due=NOON + LATER / 2)
    place.advance(LATER)
    till.scanner.scan(till.rule)
    place.host.run(f"update {place.prefix}operation set state = 'dead'")
    place.advance(LATER)
    put_holds(place, range(4_001, 6_001), due=NOON - DAY)
    for _ in range(6):
        till.scanner.scan(till.rule)
        place.advance(LATER)
    assert _guards(place) == []
    put_holds(place, range(10_001, 15_001), due=NOON)
    count = len(place.table("operation", "id"))
    for _ in range(6):
        till.scanner.scan(till.rule)
        place.advance(LATER)
    assert _guards(place) == [("mass", "cart")]
    assert len(place.table("operation", "id")) == count == 4_500
