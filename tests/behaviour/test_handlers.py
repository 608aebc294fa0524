"""Python handlers: called with what was released, bounded in time, never paid for by innocents."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from freehold.adapters.system import Onwards
from freehold.application.handling import Pace
from freehold.application.sweep import Sweeper
from freehold.application.work import PassEnd
from freehold.domain.retries import RetryPolicy
from freehold.ports.system import Boundary
from tests.behaviour.hooks import Hook, hooked, noted, worker_of
from tests.behaviour.till import dead, put_holds, status, statuses

if TYPE_CHECKING:
    from tests.behaviour.place import Place

LIMIT = timedelta(seconds=15)
SHORT = timedelta(milliseconds=300)
TWICE = RetryPolicy((timedelta(seconds=10),))


def fail(_: Any) -> None:
    raise LookupError("guest Ada is unknown")


def leave(_: Any) -> None:
    raise SystemExit(3)


def spin(_: Any) -> None:
    while True:
        pass


def test_a_handler_gets_what_was_released_as_it_was_before(place: Place) -> None:
    hook = Hook()
    till = hooked(place, hook, LIMIT, carry=("qty", "note"))
    put_holds(place, range(1, 8), note="n")
    till.scanner.scan(till.rule)
    place.host.run("update hold set status = 'paid' where id = 3")
    assert till.run().released_count == 6
    assert sorted(hook.calls) == ["1", "2", "4", "5", "6", "7"]
    assert noted(place) == [1, 2, 4, 5, 6, 7]
    (first,) = (hold for hold in hook.holds if hold.key == "1")
    assert (first.tenant, first.attempt) == ("t1", 1)
    assert (first.columns["status"], first.columns["token"]) == ("held", "k1")
    assert (first.columns["qty"], first.columns["note"]) == ("1", "n")
    assert first.operation_key.startswith("cart")
    records = place.table("record", "outcome, attempt")
    assert records == [("expired", 1)] * 6 + [("skipped", 1)]


def test_batches_grow_four_times_and_stop_at_the_rules_size(lite: Place) -> None:
    hook = Hook()
    till = hooked(lite, hook, LIMIT, batch_size=20)
    put_holds(lite, range(1, 62))
    till.run()
    assert [len(keys) for keys in hook.batches] == [1, 4, 16, 20, 20]


@pytest.mark.parametrize("act", [fail, leave], ids=["raises", "leaves"])
def test_a_hold_that_its_handler_refuses_stands_alone(place: Place, act: Any) -> None:
    hook = Hook({"9": act})
    till = hooked(place, hook, LIMIT, retry=TWICE)
    put_holds(place, range(1, 31))
    assert till.run().released_count == 29
    till.run_again(1)
    (letter,) = dead(place).values()
    assert (letter.attempt, letter.failure_class) == (2, "broken")
    assert letter.message in ("LookupError: guest Ada is unknown", "SystemExit: 3")
    assert status(place, 9) == "held"
    assert noted(place) == [n for n in range(1, 31) if n != 9]
    assert place.host.run(f"select failure_code from {place.prefix}attempt") == [("HANDLER",)] * 2


def test_a_retry_runs_alone_never_with_fresh_ones(lite: Place) -> None:
    hook = Hook({"2": fail, "4": fail})
    till = hooked(lite, hook, LIMIT)
    put_holds(lite, range(1, 9))
    till.run()
    hook.acts, hook.batches = {}, []
    put_holds(lite, range(20, 24))
    till.run_again(1)
    assert sorted(map(sorted, hook.batches)) == [["2"], ["20", "21", "22", "23"], ["4"]]


def test_a_handler_that_fails_for_every_row_pauses_its_rule(lite: Place) -> None:
    hook = Hook(every=fail)
    till = hooked(lite, hook, LIMIT)
    put_holds(lite, range(1, 31))
    till.scanner.scan(till.rule)
    assert till.worker.work(till.rule).end is PassEnd.PAUSED
    condition, reason = lite.rule("condition, reason")
    assert condition == "paused"
    assert reason.startswith("every row tried was refused: LookupError at test_handlers.py:")
    assert "Ada" not in reason
    assert len(hook.calls) == 3
    assert set(lite.table("operation", "attempt")) == {(0,)}
    assert lite.table("attempt", "attempt") == []
    hook.every = None
    lite.advance(timedelta(minutes=1))
    till.run()
    assert statuses(lite) == {"expired": 30}
    assert lite.rule("condition") == ("active",)


def test_two_rows_are_no_evidence_against_a_rule(lite: Place) -> None:
    till = hooked(lite, Hook(every=fail), LIMIT, retry=TWICE)
    put_holds(lite, [1, 2])
    till.run()
    till.run_again(1)
    assert set(dead(lite)) == {"1", "2"}


def test_a_slow_hold_times_out_alone_and_is_transient(place: Place) -> None:
    hook = Hook({"4": spin})
    till = hooked(place, hook, SHORT, retry=TWICE)
    put_holds(place, range(1, 6))
    assert till.run().released_count == 4
    till.run_again(1)
    (letter,) = dead(place).values()
    assert (letter.attempt, letter.failure_class) == (2, "transient")
    assert letter.message == "the handler ran into its time limit of 0.3 s with 1 hold"
    assert noted(place) == [1, 2, 3, 5]


def test_a_statement_of_a_handler_is_cancelled_at_the_limit(place: Place) -> None:
    sleep = {
        "postgres": "select pg_sleep(60)",
        "sqlite": "with recursive n (i) as (select 1 union all select i + 1 from n) "
        "select max(i) from n",
    }[place.dialect]
    hook = Hook({"1": lambda connection: connection.execute(sleep).fetchall()})
    till = hooked(place, hook, SHORT, retry=TWICE)
    put_holds(place, [1, 2])
    assert till.run().released_count == 1
    assert place.table("operation", "attempt, state, failure_class") == [
        (1, "retrying", "transient")
    ]


def test_a_handler_that_commits_is_broken(place: Place) -> None:
    hook = Hook({"5": lambda connection: connection.commit()})
    till = hooked(place, hook, LIMIT, retry=TWICE)
    put_holds(place, range(1, 11))
    assert till.run().released_count == 9
    till.run_again(1)
    assert "a handler must not commit" in dead(place)["5"].message
    assert status(place, 5) == "held"


def test_a_commit_that_slips_through_pauses_the_rule_and_stays_one_effect(pg: Place) -> None:
    hook = Hook(every=lambda connection: connection.execute("select 1; commit"))
    till = hooked(pg, hook, LIMIT)
    put_holds(pg, range(1, 11))
    till.scanner.scan(till.rule)
    assert till.worker.work(till.rule).end is PassEnd.PAUSED
    assert "the handler ended the transaction" in pg.rule("reason")[0]
    assert len(hook.calls) == len(pg.events()) == 1
    assert pg.ends() == {"expired": 1}


def test_a_deadlock_in_a_handler_is_repeated_and_spends_nothing(pg: Place) -> None:
    left = [1, 1]

    def meet(_: Any) -> None:
        if left:
            left.pop()
            raise RuntimeError from psycopg.errors.DeadlockDetected("deadlock detected")

    till = hooked(pg, Hook(every=meet), LIMIT)
    put_holds(pg, [1, 2])
    assert till.run().released_count == 2
    assert pg.table("record", "attempt") == [(1,), (1,)]


def test_a_handler_that_ends_its_backend_stands_alone(pg: Place) -> None:
    def end(connection: Any) -> None:
        connection.execute("select pg_terminate_backend(pg_backend_pid())")

    till = hooked(pg, Hook({"3": end}), LIMIT, retry=TWICE)
    put_holds(pg, range(1, 8))
    till.run()
    assert statuses(pg) == {"expired": 6, "held": 1}
    assert pg.table("operation", "hold_key, state, attempt") == [("3", "retrying", 1)]
    till.run_again(1)
    assert dead(pg)["3"].attempt == 2
    assert noted(pg) == [1, 2, 4, 5, 6, 7]


def test_a_long_search_for_a_slow_hold_outlives_its_lease(lite: Place) -> None:
    """Each step renews the lease, or the sweep after each commit would take the batch back."""
    hook = Hook({"4": fail}, every=lambda _: lite.advance(timedelta(seconds=20)))
    till = hooked(lite, hook, LIMIT, retry=TWICE)
    other = lite.ledger()

    class SweepOften(Onwards):
        def reach(self, boundary: Boundary) -> None:
            if boundary is Boundary.COMMITTED:
                Sweeper(other, Onwards(), till.scanner).sweep([])

    till.ledger._checkpoint = SweepOften()
    put_holds(lite, range(1, 6))
    till.run()
    assert statuses(lite) == {"expired": 4, "held": 1}
    assert lite.table("operation", "hold_key, state, attempt") == [("4", "retrying", 1)]
    assert set(lite.table("record", "attempt")) == {(1,)}


def test_a_handler_that_catches_a_database_error_is_told_so(place: Place) -> None:
    def swallow(connection: Any) -> None:
        try:
            connection.execute("insert into noted values (1)")
        except (psycopg.Error, sqlite3.Error):
            return

    till = hooked(place, Hook({"2": swallow}), LIMIT, retry=TWICE)
    put_holds(place, [1, 2, 3])
    till.run()
    if place.dialect == "sqlite":
        assert statuses(place) == {"expired": 3}
        return
    (failure,) = place.host.run(f"select failure_message from {place.prefix}attempt")
    assert failure[0].startswith("the handler caught an error of the database")


def test_what_a_handler_leaves_in_its_session_reaches_nobody(place: Place) -> None:
    """Session settings of PostgreSQL stay after COMMIT, and so do SQLite's pragmas and tables."""
    left = {
        "postgres": ["set client_encoding = 'LATIN1'", "select pg_advisory_lock(42)"],
        "sqlite": ["create temp table hold (id)", "pragma query_only = on"],
    }[place.dialect]
    open_cursors = []

    def leave_behind(connection: Any) -> None:
        open_cursors.append(connection.execute("select id from noted"))
        for statement in left:
            connection.execute(statement)

    till = hooked(place, Hook({"1": leave_behind}), LIMIT)
    put_holds(place, range(1, 8), note="\u0416")
    assert till.run().released_count == 7
    if place.dialect == "postgres":
        held = "select count(*) from pg_locks where locktype = 'advisory' and objid = 42"
        assert place.host.run(held) == [(0,)]


def test_a_lapsed_lease_is_fenced(place: Place) -> None:
    """The sweep takes a batch back while its worker stands still: its handler is not called."""
    hook = Hook()
    till = hooked(place, hook, LIMIT)
    put_holds(place, [1])
    till.scanner.scan(till.rule)

    class StandStill(Onwards):
        def reach(self, boundary: Boundary) -> None:
            if boundary is Boundary.LEASE_COMMITTED:
                place.advance(timedelta(minutes=5))
                Sweeper(till.ledger, Onwards(), till.scanner).sweep([till.rule])

    worker_of(till, hook, StandStill()).work(till.rule)
    assert hook.calls == []
    assert place.table("operation", "state, attempt, reason") == [
        (
            "deferred",
            1,
            "its worker was killed or stopped while it had the operation in hand",
        )
    ]
    till.run_again(1)
    assert hook.batches == [["1"]]
    assert place.table("record", "attempt") == [(2,)]


def test_a_process_without_the_handler_releases_nothing(lite: Place) -> None:
    till = hooked(lite, Hook(), LIMIT)
    put_holds(lite, [1])
    till.worker = type(till).open(lite, till.rule).worker
    till.run()
    assert statuses(lite) == {"held": 1}
    assert "which this process did not load" in lite.rule("reason")[0]


def test_the_pace_follows_the_worst_of_the_last_batches() -> None:
    pace = Pace()
    assert pace.size(10) == 1
    pace.note(1, 0.5, failed=False)
    assert pace.size(10) == 4
    pace.note(4, 2.0, failed=False)
    assert pace.size(10) == 16
    pace.note(16, 32.0, failed=False)
    assert pace.size(10) == 5
    pace.note(5, 1.0, failed=False)
    assert pace.size(10) == 6
    pace.note(6, 60.0, failed=True)
    assert pace.size(10) == 1
