"""The functions of `freehold.holds` inside a transaction of the caller's."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID
from zoneinfo import ZoneInfo

import psycopg
import pytest
from psycopg.adapt import Dumper, Loader
from psycopg.rows import dict_row

from freehold import holds
from freehold.bootstrap import sqlite_path
from freehold.testing.backdoor import BackDoor
from freehold.testing.forking import fork
from tests.holds.hotel import NIGHT, QUARTER, connect, empty, events, host_of, prepare, statuses

if TYPE_CHECKING:
    from freehold.domain.inventory import Hold
    from freehold.testing.forking import Wire

TOMORROW = datetime.now(UTC) + timedelta(days=1)
BEYOND = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))


def _held(connection: Any, unit: int | str, **changes: Any) -> Hold:
    return holds.hold(
        connection, **{"tenant": "anna", "unit": unit, "window": QUARTER, **changes}
    ).hold


def test_what_was_held_is_there_after_the_callers_commit(hotel: str) -> None:
    with host_of(hotel) as connection, BackDoor(hotel) as door:
        hold = _held(connection, "room 1", starts_at=NIGHT.starts_at, ends_at=NIGHT.ends_at)
        assert (hold.unit_id, hold.stay) == (1, NIGHT)
        assert statuses(door) == events(door) == []
        connection.commit()
        assert holds.still_held(connection, hold.token)
        assert holds.still_held(connection, str(hold.token))
        renewed = holds.renew(connection, hold.token, until=TOMORROW)
        assert renewed.token != hold.token
        assert not holds.still_held(connection, hold.token)
        confirmed = holds.confirm(connection, str(renewed.token))
        assert holds.confirm(connection, renewed.token) == confirmed
        assert holds.read(connection, renewed.token) == confirmed
        cancelled = holds.cancel(connection, renewed.token)
        assert holds.cancel(connection, renewed.token) == cancelled
        connection.commit()
        assert statuses(door) == ["cancelled"]
        names = ("held", "renewed", "confirmed", "cancelled")
        assert events(door) == [f"hold.{name}.v1" for name in names]


def test_a_rollback_of_the_callers_leaves_nothing(hotel: str) -> None:
    with host_of(hotel) as connection, BackDoor(hotel) as door:
        _held(connection, 1)
        connection.rollback()
        assert statuses(door) == events(door) == []
        hold = _held(connection, 1)
        connection.commit()
        holds.confirm(connection, hold.token)
        connection.rollback()
        assert (statuses(door), events(door)) == (["held"], ["hold.held.v1"])


def test_it_stands_and_falls_with_a_savepoint(hotel: str) -> None:
    with host_of(hotel) as connection, BackDoor(hotel) as door:
        connection.execute("drop table if exists note")
        connection.execute("create table note (text text)")
        connection.commit()
        _held(connection, 1)
        connection.execute("insert into note values ('mine')")
        connection.execute("savepoint here")
        _held(connection, 2)
        connection.execute("rollback to savepoint here")
        connection.commit()
        assert (statuses(door), events(door)) == (["held"], ["hold.held.v1"])
        assert door.one("select text from note") == "mine"


def test_a_refusal_leaves_the_transaction_usable(hotel: str) -> None:
    with host_of(hotel) as connection, BackDoor(hotel) as door:
        hold = _held(connection, 1)
        with pytest.raises(holds.HoldTaken, match=f"hold {hold.id} until") as taken:
            _held(connection, 1)
        assert (taken.value.hold_id, taken.value.hold_until) == (hold.id, hold.hold_until)
        holds.confirm(connection, hold.token)
        with pytest.raises(holds.HoldTaken, match="confirmed"):
            _held(connection, 1)
        for no_token in (UUID(int=1), "no token", "", None):
            with pytest.raises(holds.UnknownHold):
                holds.confirm(connection, no_token)  # type: ignore[arg-type]
        with pytest.raises(holds.UnknownUnit):
            _held(connection, "no room")
        with pytest.raises(holds.UnknownUnit):
            _held(connection, 10**9)
        with pytest.raises(holds.UsageError, match="either window or until"):
            _held(connection, 2, until=TOMORROW)
        with pytest.raises(holds.UsageError, match="future"):
            _held(connection, 2, window=timedelta(0))
        with pytest.raises(holds.UsageError, match="both"):
            _held(connection, 2, starts_at=TOMORROW)
        with pytest.raises(holds.HoldLapsed, match="confirmed"):
            holds.renew(connection, hold.token, window=QUARTER)
        _held(connection, 2)
        connection.commit()
        assert statuses(door) == ["confirmed", "held"]


@pytest.mark.parametrize(
    "odd",
    [
        *({"unit": name} for name in ("", "a\0b", "\ud800", "x" * 10**6, b"room 1", None)),
        *({"unit": number} for number in (True, -1, 2**70)),
        *({"tenant": name} for name in ("a\0b", "\ud800", "x" * 10**6, 5)),
        *({"reference": text} for text in ("", "a\0b", "\ud800")),
        {"window": timedelta.max},
        {"window": None, "until": BEYOND},
        {"starts_at": NIGHT.starts_at, "ends_at": BEYOND},
    ],
    ids=lambda odd: ascii(odd)[:40],
)
def test_what_no_table_can_hold_is_refused_before_the_database_sees_it(
    hotel: str, odd: dict[str, Any]
) -> None:
    with host_of(hotel) as connection:
        with pytest.raises(holds.UsageError):
            _held(connection, **{"unit": 1, **odd})
        assert _held(connection, 1).unit_id == 1


def test_a_second_call_with_a_reference_returns_the_same_hold(hotel: str) -> None:
    with host_of(hotel) as connection, BackDoor(hotel) as door:
        first = holds.hold(connection, tenant="anna", unit=1, window=QUARTER, reference="r")
        again = holds.hold(connection, tenant="anna", unit=1, window=QUARTER, reference="r")
        assert (first.is_new, again.is_new, again.hold) == (True, False, first.hold)
        with pytest.raises(holds.RefusedByState, match="another unit or stay"):
            _held(connection, 2, reference="r")
        holds.cancel(connection, first.hold.token)
        with pytest.raises(holds.HoldLapsed, match=r"cancelled already; .* Use a new reference"):
            _held(connection, 1, reference="r")
        connection.commit()
        assert statuses(door) == ["cancelled"]


def test_a_stay_in_the_hour_that_a_clock_shows_twice_is_one_of_instants(hotel: str) -> None:
    """The callers' own zone: 02:15 comes after 02:30 there, once a year."""

    def at(minute: int, fold: int) -> datetime:
        return datetime(2031, 10, 26, 2, minute, tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)

    with host_of(hotel) as connection:
        stay = {"starts_at": at(30, 0), "ends_at": at(15, 1)}
        first = _held(connection, 1, reference="r", **stay)
        again = _held(connection, 1, reference="r", **stay)
        assert again == first
        with pytest.raises(holds.UsageError, match="must end after it starts"):
            _held(connection, 2, starts_at=at(15, 1), ends_at=at(30, 0))
        assert holds.still_held(connection, first.token)


class _Shouting(Loader):
    def load(self, data: Any) -> str:
        return "changed by the caller"


class _Mumbling(Dumper):
    def dump(self, obj: Any) -> bytes:
        return b"changed by the caller"


def test_the_callers_session_on_postgres_does_not_matter(postgres_hotel: str) -> None:
    settings = {
        "timezone": "America/St_Johns",
        "datestyle": "German, DMY",
        "intervalstyle": "iso_8601",
        "search_path": '"$user", public',
        "bytea_output": "escape",
        "extra_float_digits": "0",
        "enable_seqscan": "on",
        "plan_cache_mode": "force_generic_plan",
        "client_encoding": "LATIN1",
        "jit": "on",
    }
    with psycopg.connect(postgres_hotel, row_factory=dict_row, prepare_threshold=0) as connection:
        for oid in ("text", "int8", "timestamptz", "uuid", "bool", "json"):
            connection.adapters.register_loader(oid, _Shouting)
        for kind in (str, int, datetime, UUID, list):
            connection.adapters.register_dumper(kind, _Mumbling)
        for name, value in settings.items():
            connection.execute(f"set {name} to '{value}'".encode())
        connection.execute(b'set search_path to "$user", public')
        connection.execute(b"set local work_mem to '5MB'")
        before = _all_settings(connection)
        hold = _held(connection, "room 1", reference="Zoë €")
        with pytest.raises(holds.HoldTaken):
            _held(connection, 1)
        holds.still_held(connection, hold.token)
        assert holds.confirm(connection, hold.token).reference == "Zoë €"
        assert _all_settings(connection) == before
        connection.commit()
        before[b"work_mem"] = b"4096"
        assert _all_settings(connection) == before


def _all_settings(connection: psycopg.Connection[Any]) -> dict[bytes | None, bytes | None]:
    found = connection.pgconn.exec_(b"select name, setting from pg_settings order by name")
    return {found.get_value(n, 0): found.get_value(n, 1) for n in range(found.ntuples)}


def test_the_callers_session_on_sqlite_does_not_matter(sqlite_url: str) -> None:
    prepare(sqlite_url)
    empty(sqlite_url)
    with closing(connect(sqlite_url)) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = bytes
        hold = _held(connection, "room 1", reference="Zoë €")
        with pytest.raises(holds.HoldTaken):
            _held(connection, 1)
        assert holds.still_held(connection, hold.token)
        assert holds.confirm(connection, hold.token).reference == "Zoë €"
        assert (connection.row_factory, connection.text_factory) == (sqlite3.Row, bytes)
        connection.commit()


def test_a_transaction_is_asked_for_in_autocommit_mode(hotel: str) -> None:
    with host_of(hotel) as connection, BackDoor(hotel) as door:
        if door.dialect == "sqlite":
            connection.isolation_level = None
        else:
            connection.autocommit = True
        with pytest.raises(holds.UsageError, match="autocommit"):
            _held(connection, 1)
        connection.execute("begin")
        hold = _held(connection, 1)
        assert statuses(door) == []
        connection.execute("commit")
        assert holds.still_held(connection, hold.token)
        assert statuses(door) == ["held"]


def test_a_pipeline_of_the_callers_serves(postgres_hotel: str) -> None:
    with psycopg.connect(postgres_hotel, cursor_factory=psycopg.ClientCursor) as connection:
        connection.execute("set datestyle to 'German, DMY'")
        with connection.pipeline():
            connection.execute("create temporary table mine (n int)")
            hold = _held(connection, 1)
            with pytest.raises(holds.HoldTaken):
                _held(connection, 1)
            connection.execute("insert into mine values (1)")
        assert holds.still_held(connection, hold.token)


def test_two_callers_in_opposite_order_do_not_hang(postgres_hotel: str) -> None:
    """One of them is told to repeat its transaction; the other one gets both units."""

    def both(first: int, second: int, wire: Wire) -> str:
        with host_of(postgres_hotel) as connection:
            _held(connection, first)
            wire.tell("one")
            wire.wait()
            try:
                _held(connection, second)
            except (holds.DatabaseBusy, holds.HoldTaken) as error:
                connection.rollback()
                return type(error).__name__
            connection.commit()
            return "both"

    with fork(partial(both, 1, 2)) as here, fork(partial(both, 2, 1)) as there:
        for child in (here, there):
            child.wait_for("one")
        for child in (here, there):
            child.go_on()
        ends = sorted(str(child.end().value) for child in (here, there))
    assert ends == ["DatabaseBusy", "both"]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_stricter_isolation_level_serves(postgres_hotel: str, level: str) -> None:
    with host_of(postgres_hotel) as connection, host_of(postgres_hotel) as other:
        connection.execute(f"set transaction isolation level {level}")
        connection.execute("select 1")
        _held(other, 1)
        other.commit()
        with pytest.raises(holds.DatabaseBusy):
            _held(connection, 1)
        connection.rollback()
        with pytest.raises(holds.HoldTaken):
            _held(connection, 1)


def test_other_connections_are_refused_in_a_sentence(sqlite_url: str) -> None:
    with pytest.raises(holds.UsageError, match="sqlite3; object is neither"):
        holds.still_held(object(), UUID(int=1))
    elsewhere = sqlite3.connect(":memory:")
    with closing(elsewhere), pytest.raises(holds.DatabaseError, match="freehold db upgrade"):
        _held(elsewhere, 1)
    assert not sqlite_path(sqlite_url).exists()
