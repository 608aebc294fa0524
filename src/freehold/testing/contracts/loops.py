"""The contracts of what the loops keep: rule states, ticks, heartbeats, the action log."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from freehold.domain.errors import DatabaseBusy
from freehold.ports.ledger import Act, Ledger, RuleCondition, RuleState, Tick
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Abandoned,
    Ground,
    only,
    raised,
)

STATE = RuleState(
    rule="r",
    fingerprint="f",
    condition=RuleCondition.PAUSED,
    reason="a column is missing",
    batch_limit=22,
    leased=True,
    probe_at=NOW + SECOND,
    probe_count=2,
    crash_count=1,
    scan_paused="ann: stocktaking",
)
STALE = 31 * SECOND


class RuleStatesContract:
    """Give the fixture `ground`."""

    def test_a_rule_never_met_has_no_state(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            assert tx.rules.read("r") is None
            assert tx.rules.lock("r") is None

    def test_the_whole_state_is_written(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            tx.rules.write(STATE)
        with ledger.transaction() as tx:
            assert tx.rules.read("r") == STATE
            assert tx.rules.read("q") is None

    def test_the_last_writer_wins(self, ground: Ground) -> None:
        ledger = ground.open()
        other = RuleState("r", "g", RuleCondition.ACTIVE)
        for state in (STATE, other):
            with ledger.transaction() as tx:
                tx.rules.write(state)
        with ledger.transaction() as tx:
            assert tx.rules.read("r") == other

    def test_a_lock_reads_and_keeps_others_from_writing(self, ground: Ground) -> None:
        first, second = ground.open(), ground.open()
        with first.transaction() as tx:
            tx.rules.write(STATE)
        with first.transaction() as tx:
            assert tx.rules.lock("r") == STATE
            with raised(DatabaseBusy), second.transaction() as other:
                other.rules.write(replace(STATE, batch_limit=1))
        with second.transaction() as other:
            assert other.rules.read("r") == STATE

    def test_one_transaction_is_alone_with_a_rule(self, ground: Ground) -> None:
        first, second = ground.open(), ground.open()
        with first.transaction() as tx:
            assert tx.rules.alone("r")
            if ground.transactions_overlap():
                with second.transaction() as other:
                    assert not other.rules.alone("r")
                    assert other.rules.alone("q")
        with second.transaction() as other:
            assert other.rules.alone("r")


class TicksContract:
    """Give the fixture `ground`."""

    def test_a_tick_begins_once(self, ground: Ground) -> None:
        ledger = ground.open()
        tick = _start(ledger, NOW)
        assert tick is not None
        assert (tick.schedule, tick.logical_time, tick.taken_over) == ("s", NOW, False)
        assert _start(ledger, NOW) is None
        row = only(ground.back.rows("tick"))
        assert (row["id"], row["runner"], row["started_at"]) == (tick.id, "me", NOW)
        assert (row["host_at"], row["finished_at"]) == (NOW - SECOND, None)

    def test_a_finished_tick_is_done(self, ground: Ground) -> None:
        ledger = ground.open()
        _finish(ledger, _start(ledger, NOW))
        ground.set_now(NOW + STALE)
        assert _start(ledger, NOW) is None
        row = only(ground.back.rows("tick"))
        assert (row["found_count"], row["new_count"], row["outcome"]) == (3, 2, "done")
        assert row["finished_at"] == NOW

    def test_an_unfinished_tick_is_taken_over_after_30_seconds(self, ground: Ground) -> None:
        ledger = ground.open()
        first = _start(ledger, NOW)
        ground.set_now(NOW + 30 * SECOND)
        assert _start(ledger, NOW) is None
        ground.set_now(NOW + STALE)
        second = _start(ledger, NOW)
        assert first is not None
        assert second is not None
        assert (second.id, second.taken_over) == (first.id, True)

    def test_a_runner_that_was_replaced_cannot_finish(self, ground: Ground) -> None:
        ledger = ground.open()
        first = _start(ledger, NOW)
        ground.set_now(NOW + STALE)
        second = _start(ledger, NOW)
        _finish(ledger, first)
        assert only(ground.back.rows("tick"))["finished_at"] is None
        _finish(ledger, second)
        assert only(ground.back.rows("tick"))["found_count"] == 3

    def test_a_run_that_is_kept_is_not_taken_over(self, ground: Ground) -> None:
        ledger = ground.open()
        first = _start(ledger, NOW)
        assert first is not None
        ground.set_now(NOW + 20 * SECOND)
        assert _keep(ledger, first)
        ground.set_now(NOW + 40 * SECOND)
        assert _start(ledger, NOW) is None
        ground.set_now(NOW + 20 * SECOND + STALE)
        second = _start(ledger, NOW)
        assert second is not None
        assert not _keep(ledger, first)
        _finish(ledger, second)
        assert not _keep(ledger, second)

    def test_a_second_finish_changes_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        tick = _start(ledger, NOW)
        _finish(ledger, tick)
        _finish(ledger, tick)
        assert only(ground.back.rows("tick"))["found_count"] == 3

    def test_an_abandoned_start_leaves_no_tick(self, ground: Ground) -> None:
        ledger = ground.open()
        with raised(Abandoned), ledger.transaction() as tx:
            tx.ticks.start("s", NOW, "me", NOW)
            raise Abandoned
        assert _start(ledger, NOW) is not None

    def test_rolled_up_runs_share_a_row_and_add_up(self, ground: Ground) -> None:
        ledger = ground.open()
        for _ in range(2):
            _finish(ledger, _start(ledger, NOW, rolled_up=True))
        row = only(ground.back.rows("tick"))
        assert (row["run_count"], row["found_count"], row["new_count"]) == (2, 6, 4)

    def test_a_rolled_up_run_in_progress_is_left_alone(self, ground: Ground) -> None:
        ledger = ground.open()
        _start(ledger, NOW, rolled_up=True)
        assert _start(ledger, NOW, rolled_up=True) is None

    def test_last_is_the_newest_that_finished(self, ground: Ground) -> None:
        ledger = ground.open()
        for minute in (0, 2, 1):
            _finish(ledger, _start(ledger, NOW + 60 * minute * SECOND))
        _start(ledger, NOW + 600 * SECOND)
        with ledger.transaction() as tx:
            assert tx.ticks.last("s") == NOW + 120 * SECOND
            assert tx.ticks.last("other") is None

    def test_the_oldest_unfinished_began_over_30_seconds_ago(self, ground: Ground) -> None:
        ledger = ground.open()
        for minute in (2, 1):
            _start(ledger, NOW + 60 * minute * SECOND)
        with ledger.transaction() as tx:
            assert tx.ticks.oldest_unfinished("s") is None
        ground.set_now(NOW + STALE)
        with ledger.transaction() as tx:
            assert tx.ticks.oldest_unfinished("s") == NOW + 60 * SECOND
            assert tx.ticks.oldest_unfinished("other") is None


class WorkersContract:
    """Give the fixture `ground`."""

    def test_a_beat_says_who_lives_and_with_what(self, ground: Ground) -> None:
        ledger = ground.open()
        _beat(ledger, "w1", "r: up to 5 holds")
        row = only(ground.back.rows("worker"))
        assert (row["worker"], row["roles"], row["host"], row["pid"]) == ("w1", "work", "h", 42)
        assert (row["in_hand"], row["host_at"]) == ("r: up to 5 holds", NOW - SECOND)
        assert (row["started_at"], row["beat_at"]) == (NOW, NOW)

    def test_a_later_beat_keeps_the_start(self, ground: Ground) -> None:
        ledger = ground.open()
        _beat(ledger, "w1", "r: up to 5 holds")
        ground.set_now(NOW + SECOND)
        _beat(ledger, "w1", None)
        row = only(ground.back.rows("worker"))
        assert (row["started_at"], row["beat_at"]) == (NOW, NOW + SECOND)
        assert row["in_hand"] is None

    def test_who_leaves_is_gone(self, ground: Ground) -> None:
        ledger = ground.open()
        _beat(ledger, "w1", None)
        _beat(ledger, "w2", None)
        with ledger.transaction() as tx:
            tx.workers.leave("w1")
            tx.workers.leave("never met")
        assert only(ground.back.rows("worker"))["worker"] == "w2"

    def test_a_role_is_counted_by_its_whole_name(self, ground: Ground) -> None:
        ledger = ground.open()
        for worker, roles in (("w1", "scan,work"), ("w2", "work"), ("w3", "scan,worker")):
            with ledger.transaction() as tx:
                tx.workers.beat(worker, roles, "h", 42, NOW, None)
        with ledger.transaction() as tx:
            assert (tx.workers.count("work"), tx.workers.count("relay")) == (2, 0)

    def test_the_silent_are_forgotten_with_what_they_had(self, ground: Ground) -> None:
        ledger = ground.open()
        _beat(ledger, "w1", "r: up to 5 holds")
        _beat(ledger, "w2", None)
        ground.set_now(NOW + SECOND)
        _beat(ledger, "w3", "q: up to 5 holds")
        with ledger.transaction() as tx:
            assert list(tx.workers.forget_silent(NOW + SECOND)) == ["r: up to 5 holds"]
        assert only(ground.back.rows("worker"))["worker"] == "w3"


class ActionsContract:
    """Give the fixture `ground`."""

    def test_an_act_is_recorded_whole(self, ground: Ground) -> None:
        act = Act("ann", "discard", "r:1", "äußerst doppelt", before="dead", after="discarded")
        with ground.open().transaction() as tx:
            tx.actions.record(act)
        row = only(ground.back.rows("action"))
        assert (row["actor"], row["action"], row["subject"]) == ("ann", "discard", "r:1")
        assert (row["reason"], row["before"]) == ("äußerst doppelt", "dead")
        assert (row["after"], row["at"]) == ("discarded", NOW)

    def test_acts_form_a_chain(self, ground: Ground) -> None:
        ledger = ground.open()
        for _ in range(2):
            with ledger.transaction() as tx:
                tx.actions.record(Act("ann", "pause", "r", "why"))
                tx.actions.record(Act("ann", "pause", "r", "why"))
        rows = ground.back.rows("action")
        hashes = [row["hash"] for row in rows]
        assert [row["previous_hash"] for row in rows] == ["0" * 64, *hashes[:-1]]
        assert len(set(hashes)) == 4

    def test_an_act_goes_with_its_transaction(self, ground: Ground) -> None:
        with raised(Abandoned), ground.open().transaction() as tx:
            tx.actions.record(Act("ann", "pause", "r", "why"))
            raise Abandoned
        assert ground.back.rows("action") == []

    def test_two_writers_cannot_fork_the_chain(self, ground: Ground) -> None:
        first, second = ground.open(), ground.open()
        with first.transaction() as tx:
            tx.actions.record(Act("ann", "pause", "r", "why"))
            with raised(DatabaseBusy), second.transaction() as other:
                other.actions.record(Act("bob", "pause", "r", "why"))


def _keep(ledger: Ledger, tick: Tick) -> bool:
    with ledger.transaction() as tx:
        return tx.ticks.keep(tick)


def _start(ledger: Ledger, at: datetime, *, rolled_up: bool = False) -> Tick | None:
    with ledger.transaction() as tx:
        return tx.ticks.start("s", at, "me", NOW - SECOND, rolled_up=rolled_up)


def _finish(ledger: Ledger, tick: Tick | None) -> None:
    assert tick is not None
    with ledger.transaction() as tx:
        tx.ticks.finish(tick, 3, 2, "done")


def _beat(ledger: Ledger, worker: str, in_hand: str | None) -> None:
    with ledger.transaction() as tx:
        tx.workers.beat(worker, "work", "h", 42, NOW - SECOND, in_hand)
