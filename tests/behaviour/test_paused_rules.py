"""A rule that fails as a whole is paused with its reason, buries nothing, and resumes by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards, SystemClock
from freehold.application.rulestate import PROBE_FIRST
from freehold.application.schedule import Scheduler
from freehold.application.work import PassEnd
from freehold.domain.rules import Companion, TableName
from tests.behaviour.till import (
    Till,
    cart,
    dead,
    open_table,
    put_holds,
    refuse,
    statuses,
)

if TYPE_CHECKING:
    from tests.behaviour.place import Place
    from tests.servers import PostgresServer

BREAKS = {
    "dropped column": (
        "alter table hold rename column token to removed",
        "alter table hold rename column removed to token",
        "has no column token",
    ),
    "renamed table": (
        "alter table hold rename to holds",
        "alter table holds rename to hold",
        "is not there",
    ),
}


def _nothing_was_spent(place: Place) -> None:
    assert place.table("attempt", "attempt") == []
    assert dead(place) == {}
    assert {row[0] for row in place.table("operation", "attempt")} <= {0}


@pytest.mark.parametrize("kind", BREAKS)
def test_a_broken_mapping_pauses_the_rule_alone(place: Place, kind: str) -> None:
    break_sql, mend_sql, reason = BREAKS[kind]
    open_table(place)
    put_holds(place, range(1, 21))
    place.host.run("create table other as select * from hold")
    place.host.run("create unique index other_id on other (id)")
    till = Till.open(place, cart(place))
    other = Till.open(place, cart(place, name="other", table=TableName("other")))
    till.scanner.scan(till.rule)
    place.host.run(break_sql)

    assert till.worker.work(till.rule).end is PassEnd.PAUSED
    assert place.rule("condition, probe_at") == ("paused", _stored(place, PROBE_FIRST))
    assert reason in str(place.rule("reason")[0])
    assert other.run().released_count == 20
    till.run_again(3, after=timedelta(minutes=6))
    _nothing_was_spent(place)
    assert place.rule("condition, probe_count") == ("paused", 4)

    place.host.run(mend_sql)
    till.run_again(1, after=timedelta(minutes=6))
    assert statuses(place) == {"expired": 20}
    assert place.rule("condition, reason, probe_count") == ("active", None, 0)


def _stored(place: Place, ahead: timedelta) -> object:
    at = place.clock.at + ahead
    return at if place.dialect == "postgres" else at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_a_scan_that_meets_a_broken_mapping_pauses_too(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 4))
    till = Till.open(place, cart(place))
    scheduler = Scheduler(till.ledger, till.scanner, SystemClock(), "one", Onwards())
    till.run()
    place.host.run("alter table hold rename column token to removed")

    assert scheduler.fire(till.rule).paused
    assert place.rule("condition") == ("paused",)
    place.host.run("alter table hold rename column removed to token")
    till.run_again(1, after=timedelta(minutes=6))
    assert place.rule("condition") == ("active",)


def test_a_revoked_right_pauses_even_while_nothing_is_due(
    pg: Place, postgres: PostgresServer
) -> None:
    open_table(pg)
    put_holds(pg, range(1, 11))
    till = Till.open(pg, cart(pg))
    till.scanner.scan(till.rule)
    pg.host.run("revoke update on hold from app")

    assert till.worker.work(till.rule).end is PassEnd.PAUSED
    assert pg.rule("condition, reason") == ("paused", "permission denied for table hold")
    pg.host.run("delete from freehold.operation")
    till.run_again(3, after=timedelta(minutes=6))
    assert pg.rule("condition") == ("paused",)
    _nothing_was_spent(pg)

    pg.host.run("grant update on hold to app")
    till.run_again(1, after=timedelta(minutes=6))
    assert pg.rule("condition") == ("active",)
    till.run_again(1)
    assert statuses(pg) == {"expired": 10}


def test_a_constraint_that_every_row_meets_pauses_the_rule(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 101))
    if place.dialect == "postgres":
        place.host.run("alter table hold add constraint no check (status <> 'expired') not valid")
    else:
        refuse(place, "new.status = 'expired'", "CHECK no", name="no")
    till = Till.open(place, cart(place))

    till.run()
    condition, reason = place.rule("condition, reason")
    assert condition == "paused"
    assert reason.startswith("every row tried was refused: ")
    assert "no" in reason
    till.run_again(4, after=timedelta(minutes=6))
    _nothing_was_spent(place)
    assert statuses(place) == {"held": 100}

    mend = (
        "alter table hold drop constraint no" if place.dialect == "postgres" else "drop trigger no"
    )
    place.host.run(mend)
    till.run_again(1, after=timedelta(minutes=6))
    assert statuses(place) == {"expired": 100}
    assert place.rule("condition, reason") == ("active", None)


def test_old_poison_is_no_evidence_against_the_rule(place: Place) -> None:
    """Three rows fail for their own reason, whatever fails beside them."""
    open_table(place)
    put_holds(place, range(1, 4))
    refuse(place, "new.id <= 3", "own reason")
    till = Till.open(place, cart(place))
    assert till.run().total == 0
    assert place.rule("condition") == ("paused",)  # three of three: it looks like the rule

    put_holds(place, range(11, 41))
    till.run_again(1, after=timedelta(minutes=6))
    assert place.rule("condition") == ("active",)
    assert statuses(place) == {"expired": 30, "held": 3}
    till.run_again(5)
    assert {letter.attempt for letter in dead(place).values()} == {6}
    assert place.rule("condition") == ("active",)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("update stock set free = free + :quantity", "no column of hold"),
        ("update stok set free = free + :qty", "stok"),
    ],
)
def test_a_companion_that_cannot_run_pauses_the_rule(place: Place, sql: str, reason: str) -> None:
    open_table(place)
    place.host.run("create table stock (id int primary key, free int)")
    put_holds(place, range(1, 3))
    till = Till.open(place, cart(place, companions=(Companion(sql),)))
    if reason == "stok":
        till.run()
    else:
        assert till.worker.work(till.rule).end is PassEnd.PAUSED
    condition, why = place.rule("condition, reason")
    assert condition == "paused"
    assert reason in why
    _nothing_was_spent(place)


def test_a_pause_gives_leased_work_back(place: Place) -> None:
    open_table(place)
    put_holds(place, range(1, 11))
    till = Till.open(place, cart(place))
    till.scanner.scan(till.rule)
    place.host.run(f"update {place.prefix}rule_state set leased = true, batch_limit = 22")
    place.host.run("alter table hold rename column token to removed")

    assert till.worker.work(till.rule).end is PassEnd.PAUSED
    _nothing_was_spent(place)
    assert {row[0] for row in place.table("operation", "state")} <= {"ready", "deferred"}
    place.host.run("alter table hold rename column removed to token")
    till.run_again(1, after=timedelta(minutes=6))
    assert statuses(place) == {"expired": 10}
    assert place.table("record", "attempt") == [(1,)] * 10
