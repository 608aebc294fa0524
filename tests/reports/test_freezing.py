"""Facts are what an independent count of the raw tables says, and are frozen once."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.sql.sqlite import SqliteSession
from freehold.adapters.system import Onwards, SystemClock
from freehold.application.reporting.freezing import Freezer, notes_of
from freehold.domain.facts_text import canonical, facts_digest, read_facts
from freehold.domain.inventory import NewUnit, Tenant, built_in_rule
from freehold.domain.reports import NOBODY, ReportPolicy, ReportReason
from freehold.domain.rules import Mode
from freehold.ports.reports import RuleNote
from freehold.ports.system import Boundary
from freehold.ports.telemetry import DatabaseTrouble, FactsFrozen
from freehold.testing.crash import KillAt
from freehold.testing.forking import Wire, fork, run
from tests.behaviour.plans import name_of
from tests.behaviour.till import Till, cart, open_table, put_holds, refuse
from tests.reports.ledgers import DAY, FIRST, ODD_NAMES, MadeUp, close, day_window
from tests.reports.recount import recount, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from freehold.adapters.sql.session import Row
    from freehold.domain.facts import Facts
    from freehold.ports.system import Checkpoint
    from freehold.ports.telemetry import Event
    from tests.behaviour.place import Place

ITEMS_MAX = 5
POLICY = ReportPolicy("reports@example.org", items_max=ITEMS_MAX)
NOTES = {"cart": RuleNote(60.0, "$room"), "holds": RuleNote(0.05, "unit_id", own_units=True)}
DAYS = [FIRST + n * DAY for n in (0, 1, 2, 7)]


class Heard:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, event: Event) -> None:
        self.events.append(event)


def freezer(place: Place, checkpoint: Checkpoint | None = None) -> Freezer:
    checkpoint = checkpoint or Onwards()
    return Freezer(place.ledger(checkpoint), POLICY, NOTES, checkpoint)


def kept(place: Place) -> list[Facts]:
    """Read the facts that the tables keep, each checked against its digest."""
    found = []
    for row in sorted(rows_of(place, "report"), key=lambda one: one["id"]):
        if row["facts"] is not None:
            assert facts_digest(row["facts"].encode()) == row["facts_digest"]
            assert canonical(read_facts(row["facts"])).decode() == row["facts"]
            found.append(read_facts(row["facts"]))
    return found


def close_days(place: Place, tenants: tuple[str, ...], days: list[date]) -> None:
    ledger = place.ledger()
    for number in range((days[-1] - days[0]).days + 1):
        close(ledger, tenants, days[0] + number * DAY)


def test_facts_equal_a_recount_of_random_ends(place: Place) -> None:
    tenants = [Tenant(name, f"House {name}") for name in ODD_NAMES[1:4]]
    with place.ledger().transaction() as tx:
        tx.tenants.add(tenants)
        tx.units.add([NewUnit(one.id, f"Room {n}") for n, one in enumerate(tenants)])
    made_up = MadeUp(place, seed=7)
    made_up.at_random(ODD_NAMES, DAYS[:3], 400)
    made_up.write()
    close_days(place, ODD_NAMES, DAYS)
    assert freezer(place).freeze() == len(ODD_NAMES) * 8
    found = kept(place)
    assert found == list(recount(place, NOTES, ITEMS_MAX))
    assert any(one.late and one.late[0].report_date is None for one in found)
    assert {"Room 1", "1", "77"} <= {item.unit for one in found for item in one.items}
    assert {one.tenant_name for one in found} > {NOBODY, "House t1", "{brace}"}
    assert sum(len(one.items) for one in found) > ITEMS_MAX * 20


def test_what_the_database_refuses_keeps_no_other_report_waiting(place: Place) -> None:
    tenants = tuple(f"t{number:02}" for number in range(25))
    bad_skips = {"postgres": '{"renewed": "many"}', "sqlite": "no JSON"}[place.dialect]
    made_up = MadeUp(place, seed=8)
    for name in tenants:
        made_up.tell("cart", name, day_window(FIRST).start_at, 1)
    made_up.write()
    spoil = f"update {place.prefix}tally set skipped = '{{}}' where tenant = 't07'"
    place.host.run(spoil.format(bad_skips))
    close_days(place, tenants, [FIRST])
    heard = Heard()
    one = Freezer(place.ledger(), POLICY, NOTES, Onwards(), heard)
    assert one.freeze() == 24
    assert [told.loop for told in heard.events if isinstance(told, DatabaseTrouble)] == [
        "freeze facts"
    ]
    close_days(place, tenants, [FIRST + DAY])
    heard.events.clear()
    assert one.freeze() == 25
    assert [type(told) for told in heard.events] == [FactsFrozen, DatabaseTrouble]
    place.host.run(spoil.format("{}"))
    assert one.freeze() == 1
    assert kept(place) == list(recount(place, NOTES, ITEMS_MAX))


def test_late_ends_are_in_the_next_report(place: Place) -> None:
    close_days(place, ("t1",), [FIRST])
    made_up = MadeUp(place, seed=8)
    for second, released in ((-1, 1), (5, 2), (86_400, 3)):
        at = day_window(FIRST).start_at + timedelta(seconds=second)
        made_up.tell("cart", "t1", at, released, skipped=1)
    made_up.write()
    close(place.ledger(), (), FIRST + DAY)
    freezer(place).freeze()
    found = kept(place)
    assert found == list(recount(place, NOTES, ITEMS_MAX))
    late = [(one.report_date, one.released_count, one.skipped_count) for one in found[1].late]
    assert late == [(None, 1, 1), (FIRST, 2, 1)]
    assert found[1].released_count == 3


def test_what_lies_between_two_reports_has_no_day(place: Place) -> None:
    close_days(place, ("t1",), [FIRST])
    place.host.run(f"delete from {place.prefix}report_calendar")
    made_up = MadeUp(place, seed=8)
    made_up.tell("cart", "t1", day_window(FIRST + DAY).start_at, released=2)
    made_up.write()
    close(place.ledger(), ("t1",), FIRST + 2 * DAY)
    freezer(place).freeze()
    found = kept(place)
    assert found == list(recount(place, NOTES, ITEMS_MAX))
    assert [(one.report_date, one.released_count) for one in found[1].late] == [(None, 2)]


def test_each_mode_is_counted(place: Place) -> None:
    open_table(place)
    first = 0
    for mode in Mode:
        rule = cart(place, name=mode.value, mode=mode, unit="stock_id")
        till = Till.open(place, rule)
        put_holds(place, range(first, first + 4), stock_id=first)
        put_holds(place, range(first + 4, first + 6), stock_id=None, tenant="t2")
        till.run()
        first += 10
    rule = cart(place, unit="stock_id")
    put_holds(place, range(first, first + 6), stock_id=3)
    till = Till.open(place, rule)
    till.scanner.scan(rule)
    place.host.run(f"update hold set token = 'x' where id = {first}")
    place.host.run(f"update hold set status = 'paid' where id = {first + 1}")
    place.host.run(f"delete from hold where id = {first + 2}")
    refuse(place, f"new.id = {first + 3}", "no")
    till.run()
    till.run_again(5)
    place.advance(DAY)
    day = place.clock.at.date() - DAY
    close(place.ledger(), ("t1", "t2"), day)
    notes = notes_of([rule, *(replace(rule, name=mode.value) for mode in Mode)])
    Freezer(place.ledger(), POLICY, notes, Onwards()).freeze()
    found = kept(place)
    assert found == list(recount(place, notes, ITEMS_MAX))
    counted = {one.rule: one for one in found[0].rules}
    assert {rule: one.released_count for rule, one in counted.items()} == {
        **{mode.value: 4 for mode in Mode},
        "cart": 3,
    }
    assert {counted[mode.value].unit_count for mode in Mode} == {1}
    assert [one.unit_count for one in found[1].rules] == [2, 2, 2]
    assert sum(counted["cart"].skipped.values()) == 3
    assert (counted["cart"].dead_count, counted["cart"].oldest_due_at) == (1, None)


def test_one_giant_among_many_leaves_the_database_as_sums(place: Place) -> None:
    made_up = MadeUp(place, seed=9)
    at = day_window(FIRST).start_at
    for number in range(300):
        made_up.tell("cart", "giant", at + timedelta(seconds=number), released=20)
    for number in range(60):
        made_up.tell("cart", f"t{number}", at, released=1)
    made_up.write()
    tenants = ("giant", *(f"t{number}" for number in range(60)))
    close(place.ledger(), tenants, FIRST)
    heard = Heard()
    assert Freezer(place.ledger(), POLICY, NOTES, Onwards(), heard).freeze() == 61
    found = kept(place)
    assert found == list(recount(place, NOTES, ITEMS_MAX))
    pages = [one.frozen_count for one in heard.events if isinstance(one, FactsFrozen)]
    assert pages == ([61] if place.dialect == "postgres" else [50, 11])


def test_what_is_missed_ends_with_its_facts(place: Place) -> None:
    ledger = place.ledger()
    close(ledger, ("t1",), FIRST, ReportReason.MISSED)
    close(ledger, (), FIRST + DAY)
    freezer(place).freeze()
    ends = [(row["state"], row["ended_at"] is None) for row in rows_of(place, "report")]
    assert ends == [("skipped", False), ("frozen", True)]


def test_a_second_freeze_changes_nothing(place: Place) -> None:
    _some_days(place)
    freezer(place).freeze()
    before = rows_of(place, "report")
    place.advance(DAY)
    assert freezer(place).freeze() == 0
    assert rows_of(place, "report") == before


@pytest.mark.timeout(method="signal")  # forks: no second thread may be alive
def test_a_killed_freeze_is_repeated_with_the_same_facts(place: Place) -> None:
    _some_days(place)
    for boundary in (Boundary.FACTS_FROZEN, Boundary.BEFORE_COMMIT):

        def freeze(wire: Wire, boundary: Boundary = boundary) -> None:
            freezer(place, KillAt(1, boundary, wire.tell)).freeze()

        assert run(freeze).was_killed
        _wait_until_alone(place)
        assert kept(place) == []
    freezer(place).freeze()
    first = kept(place)
    _forget(place)
    place.advance(timedelta(hours=1))
    freezer(place).freeze()
    again = kept(place)
    assert [replace(one, frozen_at=place.clock.at) for one in first] == again
    assert first != again


@pytest.mark.timeout(method="signal")  # forks: no second thread may be alive
def test_two_freezers_at_once_freeze_each_report_once(pg: Place) -> None:
    _some_days(pg)
    with fork(lambda wire: freezer(pg, _Standing(wire)).freeze()) as other:
        other.wait_for("frozen, not committed")
        assert freezer(pg).freeze() == 0  # all of them are in its hand
        other.go_on()
        other.end()
    assert len(kept(pg)) == len(rows_of(pg, "report"))
    assert kept(pg) == list(recount(pg, NOTES, ITEMS_MAX))


def test_the_built_in_rule_names_its_units(place: Place) -> None:
    rule = built_in_rule(place.dialect)
    assert notes_of([rule]) == {"holds": RuleNote(60.0, "unit_id", own_units=True)}
    assert "unit_id" in rule.mapped_columns


def test_counting_takes_no_write_lock_where_one_writer_keeps_others_waiting(lite: Place) -> None:
    _some_days(lite)
    session = _Noting(lite.target, SystemClock(), clock=lite.clock)
    assert Freezer(SqlLedger(session, Onwards()), POLICY, NOTES, Onwards()).freeze()
    session.close()
    assert session.under_lock == {"freeze_facts"}


def test_a_unit_may_be_named_while_operations_are_ready(place: Place) -> None:
    open_table(place)
    put_holds(place, [1], stock_id=4)
    without, with_unit = cart(place), cart(place, unit="stock_id")
    assert without.fingerprint == with_unit.fingerprint
    Till.open(place, without).scanner.scan(without)
    assert Till.open(place, with_unit).run().released_count == 1
    (record,) = rows_of(place, "record")
    assert record["before_image"]["stock_id"] == "4"
    assert record["attempt"] == 1


class _Noting(SqliteSession):
    """Notes the statements that ran while others could not write."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.under_lock: set[str | None] = set()
        self._reads = False

    def begin(self, *, read_only: bool = False) -> datetime:
        self._reads = read_only
        return super().begin(read_only=read_only)

    def run(self, sql: str, parameters: Mapping[str, Any]) -> tuple[list[Row], int]:
        self.under_lock |= set() if self._reads else {name_of("sqlite", sql)}
        return super().run(sql, parameters)

    def run_many(self, sql: str, rows: Sequence[Row], parameters: Mapping[str, Any]) -> int:
        self.under_lock.add(name_of("sqlite", sql))
        return super().run_many(sql, rows, parameters)


class _Standing:
    """Stands with the facts written and not committed until it is told to go on."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def reach(self, boundary: Boundary) -> None:
        if boundary is Boundary.FACTS_FROZEN:
            self._wire.tell("frozen, not committed")
            self._wire.wait()


def _some_days(place: Place) -> None:
    made_up = MadeUp(place, seed=10)
    made_up.at_random(ODD_NAMES[:4], DAYS[:2], 40)
    made_up.write()
    close_days(place, ODD_NAMES[:4], DAYS[:2])


def _forget(place: Place) -> None:
    place.host.run(
        f"update {place.prefix}report set state = 'assigned', facts = null, facts_digest = null"
    )


def _wait_until_alone(place: Place) -> None:
    """The server notices a moment late that a process was killed, and holds its locks until then."""
    while place.dialect == "postgres" and place.host.run(
        "select 1 from pg_stat_activity, pg_sleep(0.001) where application_name = 'freehold' "
        "and datname = current_database() and state <> 'idle'"
    ):
        pass
