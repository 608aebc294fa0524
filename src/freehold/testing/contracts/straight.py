"""The contract of `ports.straight.StraightHolds`: releasing found rows without operation rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from freehold.domain.errors import ChangeLost, DatabaseBusy, RowRefused, RuleRefused
from freehold.domain.expiry import RowAbsence
from freehold.domain.names import digest
from freehold.domain.rules import Companion, Rule
from freehold.ports.holds import FoundHold
from freehold.ports.ledger import Transaction
from freehold.ports.straight import STRAIGHT, ChosenFound, LockedFound
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Ground,
    enqueue,
    new_operation,
    only,
    raised,
    tally_id,
)


class StraightContract:
    """Give the fixture `ground`."""

    def test_named_rows_are_found_as_far_as_they_are_held_and_due(self, ground: Ground) -> None:
        for key, second in ((1, 1), (2, -1), (3, 2), (4, 3)):
            ground.back.add_hold(key, NOW - second * SECOND)
        ground.back.add_hold(5, None)
        ground.back.change_hold(3, "status", "confirmed")
        with ground.open().transaction() as tx:
            straight = tx.straight(ground.rule)
            found = straight.find_named(["1", "2", "3", "5", "6"])
            assert straight.find_named([]) == []
        assert [one.hold_key for one in found] == ["1"]

    def test_named_rows_are_as_a_scan_finds_them(self, ground: Ground) -> None:
        ground.back.add_hold(1, NOW)
        with ground.open().transaction() as tx:
            (scanned,) = tx.holds(ground.rule).find_due(None, 10)
            (named,) = tx.straight(ground.rule).find_named(["1"])
            assert named == scanned
            operation = new_operation(
                ground.rule.name,
                1,
                identity=named.identity,
                digest=digest(ground.rule.name, "1", named.identity),
            )
            tx.operations.enqueue([operation], None)
            (marked,) = tx.straight(ground.rule).find_named(["1"])
        assert (named.is_open, marked.is_open) == (False, True)

    def test_a_row_as_it_was_found_draws_an_id_of_its_own(self, ground: Ground) -> None:
        found = _found(ground, 1, 2)
        ledger = ground.open()
        with ledger.transaction() as tx:
            first = tx.straight(ground.rule).lock_found(found)
        enqueue(ledger, new_operation(ground.rule.name, 3))
        with ledger.transaction() as tx:
            second = tx.straight(ground.rule).lock_found(found)
        ids = [one.operation_id for one in (*first, *second)]
        ids.append(only(ground.back.rows("operation"))["id"])
        assert None not in ids
        assert len(set(ids)) == 5

    def test_a_row_that_changed_draws_none(self, ground: Ground) -> None:
        found = _found(ground, 1, 2, 3, 4)
        ground.back.change_hold(1, "token", "other")
        ground.back.change_hold(2, "status", "confirmed")
        ground.back.remove_hold(3)
        with ground.open().transaction() as tx:
            locked = _by_key(tx.straight(ground.rule).lock_found(found))
        assert [locked[key].operation_id is None for key in "1234"] == [True, True, True, False]
        assert [locked[key].absence for key in "1234"] == [None, None, RowAbsence.GONE, None]

    def test_a_found_row_that_the_host_holds_is_passed_over(self, ground: Ground) -> None:
        found = _found(ground, 1, 2)
        ledger = ground.open()
        with ground.back.lock_hold(1):
            if not ground.transactions_overlap():
                with raised(DatabaseBusy), ledger.transaction():
                    pass
                return
            with ledger.transaction() as tx:
                locked = _by_key(tx.straight(ground.rule).lock_found(found))
        assert locked["1"].absence is RowAbsence.LOCKED_BY_HOST
        assert locked["1"].operation_id is None
        assert locked["2"].operation_id is not None

    def test_a_missing_column_refuses_to_lock_found_rows(self, ground: Ground) -> None:
        found = _found(ground, 1)
        ground.back.break_table()
        with raised(RuleRefused), ground.open().transaction() as tx:
            tx.straight(ground.rule).lock_found(found)

    def test_a_straight_release_writes_row_record_and_event(self, ground: Ground) -> None:
        found = _found(ground, 1)
        with ground.open().transaction() as tx:
            tick = tx.ticks.start("s", NOW, "one", NOW)
            assert tick is not None
            (chosen,) = _release(tx, ground.rule, found, tick.id)
        record = only(ground.back.rows("record"))
        event = only(ground.back.rows("outbox"))
        assert ground.back.hold(1) == {"status": "expired", "tenant": "t", "token": "a"}
        assert (record["outcome"], record["reason"]) == ("expired", STRAIGHT)
        assert (record["generation"], record["attempt"]) == (1, 1)
        assert (record["tally_id"], record["tick_id"]) == (chosen.tally_id, tick.id)
        assert record["before_image"]["status"] == "held"
        assert (record["found_at"], record["finished_at"], event["at"]) == (NOW, NOW, NOW)
        assert (event["type"], event["carry"]) == ("hold.expired.v1", {"tenant": "t"})
        for name in ("operation_id", "digest", "due_at", "generation", "hold_key", "tenant"):
            assert record[name] == event[name]
        assert ground.back.rows("operation") == []

    def test_a_straight_release_that_is_suppressed_is_lost(self, ground: Ground) -> None:
        self._assert_refused(ground, ground.back.suppress_changes, ChangeLost)

    def test_a_straight_release_that_is_taken_back_is_lost(self, ground: Ground) -> None:
        self._assert_refused(ground, ground.back.restore_changes, ChangeLost)

    def test_a_straight_release_that_is_refused_is_lost(self, ground: Ground) -> None:
        self._assert_refused(ground, ground.back.refuse_changes, RowRefused)

    def _assert_refused(
        self, ground: Ground, prepare: Callable[[], None], kind: type[RowRefused]
    ) -> None:
        found = _found(ground, 1, 2)
        prepare()
        with raised(kind), ground.open().transaction() as tx:
            _release(tx, ground.rule, found)
        assert ground.back.rows("record") == []
        assert ground.back.rows("outbox") == []

    def test_companions_run_once_for_each_row_on_their_side(self, ground: Ground) -> None:
        sql = "insert into companion_note (side, id, status) values ({!r}, :id, :status)"
        companions = tuple(
            Companion(sql.format(side), 1, 1, before=side == "before", lock_by="id")
            for side in ("after", "before")
        )
        found = _found(ground, 2, 1)
        with ground.open().transaction() as tx:
            _release(tx, replace(ground.rule, companions=companions), found)
        notes = [(row["side"], row["id"], row["status"]) for row in ground.back.rows("note")]
        assert notes == [(side, key, "held") for side in ("before", "after") for key in ("1", "2")]

    def test_a_wrong_count_of_a_companion_loses_the_straight_release(self, ground: Ground) -> None:
        companion = Companion("delete from companion_note where id = :id", 1, 1)
        found = _found(ground, 1)
        with raised(RowRefused), ground.open().transaction() as tx:
            _release(tx, replace(ground.rule, companions=(companion,)), found)
        assert ground.back.rows("record") == []


def _found(ground: Ground, *keys: int) -> Sequence[FoundHold]:
    for key in keys:
        ground.back.add_hold(key, NOW - SECOND)
    with ground.open().transaction() as tx:
        return tx.holds(ground.rule).find_due(None, 100)


def _release(
    tx: Transaction, rule: Rule, found: Sequence[FoundHold], tick_id: int | None = None
) -> Sequence[ChosenFound]:
    """Go through a straight release as the application does."""
    straight = tx.straight(rule)
    tally = tally_id(tx, rule.name)
    chosen = [
        ChosenFound(
            one.found,
            one.operation_id,
            digest(rule.name, one.found.hold_key, one.found.identity),
            NOW - SECOND,
            tally,
        )
        for one in straight.lock_found(found)
        if one.operation_id is not None
    ]
    straight.run_companions_of(chosen, before=True)
    straight.release_found(chosen, tick_id)
    straight.run_companions_of(chosen, before=False)
    return chosen


def _by_key(locked: Sequence[LockedFound]) -> dict[str, LockedFound]:
    return {one.found.hold_key: one for one in locked}
