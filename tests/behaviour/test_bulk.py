"""A backlog goes in bulk, a page a statement; what is not plain goes the usual way, in its turn."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from freehold.adapters.sql.session import Limits
from freehold.adapters.sql.statements import load, to_psycopg
from freehold.application.audit import audit
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.names import digest
from freehold.domain.rules import DeleteRow, Mode, Rule, TableName
from freehold.ports.guards import GuardKind
from freehold.ports.system import Boundary
from freehold.testing.crash import Recorder
from tests.behaviour.till import (
    Till,
    cart,
    dead,
    on_change,
    open_table,
    put_holds,
    refuse,
    statuses,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.behaviour.place import Place

MODES = pytest.mark.parametrize("mode", [Mode.DIRECT, Mode.WINDOW])


def bulky(place: Place, **changes: Any) -> Rule:
    return cart(place, **{"mode": Mode.DIRECT, "batch_size": 10, **changes})


def counted(till: Till) -> list[int]:
    """Keep the size of each stretch that is released in bulk."""
    counts: list[int] = []
    compiled = till.ledger.session.run

    def run(sql: str, parameters: Any) -> Any:
        rows, count = compiled(sql, parameters)
        if sql.startswith("with page as"):
            counts.append(len(rows))
        return rows, count

    till.ledger.session.run = run  # type: ignore[method-assign]
    return counts


def assert_clean(till: Till) -> None:
    found = audit(till.ledger, (till.rule,))
    assert not [one for one in found if not one.clean]


@MODES
def test_a_backlog_goes_in_bulk_behind_its_first_page(pg: Place, mode: Mode) -> None:
    open_table(pg)
    put_holds(pg, range(1, 46))
    till = Till.open(pg, bulky(pg, mode=mode))
    counts = counted(till)
    till.run()
    assert counts == [10, 10, 10, 5]
    assert statuses(pg) == {"expired": 45}
    assert pg.ends()["straight"] == 45
    assert_clean(till)


@MODES
def test_what_a_bulk_leaves_is_met_by_the_next_page(pg: Place, mode: Mode) -> None:
    open_table(pg)
    put_holds(pg, range(1, 61))
    host = pg.door()
    host.run("begin")
    host.run("select 1 from hold where id = 25 for update")
    till = Till.open(pg, bulky(pg, mode=mode))
    counts = counted(till)
    till.run()
    assert counts[:2] == [10, 9]
    assert statuses(pg) == {"expired": 59, "held": 1}
    assert pg.table("operation", "hold_key, reason") == [("25", "busy")]
    host.run("rollback")
    till.run_again(1)
    assert statuses(pg) == {"expired": 60}
    assert_clean(till)


@MODES
def test_a_poison_row_in_a_bulk_is_found(pg: Place, mode: Mode) -> None:
    open_table(pg)
    put_holds(pg, range(1, 61))
    refuse(pg, "new.id = 25", "no")
    till = Till.open(pg, bulky(pg, mode=mode))
    till.run()
    till.run_again(6)
    assert list(dead(pg)) == ["25"]
    assert statuses(pg) == {"expired": 59, "held": 1}
    assert_clean(till)


def test_rows_that_a_trigger_restores_are_found(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 41))
    on_change(
        pg,
        "restore",
        "begin update hold set status = 'held' where id = new.id; return null; end",
        "new.id = 25 and new.status = 'expired'",
        time="after",
    )
    till = Till.open(pg, bulky(pg))
    till.run()
    till.run_again(6)
    assert list(dead(pg)) == ["25"]
    assert_clean(till)


@pytest.mark.parametrize("again", ["renewed", "granted anew"])
def test_a_row_that_changes_while_the_bulk_runs_is_left(pg: Place, again: str) -> None:
    """The host changes a row between the statement's snapshot and its lock on that row.

    Granted anew with the identity that was released meanwhile, it looks the same: only its version
    tells, for the record of the release is not in the snapshot.
    """
    open_table(pg)
    put_holds(pg, range(1, 21))
    wait = "begin perform pg_advisory_xact_lock(7); return new; end"
    on_change(pg, "wait", wait, "new.id = 11 and new.status = 'expired'")
    host, other = pg.door(), Till.open(pg, bulky(pg))
    till = Till.open(pg, bulky(pg), limits=Limits(lock_timeout_ms=25_000))
    host.run("begin")
    host.run("select pg_advisory_xact_lock(7)")
    scan = threading.Thread(target=till.scanner.scan, args=(till.rule,))
    scan.start()
    try:
        _until(lambda: bool(pg.host.run("select 1 from pg_locks where not granted")))
        _change_12(pg, other, again)
    finally:
        host.run("commit")
        scan.join()
    till.run()
    ends = pg.host.run("select count(*) from freehold.record where hold_key = '12'")
    assert ends == ([(0,)] if again == "renewed" else [(1,)])
    assert statuses(pg) == {"expired": 19, "held": 1}
    assert_clean(till)


def _change_12(place: Place, other: Till, again: str) -> None:
    """Change the row, and leave it held."""
    if again == "renewed":
        place.host.run("update hold set token = 'new', due = 'infinity' where id = 12")
        return
    with other.ledger.transaction() as tx:
        straight = tx.straight(other.rule)
        found = [(row, place.clock.at) for row in straight.find_named(["12"])]
        other.straight.release(tx, other.rule, found, None)
    place.host.run("update hold set status = 'held' where id = 12")


def _until(holds: Callable[[], bool]) -> None:
    """Ask until the server says so; the other side is on its way there."""
    for _ in range(100_000):
        if holds():
            return
    raise AssertionError("it never came so far")


def test_a_mass_is_weighed_before_a_row_of_it_goes_in_bulk(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, (1,))
    till = Till.open(pg, bulky(pg, batch_size=100))
    till.run()
    pg.clock.at += timedelta(hours=2)
    till.run()
    put_holds(pg, range(1_000, 3_000), due=pg.clock.at - timedelta(hours=1))
    put_holds(pg, range(3_000, 3_010))
    pg.clock.at += timedelta(seconds=16)
    till.run()
    with till.ledger.transaction() as tx:
        (guard,) = tx.guards.standing()
    assert guard.kind is GuardKind.MASS
    assert statuses(pg) == {"expired": 1, "held": 2_010}


def test_old_rows_whose_records_may_be_gone_go_the_usual_way(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 41), due=pg.clock.at - timedelta(days=8))
    till = Till.open(pg, bulky(pg))
    counts = counted(till)
    till.run()
    assert set(counts) == {0}
    assert statuses(pg) == {"expired": 40}


@pytest.mark.parametrize("what", ["view", "parts", "date", "local time"])
def test_other_tables_and_dues_go_the_usual_way(pg: Place, what: str) -> None:
    open_table(pg)
    rule = bulky(pg)
    if what == "view":
        pg.host.run("create view held as select * from hold")
        rule = replace(rule, table=TableName("held"))
    elif what == "parts":
        pg.host.run("create table elsewhere () inherits (hold)")
    else:
        kind = DueKind.DATE if what == "date" else DueKind.NAIVE
        pg.host.run(
            "alter table hold alter column due type "
            f"{'date' if what == 'date' else 'timestamp'} using due at time zone 'UTC'"
        )
        rule = replace(rule, due=DueSpec("due", kind, "Europe/Berlin"))
    put_holds(pg, range(1, 41), due=pg.clock.at - timedelta(days=2))
    till = Till.open(pg, rule)
    counts = counted(till)
    till.run()
    assert counts == []
    assert statuses(pg) == {"expired": 40}


def test_rows_of_utc_walls_and_deleted_rows_go_in_bulk(pg: Place) -> None:
    open_table(pg)
    pg.host.run("alter table hold alter column due type timestamp using due at time zone 'UTC'")
    rule = bulky(pg, due=DueSpec("due", DueKind.NAIVE, "UTC"))
    put_holds(pg, range(1, 31))
    till = Till.open(pg, replace(rule, action=DeleteRow()))
    counts = counted(till)
    till.run()
    assert counts == [10, 10, 0]
    assert statuses(pg) == {}
    assert pg.host.run(
        "select distinct due_at - finished_at <= '-59 min' from freehold.record"
    ) == [(True,)]
    assert_clean(till)


def test_a_bulk_reaches_its_boundary(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 21))
    recorder = Recorder()
    Till.open(pg, bulky(pg), recorder).run()
    assert recorder.reached.count(Boundary.RELEASED) == 3


def test_a_digest_is_the_same_in_both_spellings(pg: Place) -> None:
    text = f"select {load('postgres')['digest_expression']} from (values (:key, :identity)) p"
    query = to_psycopg(f"{text} (hold_key, identity)").encode()
    connection = pg.door().connection
    odd = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))

    @settings(max_examples=300, database=None, deadline=None)
    @given(odd, odd, odd)
    @example("r", "".join(map(chr, range(1, 0x300))), '\u2028\uffff"\\/\U0010ffff')
    def same(rule: str, key: str, identity: str) -> None:
        said = {"rule": rule, "key": key, "identity": identity}
        assert connection.execute(query, said).fetchone() == (digest(rule, key, identity),)

    same()
