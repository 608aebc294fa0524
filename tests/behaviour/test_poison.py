"""Rows that the database refuses: they stand alone in review, and delay nobody."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.sql.session import Limits
from freehold.domain.retries import RetryPolicy
from tests.behaviour.place import NOON
from tests.behaviour.till import (
    Dead,
    Till,
    attempts,
    cart,
    dead,
    on_change,
    open_table,
    put_holds,
    refuse,
    status,
    statuses,
)

if TYPE_CHECKING:
    from tests.behaviour.place import Place


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(RetryPolicy((timedelta(seconds=10),)), id="two attempts"),
        pytest.param(RetryPolicy(), id="six attempts", marks=pytest.mark.proof),
    ],
)
def test_300_poison_rows_at_the_head_delay_nobody(place: Place, policy: RetryPolicy) -> None:
    open_table(place)
    put_holds(place, range(1, 1_001))
    refuse(place, "new.id <= 300", "the host says no")
    till = Till.open(place, cart(place, retry=policy))

    assert till.run().released_count == 700
    assert statuses(place) == {"expired": 700, "held": 300}
    till.run_again(len(policy.delays))
    letters = dead(place)
    assert set(letters) == {str(n) for n in range(1, 301)}
    assert set(letters.values()) == {Dead(policy.attempts_max, "broken", "the host says no")}
    assert attempts(place) == {str(n): policy.attempts_max for n in range(1, 301)}

    put_holds(place, range(2_001, 2_051), due=place.clock.at)
    place.advance(timedelta(seconds=3))
    assert till.scanner.scan(till.rule).new_count == 50
    assert till.worker.work(till.rule).batch.released_count == 50
    assert statuses(place) == {"expired": 750, "held": 300}


def test_four_kinds_of_poison_in_one_batch(place: Place) -> None:
    """Scenario N5: one row of each kind of refusal among 200."""
    open_table(place)
    place.host.run("create table allowed (status text, kind text, primary key (status, kind))")
    place.host.run("insert into allowed values ('held', 'x'), ('held', 'y'), ('expired', 'y')")
    _make_poison(place)
    put_holds(place, (n for n in range(1, 201) if n != 57), note="y")
    put_holds(place, [57], note="x")
    till = Till.open(place, cart(place))

    assert till.run().released_count == 196
    assert place.table("operation", "hold_key, state, attempt") == [
        (key, "retrying", 1) for key in ("120", "166", "57", "91")
    ]
    till.run_again(5)
    letters = dead(place)
    assert set(letters) == {"57", "91", "120", "166"}
    assert {letter.attempt for letter in letters.values()} == {6}
    assert "foreign key" in letters["57"].message.lower()
    assert letters["91"].message == "row 91 says no"
    assert "check constraint" in letters["120"].message.lower()
    too_long = "value too long" if place.dialect == "postgres" else "check constraint failed"
    assert too_long in letters["166"].message.lower()
    assert not any(
        "k91" in letter.message or "k57" in letter.message for letter in letters.values()
    )
    assert place.ends() == {"expired": 196}
    assert len(place.events()) == 196


def _make_poison(place: Place) -> None:
    refuse(place, "new.id = 91", "row 91 says no")
    long = "'much longer than twenty letters'"
    if place.dialect == "postgres":
        place.host.run(
            "alter table hold add foreign key (status, note) references allowed (status, kind)"
        )
        place.host.run("alter table hold add check (id <> 120 or status <> 'expired')")
        on_change(place, "too_long", f"begin new.note := {long}; return new; end", "new.id = 166")
        return
    place.host.run("drop table hold")
    place.host.run(
        "create table hold (id integer primary key, tenant text, status text not null, token text, "
        "due text, note text check (length(note) <= 20), foreign key (status, note) references "
        "allowed (status, kind), check (id <> 120 or status <> 'expired'))"
    )
    refuse(place, "new.id = 91", "row 91 says no")
    place.host.run(
        "create trigger too_long after update on hold when new.id = 166 "
        f"begin update hold set note = {long} where id = 166; end"
    )


@pytest.mark.parametrize("ticks", [300, pytest.param(1_000, marks=pytest.mark.proof)])
def test_ticks_over_a_row_that_cannot_expire(place: Place, ticks: int) -> None:
    """Scenario N6: six attempts in all, and no tick costs more than another."""
    open_table(place)
    put_holds(place, [1])
    refuse(place, "new.id = 1", "never")
    till = Till.open(place, cart(place))
    run, statements = till.ledger.session.run, Counter[int]()

    def counted(sql: str, parameters: Any) -> Any:
        statements[tick] += 1
        return run(sql, parameters)

    till.ledger.session.run = counted  # type: ignore[method-assign]
    for tick in range(ticks):  # noqa: B007  # `counted` reads it
        place.advance(timedelta(seconds=20))
        till.scanner.scan(till.rule)
        till.worker.work(till.rule)
    late = {statements[tick] for tick in range(ticks // 2, ticks)}
    assert len(late) == 1
    assert late.pop() <= 10
    assert dead(place) == {"1": Dead(6, "broken", "never")}
    assert attempts(place) == {"1": 6}
    assert place.ends() == {}


def test_a_constraint_that_fails_only_at_commit(place: Place) -> None:
    open_table(place)
    deferred = "deferrable initially deferred"
    place.host.run("create table receipt (id integer primary key)")
    place.host.run("insert into receipt values (1)")
    place.host.run(f"create table slip (hold_id int, receipt int references receipt {deferred})")
    write = "insert into slip values (new.id, case when new.id = 7 then 99 else 1 end)"
    if place.dialect == "postgres":
        on_change(place, "slip", f"begin {write}; return new; end")
    else:
        place.host.run(f"create trigger slip after update on hold begin {write}; end")
    put_holds(place, range(1, 21))
    till = Till.open(place, cart(place))

    assert till.run().released_count == 19
    assert status(place, 7) == "held"
    till.run_again(5)
    assert set(dead(place)) == {"7"}
    assert dead(place)["7"].attempt == 6
    assert "foreign key" in dead(place)["7"].message.lower()
    assert len(place.events()) == 19


SUPPRESSED = "a trigger, rule or policy suppressed the change"
RESTORED = "a trigger restored"


@pytest.mark.parametrize("kind", ["suppresses", "reverts before", "reverts after"])
def test_a_trigger_that_undoes_the_change(place: Place, kind: str) -> None:
    open_table(place)
    put_holds(place, range(1, 11))
    _make_undoing_trigger(place, kind)
    till = Till.open(place, cart(place))

    assert till.run().released_count == 9
    assert status(place, 4) == "held"
    assert "4" not in place.events()
    assert place.ends() == {"expired": 9}
    till.run_again(5)
    letter = dead(place)["4"]
    restores = kind != "suppresses" and (place.dialect, kind) != ("sqlite", "reverts before")
    assert letter.message.startswith(RESTORED if restores else SUPPRESSED)
    assert (letter.attempt, letter.failure_class) == (6, "broken")
    assert place.rule("condition") == ("active",)


def _make_undoing_trigger(place: Place, kind: str) -> None:
    put_back = "update hold set status = 'held' where id = 4 and status = 'expired'"
    if place.dialect == "postgres":
        body, time = {
            "suppresses": ("begin return null; end", "before"),
            "reverts before": ("begin new.status := old.status; return new; end", "before"),
            "reverts after": (f"begin {put_back}; return null; end", "after"),
        }[kind]
        on_change(place, "undo", body, "new.id = 4 and new.status = 'expired'", time)
        return
    time, body = {
        "suppresses": ("before", "select raise(ignore)"),
        # SQLite cannot write `new`: the nearest thing is to refuse the one column's change.
        "reverts before": ("before", "select raise(ignore)"),
        "reverts after": ("after", put_back),
    }[kind]
    place.host.run(
        f"create trigger undo {time} update of status on hold when new.id = 4 begin {body}; end"
    )


def test_a_trigger_whose_error_looks_like_a_broken_schema_stands_alone(place: Place) -> None:
    """One row's trigger misses a table: that says nothing about the rule and its other rows."""
    open_table(place)
    put_holds(place, range(1, 11))
    if place.dialect == "postgres":
        on_change(place, "miss", "begin delete from not_there; return new; end", "new.id = 4")
    else:
        place.host.run("create table not_there (id integer)")
        overflow = "select abs(-9223372036854775808)"  # the nearest thing that fails as SQL does
        place.host.run(
            f"create trigger miss before update on hold when new.id = 4 begin {overflow}; end"
        )
    till = Till.open(place, cart(place))

    assert till.run().released_count == 9
    assert place.rule("condition") == ("active",)
    till.run_again(5)
    assert dead(place)["4"].attempt == 6


def test_a_statement_time_out_halves_the_batch(pg: Place) -> None:
    place = pg
    open_table(place)
    put_holds(place, range(1, 41))
    on_change(place, "slow", "begin perform pg_sleep(0.4); return new; end", "new.id = 9")
    on_change(place, "drowsy", "begin perform pg_sleep(0.004); return new; end")
    till = Till.open(place, cart(place), limits=Limits(statement_timeout_ms=120))

    assert till.run().released_count == 39
    assert place.table("operation", "hold_key, state, attempt, failure_class") == [
        ("9", "retrying", 1, "transient")
    ]
    assert place.table("attempt", "failure_class, failure_code") == [("transient", "57014")]
    assert set(place.host.run("select attempt from freehold.record")) == {(1,)}
    assert place.host.run("select min(finished_at) from freehold.record") == [(NOON,)]


def test_a_trigger_without_end_times_out_on_sqlite_too(lite: Place) -> None:
    place = lite
    open_table(place)
    put_holds(place, range(1, 41))
    endless = (
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    )
    place.host.run(f"create view endless as {endless}")
    place.host.run(
        "create trigger slow before update on hold when new.id = 9 begin select * from endless; end"
    )
    till = Till.open(place, cart(place), limits=Limits(statement_timeout_ms=60))

    assert till.run().released_count == 39
    assert place.table("operation", "hold_key, state, attempt, failure_class") == [
        ("9", "retrying", 1, "transient")
    ]
