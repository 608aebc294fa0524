"""Stays of one unit never overlap: against raw SQL, against a model, and among 32 processes."""

from __future__ import annotations

import random
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg

from freehold import holds
from freehold.domain.inventory import Stay
from freehold.testing.backdoor import BackDoor
from freehold.testing.forking import fork
from freehold.testing.pipeline import Pipeline
from tests.holds.hotel import (
    NIGHT,
    NOON,
    QUARTER,
    UNITS,
    desk_at,
    empty,
    events,
    host_of,
    prepare,
    statuses,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from freehold.testing.forking import Wire

PROCESSES = 32
HOUR = timedelta(hours=1)
_INSERT = (
    "insert into {s}hold (id, tenant, unit_id, status, starts_at, ends_at, hold_until, hold_token,"
    " created_at, changed_at) {over} values"
    " (:id, 'anna', :unit, :status, :starts, :ends, :until, :token, :until, :until)"
)


class Raw:
    """The table of holds in plain SQL; tells whether the database took the change."""

    def __init__(self, door: BackDoor) -> None:
        self.door = door
        self._over = "" if door.dialect == "sqlite" else "overriding system value"

    def insert(self, number: int, unit: int, taken: Stay | None, status: str = "held") -> bool:
        return self.change(
            _INSERT.replace("{over}", self._over),
            id=number,
            unit=unit,
            status=status,
            starts=None if taken is None else self.door.local(taken.starts_at),
            ends=None if taken is None else self.door.local(taken.ends_at),
            until=self.door.local(NOON),
            token=str(UUID(int=number)),
        )

    def change(self, sql: str, **values: Any) -> bool:
        kind: type[psycopg.Error | sqlite3.Error]
        if self.door.dialect == "sqlite":
            import sqlite3

            kind = sqlite3.IntegrityError
        else:
            kind = psycopg.IntegrityError
        try:
            self.door.execute(sql, **values)
        except kind:
            return False
        return True


def _hours(first: int, last: int) -> Stay:
    return Stay(NOON + first * HOUR, NOON + last * HOUR)


def test_raw_sql_cannot_overlap(hotel: str) -> None:
    unit, other = UNITS[:2]
    with BackDoor(hotel) as door:
        raw = Raw(door)
        assert raw.insert(1, unit, _hours(2, 4), "confirmed")
        for taken in (_hours(1, 3), _hours(2, 4), _hours(3, 5), _hours(0, 9), None):
            assert not raw.insert(2, unit, taken), taken
            assert not raw.insert(2, unit, taken, "confirmed"), taken
        assert raw.insert(2, unit, _hours(4, 5))
        assert raw.insert(3, unit, _hours(3, 5), "cancelled")
        assert raw.insert(4, other, None)
        for sql in (
            "update {s}hold set status = 'held' where id = 3",
            "update {s}hold set unit_id = :unit where id = 4",
            "update {s}hold set ends_at = :late where id = 1",
            "update {s}hold set starts_at = :early where id = 2",
            "update {s}hold set starts_at = null, ends_at = null where id = 1",
        ):
            late, early = door.local(NOON + 5 * HOUR), door.local(NOON + 3 * HOUR)
            given = {"unit": unit, "late": late, "early": early}
            values = {name: one for name, one in given.items() if f":{name}" in sql}
            assert not raw.change(sql, **values), sql
        assert raw.change("update {s}hold set status = 'cancelled' where id = 1")
        assert raw.change("update {s}hold set ends_at = starts_at, starts_at = :s where id = 2",
                          s=door.local(NOON))  # fmt: skip
        assert not raw.change("update {s}hold set ends_at = starts_at where id = 2")
        assert not raw.change("update {s}hold set ends_at = null where id = 2")
        assert not raw.change("update {s}hold set status = 'held' where id = 3")


def test_only_instants_of_one_spelling_are_taken(sqlite_url: str) -> None:
    prepare(sqlite_url)
    empty(sqlite_url)
    with BackDoor(sqlite_url) as door:
        raw = Raw(door)
        assert raw.insert(1, 1, _hours(2, 4))
        for column in ("starts_at", "ends_at", "hold_until"):
            for text in ("2031-05-06T13:00:00.000000Z", "2031-05-06 13:00:00", "", "soon"):
                assert not raw.change(f"update {{s}}hold set {column} = :text", text=text)


def test_the_database_takes_what_a_model_takes(hotel: str) -> None:
    with BackDoor(hotel) as door:
        fast = (
            "pragma synchronous = off"
            if door.dialect == "sqlite"
            else "set synchronous_commit = off"
        )
        door.execute(fast)
        _play(Raw(door), random.Random(7), 400)


def _play(
    raw: Raw,
    dice: random.Random,
    step_count: int,
) -> None:
    """Insert and change at random; the database and the model must agree on every step."""
    model: dict[int, tuple[int, range, str]] = {}
    for number in range(1, step_count + 1):
        unit, first = dice.choice(UNITS[:2]), dice.randrange(40)
        hours = range(first, first + dice.randint(1, 4))
        status = dice.choice(("held", "confirmed", "cancelled", "expired"))
        taken = _hours(hours.start, hours.stop)
        key = number if not model or dice.random() < 0.5 else dice.choice(list(model))
        others = [one for place, one in model.items() if place != key]
        free = status in ("cancelled", "expired") or not any(
            one[0] == unit
            and one[2] in ("held", "confirmed")
            and one[1].start < hours.stop
            and hours.start < one[1].stop
            for one in others
        )
        if key == number:
            done = raw.insert(number, unit, taken, status)
        else:
            done = raw.change(
                "update {s}hold set unit_id = :unit, status = :status, starts_at = :starts,"
                " ends_at = :ends where id = :id",
                id=key,
                unit=unit,
                status=status,
                starts=raw.door.local(taken.starts_at),
                ends=raw.door.local(taken.ends_at),
            )
        assert done == free, (number, key, model)
        if done:
            model[key] = (unit, hours, status)


def _grab(url: str, unit: int, wire: Wire) -> str:
    """Wait for the others, then try to hold the night; commit what came of it."""
    with host_of(url) as connection:
        wire.tell("ready")
        wire.wait()
        try:
            holds.hold(
                connection,
                tenant="anna",
                unit=unit,
                window=QUARTER,
                starts_at=NIGHT.starts_at,
                ends_at=NIGHT.ends_at,
            )
        except holds.HoldTaken as taken:
            return "taken" if taken.hold_until is not None else str(taken)
        finally:
            connection.commit()
        return "held"


def _together(ask: Callable[[Wire], object], count: int) -> list[str]:
    """Let processes ask at the same moment; return their answers, sorted."""
    children = [fork(ask) for _ in range(count)]
    try:
        for child in children:
            child.wait_for("ready")
        for child in children:
            child.go_on()
        return sorted(str(child.end().value) for child in children)
    finally:
        for child in children:
            child.__exit__(None, None, None)


def _all_grab(url: str, unit: int) -> list[str]:
    return _together(partial(_grab, url, unit), PROCESSES)


def test_one_of_many_processes_gets_the_stay(hotel: str) -> None:
    assert _all_grab(hotel, 1) == ["held"] + ["taken"] * (PROCESSES - 1)
    with BackDoor(hotel) as door:
        assert (statuses(door), events(door)) == (["held"], ["hold.held.v1"])


def test_a_lapsed_hold_in_the_way_of_many_is_released_once(hotel: str) -> None:
    desk = desk_at(hotel, NOON - timedelta(days=3650))
    desk.grant(1, UUID(int=1))
    assert _all_grab(hotel, 1) == ["held"] + ["taken"] * (PROCESSES - 1)
    with BackDoor(hotel) as door:
        assert statuses(door) == ["expired", "held"]
        assert events(door) == ["hold.held.v1", "hold.expired.v1", "hold.held.v1"]
        assert door.rows("select outcome, reason from {s}record") == [("expired", "straight")]
        assert door.one("select sum(expired_count) from {s}tally") == 1
    pipeline = Pipeline(hotel, desk.rule, desk.clock)
    assert pipeline.audit() == []
    pipeline.close()


def test_one_reference_of_many_processes_is_one_hold(hotel: str) -> None:
    def ask(wire: Wire) -> int:
        with host_of(hotel) as connection:
            wire.tell("ready")
            wire.wait()
            granted = holds.hold(connection, tenant="anna", unit=1, window=QUARTER, reference="r")
            connection.commit()
            return granted.hold.id

    ids = [int(value) for value in _together(ask, 8)]
    assert len(ids) == 8
    with BackDoor(hotel) as door:
        assert door.rows("select id from {s}hold") == [(ids[0],)]
        assert set(ids) == {ids[0]}
        assert events(door) == ["hold.held.v1"]
