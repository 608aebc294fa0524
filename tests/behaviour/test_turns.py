"""Turns between tenants: whoever has a backlog, the holds of others are found at once, and all are."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.system import Onwards
from freehold.application.scan import BACKLOG_BATCHES, Scanner
from tests.behaviour.place import NOON
from tests.behaviour.plans import explained
from tests.behaviour.till import Till, cart, hold, open_table, put_holds, statuses, wall

if TYPE_CHECKING:
    from tests.behaviour.place import Place

BATCH = 50
TENTH = timedelta(milliseconds=100)
GIANT = 1_500


def _open(place: Place, columns: str = "tenant, due, id") -> None:
    open_table(place)
    if columns:
        place.host.run(f"create index hold_turns on hold ({columns}) where status = 'held'")


def _giant(place: Place, count: int = GIANT, tenant: str = "giant") -> None:
    """Give one tenant so many holds, due within the second before eleven."""
    series = (
        f"generate_series(1, {count}) s (n)"
        if place.dialect == "postgres"
        else f"(with recursive s (n) as (select 1 union all select n + 1 from s where n < {count}) "
        "select n from s) s"
    )
    at = wall(NOON - timedelta(hours=1)) + ("+00" if place.dialect == "postgres" else "")
    place.host.run(
        "insert into hold (id, tenant, status, token, due) "
        f"select 100000 + n, '{tenant}', 'held', 'k', '{at}' from {series}"
    )


def _till(place: Place) -> Till:
    return Till.open(place, cart(place, batch_size=BATCH))


def _found(place: Place) -> Counter[str | None]:
    rows = place.host.run(f"select tenant from {place.prefix}operation")
    return Counter(row[0] for row in rows)


def test_others_are_found_in_the_first_scan_of_a_giants_backlog(place: Place) -> None:
    _open(place)
    _giant(place)
    put_holds(place, range(1, 6), tenant="a", due=NOON - timedelta(minutes=1))
    put_holds(place, range(6, 8), tenant=None, due=NOON - timedelta(minutes=1))
    till = _till(place)
    till.scanner.scan(till.rule)
    found = _found(place)
    assert (found["a"], found[None]) == (5, 2)
    assert found["giant"] <= (BACKLOG_BATCHES + 2) * BATCH


def test_what_falls_due_meanwhile_is_found_within_a_tenth_of_a_second(place: Place) -> None:
    _open(place)
    _giant(place)
    till = _till(place)
    till.scanner.scan(till.rule)
    for number in range(1, 6):
        put_holds(place, [number], tenant=f"t{number}", due=place.clock.at + TENTH / 2)
        place.advance(TENTH)
        till.scanner.scan(till.rule)
        assert _found(place)[f"t{number}"] == 1
    assert _found(place)["giant"] < GIANT


def test_giants_share_a_page_equally(place: Place) -> None:
    _open(place)
    for number in range(3):
        series = [100_000 * number + n for n in range(1, 401)]
        put_holds(place, series, tenant=f"g{number}")
    till = _till(place)
    for _ in range(3):
        till.scanner.scan(till.rule)
        while till.worker.work(till.rule).batch.total:
            pass
        place.advance(TENTH)
    ended = Counter(t for (t,) in place.host.run(f"select tenant from {place.prefix}record"))
    assert sum(ended.values()) < 1_200
    assert max(ended.values()) - min(ended.values()) <= 3 * BATCH


def test_without_the_index_others_wait_until_the_backlog_is_worked_off(place: Place) -> None:
    """Fairness within the look-ahead only, as doctor says; all are found in the order of due."""
    _open(place, columns="")
    _giant(place)
    put_holds(place, range(1, 6), tenant="a", due=NOON - timedelta(minutes=1))
    till = _till(place)
    till.scanner.scan(till.rule)
    assert _found(place) == {"giant": 20 * BATCH}
    till.run()
    assert statuses(place) == {"expired": GIANT + 5}


@pytest.mark.parametrize(
    ("columns", "count"),
    [
        ("tenant, due, id", 500),
        ("tenant, due", 500),
        pytest.param("tenant, due, id", GIANT, marks=pytest.mark.proof),
        pytest.param("tenant, due", GIANT, marks=pytest.mark.proof),
    ],
)
def test_a_backlog_is_worked_off_whole_and_once(place: Place, columns: str, count: int) -> None:
    _open(place, columns)
    _giant(place, count)
    put_holds(place, range(1, 100), tenant="a")
    put_holds(place, range(200, 300), tenant=None)
    assert _till(place).run().released_count == count + 199
    assert statuses(place) == {"expired": count + 199}
    assert len(place.events()) == len(set(place.events())) == count + 199


def test_a_dead_head_of_one_tenant_keeps_nobody_waiting(place: Place) -> None:
    """Open rows are read over by turns too, and those behind them are found."""
    _open(place)
    put_holds(place, range(1, 301), tenant="dead")
    till = _till(place)
    while not till.scanner.scan(till.rule).finished:
        place.host.run(f"update {place.prefix}operation set state = 'dead', reason = 'broken'")
        place.advance(TENTH)
    place.host.run(f"update {place.prefix}operation set state = 'dead', reason = 'broken'")
    put_holds(place, range(301, 311), tenant="dead")
    put_holds(place, [900], tenant="late")
    place.advance(timedelta(seconds=20))
    till.worker.forget_floors()
    assert till.run().released_count == 11


@pytest.mark.parametrize("examples", [6, pytest.param(25, marks=pytest.mark.proof)])
def test_every_due_hold_is_found_once_whatever_comes_between(place: Place, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(data=st.data())
    def try_out(data: st.DataObject) -> None:
        _find_all(place, data)

    _open(place)
    place.advance(TENTH)
    try_out()


def _find_all(place: Place, data: st.DataObject) -> None:
    """Holds of any tenant, due then or later, are written and committed at any moment of a pass."""
    _start_over(place)
    till = Till.open(place, cart(place, batch_size=10))
    tenants = st.sampled_from(["giant", "giant", "giant", "a", "b", "c", "", None])
    number = 0
    for _ in range(data.draw(st.integers(1, 6), "turns")):
        rows = data.draw(st.lists(st.tuples(tenants, st.integers(-3_000, 500)), max_size=60))
        for tenant, milliseconds in rows:
            number += 1
            due = place.clock.at + timedelta(milliseconds=milliseconds)
            put_holds(place, [number], tenant=tenant, due=due)
        till.scanner.scan(till.rule, None, data.draw(st.integers(1, 4), "pages"))
        if data.draw(st.booleans(), "work"):
            till.worker.work(till.rule)
        place.advance(timedelta(milliseconds=data.draw(st.integers(0, 400), "pause")))
    place.advance(timedelta(seconds=1))
    till.run()
    place.advance(timedelta(seconds=20))  # the walk finds what was written after its due
    till.run()
    assert place.host.run("select count(*) from hold where status = 'held'") == [(0,)]
    events = place.events()
    assert len(events) == len(set(events)) == number


def _start_over(place: Place) -> None:
    """Empty the table and the ledger for one more example."""
    place.host.run("delete from hold")
    for table in ("operation", "record", "outbox", "tally", "rule_state", "attempt"):
        place.host.run(f"delete from {place.prefix}{table}")


@pytest.mark.parametrize(
    ("statistics", "where"),
    [
        ("none", " where status = 'held'"),
        ("stale", ""),
        ("fresh", ""),
        pytest.param("stale", " where status = 'held'", marks=pytest.mark.proof),
        pytest.param("fresh", " where status = 'held'", marks=pytest.mark.proof),
        pytest.param("none", "", marks=pytest.mark.proof),
    ],
)
def test_the_steps_go_by_the_index_whatever_the_statistics_say(
    place: Place, statistics: str, where: str
) -> None:
    open_table(place)
    place.host.run("create index hold_tenant on hold (tenant, id)")
    place.host.run(f"create index hold_turns on hold (tenant, due, id){where}")
    analyse = "vacuum analyze" if place.dialect == "postgres" else "analyze"
    if statistics == "stale":
        place.host.run(analyse)
    _giant(place, 20_000)
    place.host.insert("hold", [_expired(place, number) for number in range(1, 2_000)])
    if statistics == "fresh":
        place.host.run(analyse)
    session = explained(place)
    rule = cart(place, batch_size=BATCH)
    scanner = Scanner(SqlLedger(session, Onwards()), Onwards())
    scanner.scan(rule)
    place.advance(TENTH)
    scanner.scan(rule)
    for name in ("find_tenants", "find_due_of_tenants"):
        own = {
            plan for plan in session.plans[name] if plan.startswith("hold_") or plan == "all of h"
        }
        assert own == {"hold_turns"}, (name, session.plans[name])


def _expired(place: Place, number: int) -> dict[str, object]:
    row = hold(number, tenant=f"t{number % 100}", status="expired")
    return {**row, "due": str(row["due"]) + ("+00" if place.dialect == "postgres" else "")}
