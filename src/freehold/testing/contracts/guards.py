"""The contracts of `ports.guards`: guards, pauses, and what the clocks said."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from freehold.domain.operations import OperationState
from freehold.domain.pauses import Pause, Role
from freehold.ports.holds import ScanCursor, Weighing, Weight
from freehold.ports.ledger import GuardKind, Ledger, Put, RuleCondition, RuleState
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Abandoned,
    Ground,
    enqueue,
    new_operation,
    only,
    raised,
)

PAUSE = Pause(Role.WORK, "r", "t", "ann", "stocktaking", NOW, NOW + 60 * SECOND)
ACTIVE = RuleState("r", "f", RuleCondition.ACTIVE)


class GuardsContract:
    """Give the fixture `ground`."""

    def test_a_guard_trips_once_and_stands(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            assert tx.guards.trip(GuardKind.MASS, "r", "too many", {"share": 0.8})
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            assert not tx.guards.trip(GuardKind.MASS, "r", "still too many", {})
            (guard,) = tx.guards.standing()
        assert (guard.kind, guard.rule, guard.reason) == (GuardKind.MASS, "r", "too many")
        assert (guard.tripped_at, guard.figures) == (NOW, {"share": 0.8})
        assert (guard.released_at, guard.released_by) == (None, None)

    def test_guards_of_other_rules_and_kinds_stand_beside_it(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            assert tx.guards.trip(GuardKind.MASS, "r", "why", {})
            assert tx.guards.trip(GuardKind.MASS, "q", "why", {})
            assert tx.guards.trip(GuardKind.CLOCK, None, "why", {})
            found = [(one.kind, one.rule) for one in tx.guards.standing()]
        assert found == [
            (GuardKind.MASS, "r"),
            (GuardKind.MASS, "q"),
            (GuardKind.CLOCK, None),
        ]

    def test_a_released_guard_stands_no_longer(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            tx.guards.trip(GuardKind.CLOCK, None, "why", {})
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            number = tx.guards.standing()[0].id
            assert tx.guards.release(number, "ann", "mended")
            assert not tx.guards.release(number, "bob", "again")
            assert list(tx.guards.standing()) == []
            newest = tx.guards.newest(GuardKind.CLOCK)
        assert newest is not None
        assert (newest.released_at, newest.released_by) == (NOW + SECOND, "ann")
        assert newest.released_reason == "mended"

    def test_the_newest_of_a_kind_is_told(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            assert tx.guards.newest(GuardKind.CLOCK) is None
            for reason in ("first", "second"):
                tx.guards.trip(GuardKind.CLOCK, None, reason, {})
                tx.guards.release(tx.guards.standing()[0].id, None, "over")
            tx.guards.trip(GuardKind.MASS, "r", "another", {})
            newest = tx.guards.newest(GuardKind.CLOCK)
        assert newest is not None
        assert (newest.reason, newest.released_by) == ("second", None)

    def test_a_trip_goes_with_its_transaction(self, ground: Ground) -> None:
        with raised(Abandoned), ground.open().transaction() as tx:
            tx.guards.trip(GuardKind.CLOCK, None, "why", {})
            raise Abandoned
        assert ground.back.rows("guard") == []

    def test_the_state_of_a_rule_names_its_guards(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            tx.rules.write(ACTIVE)
            tx.guards.trip(GuardKind.MASS, "q", "another's", {})
            assert tx.rules.read("r") == ACTIVE
            tx.guards.trip(GuardKind.MASS, "r", "its own", {})
            tx.guards.trip(GuardKind.CLOCK, None, "everybody's", {})
            state = tx.rules.read("r")
        assert state is not None
        assert [one.reason for one in state.guards] == ["its own", "everybody's"]
        assert state.guard == "its own"


class PausesContract:
    """Give the fixture `ground`."""

    def test_a_pause_is_kept_whole(self, ground: Ground) -> None:
        everywhere = Pause(Role.SCAN, None, None, "bob", "why", NOW)
        with ground.open().transaction() as tx:
            tx.pauses.begin(PAUSE)
            tx.pauses.begin(everywhere)
            assert list(tx.pauses.open()) == [PAUSE, everywhere]

    def test_what_is_paused_takes_another_reason_and_end(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            tx.pauses.begin(PAUSE)
        ground.set_now(NOW + SECOND)
        later = replace(PAUSE, by="bob", reason="longer", until=None, paused_at=NOW + SECOND)
        with ledger.transaction() as tx:
            tx.pauses.begin(later)
            assert list(tx.pauses.open()) == [replace(later, paused_at=NOW)]

    def test_only_exactly_that_pause_ends(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            tx.pauses.begin(PAUSE)
            assert not tx.pauses.end(Role.SCAN, "r", "t")
            assert not tx.pauses.end(Role.WORK, None, "t")
            assert not tx.pauses.end(Role.WORK, "r", None)
            assert tx.pauses.end(Role.WORK, "r", "t")
            assert not tx.pauses.end(Role.WORK, "r", "t")
            assert list(tx.pauses.open()) == []
        assert only(ground.back.rows("pause"))["ended_at"] == NOW

    def test_one_that_is_over_is_open_until_somebody_ends_it(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            tx.pauses.begin(PAUSE)
        ground.set_now(NOW + 60 * SECOND)
        with ledger.transaction() as tx:
            (found,) = tx.pauses.open()
            assert not found.stands(tx.now)

    def test_the_state_of_a_rule_names_its_pauses(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            tx.rules.write(ACTIVE)
            tx.pauses.begin(replace(PAUSE, rule="q"))
            assert tx.rules.read("r") == ACTIVE
            tx.pauses.begin(PAUSE)
            tx.pauses.begin(Pause(Role.SCAN, None, None, "bob", "why", NOW))
            state = tx.rules.read("r")
        assert state is not None
        assert [one.rule for one in state.pauses] == ["r", None]
        assert state.pause_of(Role.SCAN, NOW) == state.pauses[1]
        assert state.paused_tenants(NOW, Role.WORK) == {"t"}

    def test_a_pause_of_reports_touches_no_rule(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            tx.rules.write(ACTIVE)
            tx.pauses.begin(Pause(Role.REPORT, None, "t", "ann", "dispute", NOW))
            assert tx.rules.read("r") == ACTIVE
            assert [one.role for one in tx.pauses.open()] == [Role.REPORT]
            assert tx.pauses.end(Role.REPORT, None, "t")

    def test_operations_put_off_as_paused_are_brought_back(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, *(new_operation("r", key) for key in range(1, 4)))
        enqueue(ledger, new_operation("r", 4, tenant="u"), new_operation("q", 5))
        with ledger.transaction() as tx:
            for rule in ("r", "q"):
                claims = tx.operations.claim(rule, 10, None)
                until = tx.now + timedelta(hours=1)
                tx.operations.put_off([Put(one.id, "paused", until, 0) for one in claims])
        with ledger.transaction() as tx:
            assert tx.operations.bring_back("r", "t", 2) == 2
            assert tx.operations.bring_back("r", "t", 2) == 1
            assert tx.operations.bring_back("r", "t", 2) == 0
            assert sorted(one.hold_key for one in tx.operations.claim("r", 9, None)) == [
                "1",
                "2",
                "3",
            ]
            assert list(tx.operations.claim("q", 9, None)) == []
        states = {row["hold_key"]: row["state"] for row in ground.back.rows("operation")}
        assert states["1"] == OperationState.READY
        assert states["4"] == OperationState.DEFERRED

    def test_what_was_put_off_for_another_reason_stays(self, ground: Ground) -> None:
        ledger = ground.open()
        enqueue(ledger, new_operation("r", 1))
        with ledger.transaction() as tx:
            (claim,) = tx.operations.claim("r", 1, None)
            tx.operations.put_off([Put(claim.id, "busy", tx.now + SECOND, 1)])
            assert tx.operations.bring_back("r", "t", 9) == 0


class HostClocksContract:
    """Give the fixture `ground`."""

    def test_a_process_that_watches_no_clock_reads_none(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            assert tx.clocks.reading is None
            tx.clocks.trust()
            tx.clocks.note()
            assert tx.clocks.base is None
            assert list(tx.clocks.noted()) == []

    def test_a_reading_is_of_its_transaction(self, ground: Ground) -> None:
        ledger = ground.open_on("alpha")
        with ledger.transaction() as tx:
            reading = tx.clocks.reading
            assert reading is not None
            assert (reading.host, reading.database_at, reading.host_at) == ("alpha", NOW, NOW)
            assert reading.asked_seconds <= reading.answered_seconds
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            reading = tx.clocks.reading
            assert reading is not None
            assert reading.database_at == NOW + SECOND

    def test_a_connection_keeps_the_reading_that_it_trusted(self, ground: Ground) -> None:
        ledger, other = ground.open_on("alpha"), ground.open_on("alpha")
        with ledger.transaction() as tx:
            assert tx.clocks.base is None
            first = tx.clocks.reading
            tx.clocks.trust()
        with ledger.transaction() as tx:
            assert tx.clocks.base == first
        with other.transaction() as tx:
            assert tx.clocks.base is None

    def test_notes_come_with_the_own_host_first(self, ground: Ground) -> None:
        for second, host in enumerate(("alpha", "beta", "gamma")):
            ground.set_now(NOW + second * SECOND)
            with ground.open_on(host).transaction() as tx:
                tx.clocks.note()
        for host, names in (
            ("alpha", ["alpha", "gamma"]),
            ("gamma", ["gamma", "beta"]),
            ("new", ["gamma"]),
        ):
            with ground.open_on(host).transaction() as tx:
                assert [one.host for one in tx.clocks.noted()] == names

    def test_a_later_note_stands_for_the_earlier_one(self, ground: Ground) -> None:
        ledger = ground.open_on("alpha")
        for second in range(2):
            ground.set_now(NOW + second * SECOND)
            with ledger.transaction() as tx:
                tx.clocks.note()
        with ledger.transaction() as tx:
            (note,) = tx.clocks.noted()
        assert (note.database_at, note.host_at) == (NOW + SECOND, NOW + SECOND)

    def test_old_notes_go_when_another_is_written(self, ground: Ground) -> None:
        for day, host in enumerate(("old", "alpha", "alpha", "beta")):
            ground.set_now(NOW + timedelta(days=day))
            with ground.open_on(host).transaction() as tx:
                tx.clocks.note()
        hosts = [row["host"] for row in ground.back.rows("host_clock")]
        assert hosts == ["alpha", "beta"]

    def test_notes_can_be_forgotten(self, ground: Ground) -> None:
        with ground.open_on("alpha").transaction() as tx:
            tx.clocks.note()
            tx.clocks.forget()
            assert list(tx.clocks.noted()) == []


class SeenContract:
    """How far a rule was seen. Give the fixture `ground`."""

    def test_a_whole_reading_says_how_far_a_rule_was_seen(self, ground: Ground) -> None:
        ledger = _met(ground)
        assert _seen(ledger) == (None, None)
        with ledger.transaction() as tx:
            tx.rules.note_pass("r", NOW, whole=False)
        assert _seen(ledger) == (None, None)
        with ledger.transaction() as tx:
            tx.rules.note_pass("r", NOW, whole=True)
        assert _seen(ledger) == (NOW, None)

    def test_later_passes_go_on_from_it(self, ground: Ground) -> None:
        ledger = _met(ground)
        with ledger.transaction() as tx:
            tx.rules.note_pass("r", NOW, whole=True)
            tx.rules.note_pass("r", NOW + SECOND, whole=False)
            tx.rules.note_pass("r", NOW, whole=False)
        assert _seen(ledger) == (NOW + SECOND, None)

    def test_a_rule_is_unsettled_until_a_whole_reading_began_since(self, ground: Ground) -> None:
        ledger = _met(ground)
        with ledger.transaction() as tx:
            tx.rules.note_pass("r", NOW - 9 * SECOND, whole=True)
            tx.rules.unsettle("q")
            tx.rules.unsettle("r")
            tx.rules.note_pass("r", NOW - SECOND, whole=True)
            tx.rules.note_pass("r", NOW + SECOND, whole=False)
        assert _seen(ledger) == (NOW - 9 * SECOND, NOW)
        with ledger.transaction() as tx:
            tx.rules.note_pass("r", NOW, whole=True)
        assert _seen(ledger) == (NOW, None)

    def test_all_rules_can_be_unsettled(self, ground: Ground) -> None:
        ledger = _met(ground)
        with ledger.transaction() as tx:
            tx.rules.unsettle(None)
        assert _seen(ledger) == (None, NOW)

    def test_writing_a_state_leaves_it_alone(self, ground: Ground) -> None:
        ledger = _met(ground)
        with ledger.transaction() as tx:
            tx.rules.note_pass("r", NOW, whole=True)
            tx.rules.write(replace(ACTIVE, batch_limit=3))
        assert _seen(ledger) == (NOW, None)


class WeighingContract:
    """Give the fixture `ground`."""

    def test_overdue_rows_without_an_operation_are_weighed(self, ground: Ground) -> None:
        for key in range(1, 5):
            ground.back.add_hold(key, NOW - 100 * SECOND)
        ground.back.add_hold(5, NOW - SECOND)
        ground.back.add_hold(6, None)
        ground.back.add_hold(7, NOW + SECOND)
        ground.back.change_hold(4, "status", "confirmed")
        with ground.open().transaction() as tx:
            weight = tx.holds(ground.rule).weigh(None, Weighing(NOW - 10 * SECOND, 100))
        assert weight == Weight(3, 0.5)

    def test_what_is_open_was_seen(self, ground: Ground) -> None:
        ledger = ground.open()
        ground.back.add_hold(1, NOW - 100 * SECOND)
        with ledger.transaction() as tx:
            (found,) = tx.holds(ground.rule).find_due(None, 10)
            one = new_operation("r", 1)
            tx.operations.enqueue([replace(one, identity=found.identity)], None)
        ground.back.add_hold(2, NOW - 100 * SECOND)
        with ledger.transaction() as tx:
            weight = tx.holds(ground.rule).weigh(None, Weighing(NOW, 100))
        assert weight == Weight(1, 0.5)

    def test_rows_of_left_out_tenants_count_as_held_only(self, ground: Ground) -> None:
        for key in range(1, 5):
            ground.back.add_hold(key, NOW - 100 * SECOND)
        ground.back.change_hold(1, "tenant", "u")
        wanted = Weighing(NOW, 100, without=["u", "v"])
        with ground.open().transaction() as tx:
            assert tx.holds(ground.rule).weigh(None, wanted) == Weight(3, 0.75)

    def test_the_share_is_looked_for_beyond_a_count(self, ground: Ground) -> None:
        for key in range(1, 5):
            ground.back.add_hold(key, NOW - 100 * SECOND)
        with ground.open().transaction() as tx:
            holds = tx.holds(ground.rule)
            assert holds.weigh(None, Weighing(NOW, 100, beyond=4)) == Weight(4, 0.0)
            assert holds.weigh(None, Weighing(NOW, 100, beyond=3)) == Weight(4, 1.0)

    def test_both_sides_of_a_place_are_looked_at_up_to_a_limit(self, ground: Ground) -> None:
        for key in range(1, 10):
            ground.back.add_hold(key, NOW - (100 - key) * SECOND)
        with ground.open().transaction() as tx:
            holds = tx.holds(ground.rule)
            middle = holds.find_due(None, 5)[-1]
            place = ScanCursor(middle.due or "", middle.hold_key)
            assert holds.weigh(place, Weighing(NOW, 100)).count == 9
            assert holds.weigh(place, Weighing(NOW, 2)).count == 4

    def test_a_share_beyond_the_limit_is_sampled(self, ground: Ground) -> None:
        for key in range(1, 101):
            ground.back.add_hold(key, NOW + (-100 if key % 4 else 100) * SECOND)
        with ground.open().transaction() as tx:
            weight = tx.holds(ground.rule).weigh(None, Weighing(NOW, 10))
        assert weight.count == 10
        assert abs(weight.share - 0.75) < 0.05


def _met(ground: Ground) -> Ledger:
    ledger = ground.open()
    with ledger.transaction() as tx:
        tx.rules.write(ACTIVE)
    return ledger


def _seen(ledger: Ledger) -> tuple[object, object]:
    with ledger.transaction() as tx:
        state = tx.rules.read("r")
    assert state is not None
    return state.scanned_at, state.unsettled_at
