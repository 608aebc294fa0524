"""The contract of `ports.holds.Holds`: finding, locking and releasing the host's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from freehold.domain.due import read_due
from freehold.domain.errors import ChangeLost, DatabaseAway, DatabaseBusy, RowRefused, RuleRefused
from freehold.domain.expiry import RowAbsence
from freehold.domain.names import digest, unpack
from freehold.domain.operations import NewOperation
from freehold.domain.rules import Companion, Rule
from freehold.ports.holds import Chosen, FoundHold, LockedHold, ScanCursor
from freehold.ports.ledger import Ledger, Transaction
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Ground,
    only,
    raised,
    tally_id,
)


class FindingContract:
    """Give the fixture `ground`."""

    def test_due_rows_come_in_the_order_of_due_and_key(self, ground: Ground) -> None:
        for key, second in ((3, 2), (1, 2), (2, 1), (4, 9)):
            ground.back.add_hold(key, NOW - second * SECOND)
        with ground.open().transaction() as tx:
            found = tx.holds(ground.rule).find_due(None, 10)
        assert [one.hold_key for one in found] == ["4", "1", "3", "2"]

    def test_pages_follow_the_cursor(self, ground: Ground) -> None:
        for key in range(1, 6):
            ground.back.add_hold(key, NOW - (key // 2) * SECOND)
        with ground.open().transaction() as tx:
            holds = tx.holds(ground.rule)
            first = holds.find_due(None, 3)
            after = ScanCursor(first[-1].due or "", first[-1].hold_key)
            rest = holds.find_due(after, 3)
        assert [one.hold_key for one in first] == ["4", "5", "2"]
        assert [one.hold_key for one in rest] == ["3", "1"]

    def test_only_held_and_due_rows_are_found(self, ground: Ground) -> None:
        ground.back.add_hold(1, NOW)
        ground.back.add_hold(2, NOW + SECOND)
        ground.back.add_hold(3, NOW - SECOND)
        ground.back.change_hold(3, "status", "confirmed")
        ground.back.add_hold(4, None)
        with ground.open().transaction() as tx:
            assert [one.hold_key for one in tx.holds(ground.rule).find_due(None, 10)] == ["1"]

    def test_open_rows_are_included_and_marked(self, ground: Ground) -> None:
        ledger = ground.open()
        ground.back.add_hold(1, NOW - SECOND)
        _enqueue_found(ledger, ground.rule)
        ground.back.add_hold(2, NOW)
        with ledger.transaction() as tx:
            found = tx.holds(ground.rule).find_due(None, 10)
        assert [(one.hold_key, one.is_open) for one in found] == [("1", True), ("2", False)]

    def test_a_found_row_carries_fence_and_tenant(self, ground: Ground) -> None:
        ground.back.add_hold(1, NOW, token="tok")
        with ground.open().transaction() as tx:
            (found,) = tx.holds(ground.rule).find_due(None, 10)
        assert unpack(found.identity) == (found.due, "tok")
        assert unpack(found.guard) == ("held",)
        assert found.tenant == "t"

    def test_since_leaves_out_what_was_due_then(self, ground: Ground) -> None:
        ground.back.add_hold(1, NOW - 10 * SECOND)
        ground.back.add_hold(2, NOW - SECOND)
        with ground.open().transaction() as tx:
            found = tx.holds(ground.rule).find_due(None, 10, since=NOW - 5 * SECOND)
        assert [one.hold_key for one in found] == ["2"]

    def test_rows_without_a_due_come_in_key_order(self, ground: Ground) -> None:
        for key in (3, 1, 2):
            ground.back.add_hold(key, None)
        ground.back.add_hold(4, NOW)
        with ground.open().transaction() as tx:
            holds = tx.holds(ground.rule)
            first = holds.find_empty_due(None, 2)
            rest = holds.find_empty_due(ScanCursor("", first[-1].hold_key), 2)
        assert [one.hold_key for one in first] == ["1", "2"]
        assert [(one.hold_key, one.due) for one in rest] == [("3", None)]

    def test_the_next_due_lies_after_now_and_before_until(self, ground: Ground) -> None:
        ground.back.add_hold(1, NOW)
        ground.back.add_hold(2, NOW + 5 * SECOND)
        with ground.open().transaction() as tx:
            holds = tx.holds(ground.rule)
            assert holds.next_due(NOW + 10 * SECOND) == NOW + 5 * SECOND
            assert holds.next_due(NOW + 5 * SECOND) == NOW + 5 * SECOND
            assert holds.next_due(NOW + SECOND) is None

    def test_counting_stops_at_its_limit(self, ground: Ground) -> None:
        for key in range(1, 5):
            ground.back.add_hold(key, NOW - key * SECOND)
        with ground.open().transaction() as tx:
            assert tx.holds(ground.rule).count_overdue(10) == 4
            assert tx.holds(ground.rule).count_overdue(3) == 3

    def test_read_gives_mapped_columns_as_text(self, ground: Ground) -> None:
        ground.back.add_hold(1, NOW, token="tok")
        with ground.open().transaction() as tx:
            row = tx.holds(ground.rule).read("1")
            assert tx.holds(ground.rule).read("2") is None
        assert row is not None
        assert set(row) == set(ground.rule.mapped_columns)
        assert (row["status"], row["token"], row["id"]) == ("held", "tok", "1")

    def test_still_due_knows_the_identity(self, ground: Ground) -> None:
        ledger = ground.open()
        for key in range(1, 5):
            ground.back.add_hold(key, NOW)
        ids = _enqueue_found(ledger, ground.rule)
        ground.back.change_hold(2, "token", "other")
        ground.back.change_hold(3, "status", "confirmed")
        ground.back.remove_hold(4)
        with ledger.transaction() as tx:
            assert tx.holds(ground.rule).still_due(list(ids.values())) == {ids["1"]}


class ReleasingContract:
    """Give the fixture `ground`."""

    def test_a_locked_row_matches_its_whole_fence(self, ground: Ground) -> None:
        ledger, ids = _found(ground, 1)
        with ledger.transaction() as tx:
            (locked,) = tx.holds(ground.rule).lock([ids["1"]])
        assert locked == LockedHold(ids["1"], matches=True, due=locked.due)
        assert read_due(ground.rule.due, locked.due) == NOW - SECOND

    def test_a_row_that_changed_is_read_as_it_is(self, ground: Ground) -> None:
        ledger, ids = _found(ground, 1, 2)
        ground.back.change_hold(1, "token", "other")
        ground.back.change_hold(2, "status", "confirmed")
        with ledger.transaction() as tx:
            locked = _by_id(tx.holds(ground.rule).lock(list(ids.values())))
        taken, confirmed = locked[ids["1"]], locked[ids["2"]]
        assert (taken.matches, confirmed.matches) == (False, False)
        assert taken.command is not None
        assert taken.command.identity[1] == "a"
        assert not isinstance(taken.row, RowAbsence)
        assert taken.row is not None
        assert (taken.row.identity[1], taken.row.held) == ("other", True)
        assert not isinstance(confirmed.row, RowAbsence)
        assert confirmed.row is not None
        assert not confirmed.row.held

    def test_a_row_that_is_gone_has_an_entry(self, ground: Ground) -> None:
        ledger, ids = _found(ground, 1)
        ground.back.remove_hold(1)
        with ledger.transaction() as tx:
            (locked,) = tx.holds(ground.rule).lock([ids["1"]])
        assert (locked.matches, locked.row) == (False, RowAbsence.GONE)

    def test_a_row_that_the_host_holds_is_passed_over(self, ground: Ground) -> None:
        ledger, ids = _found(ground, 1, 2)
        with ground.back.lock_hold(1):
            if not ground.transactions_overlap():
                with raised(DatabaseBusy), ledger.transaction():
                    pass
                return
            with ledger.transaction() as tx:
                locked = _by_id(tx.holds(ground.rule).lock(list(ids.values())))
        assert locked[ids["1"]].row is RowAbsence.LOCKED_BY_HOST
        assert locked[ids["2"]].matches

    def test_a_missing_column_refuses_the_rule(self, ground: Ground) -> None:
        ledger, ids = _found(ground, 1)
        ground.back.break_table()
        with raised(RuleRefused), ledger.transaction() as tx:
            tx.holds(ground.rule).lock([ids["1"]])
        with raised(RuleRefused), ground.open().transaction() as tx:
            tx.holds(ground.rule).lock([ids["1"]])

    def test_a_rehearsal_changes_nothing(self, ground: Ground) -> None:
        ledger, ids = _found(ground, 1)
        companion = Companion("delete from companion_note where id = :id")
        rule = replace(ground.rule, companions=(companion,))
        with ledger.transaction() as tx:
            tx.holds(rule).rehearse()
        assert only(ground.back.rows("operation"))["id"] == ids["1"]
        assert ground.back.hold(1) == {"status": "held", "tenant": "t", "token": "a"}

    def test_a_rehearsal_finds_what_refuses_every_row(self, ground: Ground) -> None:
        ledger, _ = _found(ground, 1)
        missing = replace(ground.rule, companions=(Companion("delete from nowhere"),))
        with raised(RuleRefused), ledger.transaction() as tx:
            tx.holds(missing).rehearse()
        ground.back.break_table()
        with raised(RuleRefused), ledger.transaction() as tx:
            tx.holds(ground.rule).rehearse()

    def test_release_changes_row_ledger_and_outbox_together(self, ground: Ground) -> None:
        ledger, ids = _found(ground, 1)
        with ledger.transaction() as tx:
            tally = _release(tx, ground.rule, ids)
        assert ground.back.hold(1) == {"status": "expired", "tenant": "t", "token": "a"}
        assert ground.back.rows("operation") == []
        record = only(ground.back.rows("record"))
        assert (record["operation_id"], record["outcome"]) == (ids["1"], "expired")
        assert (record["attempt"], record["tally_id"], record["finished_at"]) == (1, tally, NOW)
        assert record["before_image"]["status"] == "held"
        event = only(ground.back.rows("outbox"))
        assert (event["operation_id"], event["type"]) == (ids["1"], "hold.expired.v1")
        assert (event["tokens"], event["carry"]) == ({"token": "a"}, {"tenant": "t"})
        assert (event["due_at"], event["at"]) == (NOW - SECOND, NOW)

    def test_nothing_of_a_release_remains_before_the_commit(self, ground: Ground) -> None:
        ledger, ids = _found(ground, 1)
        with raised(DatabaseAway), ledger.transaction() as tx:
            _release(tx, ground.rule, ids)
            ledger.close()
        assert ground.back.hold(1) == {"status": "held", "tenant": "t", "token": "a"}
        only(ground.back.rows("operation"))
        assert ground.back.rows("record") == []
        assert ground.back.rows("outbox") == []

    def test_a_suppressed_change_is_lost(self, ground: Ground) -> None:
        self._assert_refused(ground, ground.back.suppress_changes, ChangeLost)

    def test_a_restored_row_is_lost(self, ground: Ground) -> None:
        self._assert_refused(ground, ground.back.restore_changes, ChangeLost)

    def test_a_refused_row_loses_the_transaction(self, ground: Ground) -> None:
        self._assert_refused(ground, ground.back.refuse_changes, RowRefused)

    def _assert_refused(
        self, ground: Ground, prepare: Callable[[], None], kind: type[RowRefused]
    ) -> None:
        ledger, ids = _found(ground, 1, 2)
        prepare()
        with raised(kind), ledger.transaction() as tx:
            _release(tx, ground.rule, ids)
        assert len(ground.back.rows("operation")) == 2
        assert ground.back.rows("record") == []

    def test_a_release_of_what_does_not_match_is_lost(self, ground: Ground) -> None:
        ledger, ids = _found(ground, 1)
        ground.back.change_hold(1, "token", "other")
        with raised(ChangeLost), ledger.transaction() as tx:
            _release(tx, ground.rule, ids)
        assert ground.back.hold(1) == {"status": "held", "tenant": "t", "token": "other"}

    def test_companions_run_once_for_each_operation_on_their_side(self, ground: Ground) -> None:
        sql = "insert into companion_note (side, id, status) values ({!r}, :id, :status)"
        companions = tuple(
            Companion(sql.format(side), 1, 1, before=side == "before", lock_by="id")
            for side in ("after", "before")
        )
        rule = replace(ground.rule, companions=companions)
        ledger, ids = _found(ground, 2, 1)
        with ledger.transaction() as tx:
            _release(tx, rule, ids)
        notes = [(row["side"], row["id"], row["status"]) for row in ground.back.rows("note")]
        assert notes == [(side, key, "held") for side in ("before", "after") for key in ("1", "2")]

    def test_a_companion_with_a_wrong_count_loses_the_transaction(self, ground: Ground) -> None:
        companion = Companion("delete from companion_note where id = :id", 1, 1)
        rule = replace(ground.rule, companions=(companion,))
        ledger, ids = _found(ground, 1)
        with raised(RowRefused), ledger.transaction() as tx:
            _release(tx, rule, ids)
        assert ground.back.rows("record") == []


def _found(ground: Ground, *keys: int) -> tuple[Ledger, dict[str, int]]:
    """Add due holds and write their operations; return the ids by key."""
    for key in keys:
        ground.back.add_hold(key, NOW - SECOND)
    ledger = ground.open()
    return ledger, _enqueue_found(ledger, ground.rule)


def _enqueue_found(ledger: Ledger, rule: Rule) -> dict[str, int]:
    with ledger.transaction() as tx:
        found = tx.holds(rule).find_due(None, 100)
        tx.operations.enqueue([_operation(rule, one, tx.now) for one in found], None)
        return {one.hold_key: one.id for one in tx.operations.claim(rule.name, 100, None)}


def _operation(rule: Rule, found: FoundHold, now: datetime) -> NewOperation:
    return NewOperation(
        rule=rule.name,
        tenant=found.tenant,
        hold_key=found.hold_key,
        digest=digest(rule.name, found.hold_key, found.identity),
        identity=found.identity,
        guard=found.guard,
        due_at=now - SECOND,
    )


def _release(tx: Transaction, rule: Rule, ids: dict[str, int]) -> int:
    """Go through a release as the application does; return the tally's id."""
    holds = tx.holds(rule)
    tx.operations.claim_these(list(ids.values()))
    holds.lock(list(ids.values()))
    holds.run_companions(list(ids.values()), before=True)
    tally = tally_id(tx, rule.name)
    holds.release([Chosen(one, key, tally) for key, one in ids.items()])
    holds.run_companions(list(ids.values()), before=False)
    return tally


def _by_id(locked: Sequence[LockedHold]) -> dict[int, LockedHold]:
    return {one.operation_id: one for one in locked}
