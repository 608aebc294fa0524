"""The contract of `ports.retention.Retention`: what goes, what stays however old, and rounds."""

from __future__ import annotations

from datetime import datetime, timedelta

from freehold.domain.pauses import Pause, Role
from freehold.domain.retries import Failure, FailureClass
from freehold.domain.sending import ENDS, SendState
from freehold.ports.ledger import GuardKind, Ledger, Skipped
from freehold.ports.retention import Place, Readings, Step, Subject
from freehold.testing.contracts.ground import (
    NOW,
    SECOND,
    Abandoned,
    Ground,
    enqueue,
    new_operation,
    only,
    raised,
    tally_id,
)
from freehold.testing.contracts.unsubscribed import MailsDoor

DAY = timedelta(days=1)
LATER = NOW + 100 * DAY  # a whole month and more behind NOW
FAILURE = Failure(FailureClass.BROKEN, "no", "23514")


class RetentionContract:
    """Give the fixtures `ground` and `mails`."""

    def test_readings_are_kept_by_subject(self, ground: Ground) -> None:
        ledger = ground.open()
        first = Readings(NOW, NOW - DAY, None)
        with ledger.transaction() as tx:
            assert tx.retention.readings() == {}
            tx.retention.write(Subject.TICKS, first)
            tx.retention.write(Subject.EVENTS, first)
            tx.retention.write(Subject.TICKS, Readings(NOW, NOW, NOW - DAY))
        with ledger.transaction() as tx:
            found = tx.retention.readings()
        assert found == {Subject.TICKS: Readings(NOW, NOW, NOW - DAY), Subject.EVENTS: first}

    def test_a_round_is_one_process_s_and_comes_in_its_time(self, ground: Ground) -> None:
        one, other = ground.open(), ground.open()
        assert _begins(one)
        assert not _begins(other)
        with one.transaction() as tx:
            tx.retention.end_round()
        ground.set_now(NOW + DAY - SECOND)
        assert not _begins(other)
        ground.set_now(NOW + DAY)
        assert _begins(other)

    def test_a_round_that_rests_is_taken_over(self, ground: Ground) -> None:
        one, other = ground.open(), ground.open()
        assert _begins(one)
        ground.set_now(NOW + 40 * SECOND)
        with one.transaction() as tx:
            tx.retention.keep_round()
        ground.set_now(NOW + 99 * SECOND)
        assert not _begins(other)
        ground.set_now(NOW + 100 * SECOND)
        assert _begins(other)

    def test_a_clock_that_was_set_back_keeps_no_round_away(self, ground: Ground) -> None:
        ledger = ground.open()
        assert _begins(ledger)
        ground.set_now(NOW - DAY)
        assert _begins(ledger)

    def test_records_go_and_their_rule_is_remembered(self, ground: Ground) -> None:
        ledger = ground.open()
        ledger.keep_house()
        _end(ledger, 1)
        ground.set_now(LATER)
        ledger.keep_house()
        _end(ledger, 2)
        before = NOW + 60 * DAY
        assert count(ledger, Subject.RECORDS, before) == 1
        assert prune_all(ledger, Subject.RECORDS, before) == 1
        assert only(ground.back.rows("record"))["hold_key"] == "2"
        assert count(ledger, Subject.RECORDS, before) == 0
        with ledger.transaction() as tx:
            forgotten = tx.retention.forgotten_before("r")
            assert tx.retention.forgotten_before("q") is None
        assert forgotten is not None
        assert NOW < forgotten <= before

    def test_records_that_never_got_a_partition_go_too(self, ground: Ground) -> None:
        ledger = ground.open()
        ground.set_now(NOW - 1000 * DAY)
        for key in range(5):
            _end(ledger, key)
        ground.set_now(LATER)
        assert prune_all(ledger, Subject.RECORDS, NOW, limit=2) == 5
        assert ground.back.rows("record") == []

    def test_tallies_go_by_their_age(self, ground: Ground) -> None:
        ledger = ground.open()
        for day in range(5):
            ground.set_now(NOW + day * DAY)
            _end(ledger, day)
        assert count(ledger, Subject.TALLIES, NOW + 2 * DAY) == 2
        assert prune_all(ledger, Subject.TALLIES, NOW + 2 * DAY, limit=2) == 2
        assert len(ground.back.rows("tally")) == 3

    def test_attempts_of_what_ended_go_and_those_of_open_work_stay(self, ground: Ground) -> None:
        ledger = ground.open()
        for key in (1, 2, 3):
            enqueue(ledger, new_operation("r", key))
        with ledger.transaction() as tx:
            for claim in tx.operations.claim("r", 3, None):
                tx.operations.fail(claim, FAILURE, 1, None if claim.hold_key == "2" else NOW)
        with ledger.transaction() as tx:
            tally = tally_id(tx, "r")
            claims = tx.operations.claim("r", 3, None)
            tx.operations.finish_skipped([Skipped(one.id, tally, "gone") for one in claims])
        ground.set_now(LATER)
        assert count(ledger, Subject.ATTEMPTS, NOW + SECOND) == 2
        assert prune_all(ledger, Subject.ATTEMPTS, NOW, limit=1) == 0
        assert prune_all(ledger, Subject.ATTEMPTS, NOW + SECOND, limit=1) == 2
        open_id = only(ground.back.rows("operation"))["id"]
        assert only(ground.back.rows("attempt"))["operation_id"] == open_id

    def test_of_mails_the_bytes_go_once_nobody_may_be_sent_them(
        self, ground: Ground, mails: MailsDoor
    ) -> None:
        """An end of every recipient, and the age, are both needed."""
        ledger = ground.open()
        mails.add_mail("t", 1, dict.fromkeys("abcd", SendState.READY))
        for day, state in enumerate(SendState, 2):
            mails.add_mail("t", day, {"a@x": SendState.ACCEPTED, "b@x": state}, frozen=True)
        mails.add_mail("u", 1, {}, frozen=True)
        mails.add_mail("u", 20, {"a@x": SendState.ACCEPTED}, frozen=True)
        ended = [day for day, state in enumerate(SendState, 2) if state in ENDS]
        before = NOW.replace(day=12)
        assert count(ledger, Subject.MAILS, before) == len(ended) + 1
        assert prune_all(ledger, Subject.MAILS, NOW.replace(day=1), limit=2) == 0
        assert prune_all(ledger, Subject.MAILS, before, limit=2) == len(ended) + 1
        assert prune_all(ledger, Subject.MAILS, before, limit=2) == 0
        gone = {key for key, kept in mails.kept().items() if not kept}
        assert gone == {("u", 1), *(("t", day) for day in ended)}
        assert [row["byte_count"] for row in ground.back.rows("mail")] == [1] * len(mails.kept())

    def test_runs_go_but_the_newest_of_a_schedule_and_unfinished_ones(self, ground: Ground) -> None:
        ledger = ground.open()
        for minute in range(4):
            with ledger.transaction() as tx:
                at = NOW + minute * 60 * SECOND
                tick = tx.ticks.start("s", at, "me", at)
                assert tick is not None
                if minute != 1:
                    tx.ticks.finish(tick, 0, 0, "done")
        ground.set_now(LATER)
        assert count(ledger, Subject.TICKS, LATER) == 2
        assert prune_all(ledger, Subject.TICKS, LATER, limit=1) == 2
        left = [row["logical_time"] for row in ground.back.rows("tick")]
        assert left == [NOW + 60 * SECOND, NOW + 180 * SECOND]
        with ledger.transaction() as tx:
            assert tx.ticks.last("s") == NOW + 180 * SECOND

    def test_guards_and_pauses_go_once_they_ended(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            for kind in (GuardKind.MASS, GuardKind.CLOCK):
                tx.guards.trip(kind, "r", "why", {})
            tx.guards.release(tx.guards.standing()[0].id, "ann", "seen")
            tx.guards.trip(GuardKind.MASS, "q", "why", {})
            for rule in ("q", "r"):
                tx.pauses.begin(Pause(Role.WORK, rule, None, "ann", "lunch", tx.now))
            tx.pauses.end(Role.WORK, "q", None)
        ground.set_now(LATER)
        for subject in (Subject.GUARDS, Subject.PAUSES):
            assert count(ledger, subject, LATER) == 1
            assert prune_all(ledger, subject, NOW, limit=1) == 0
            assert prune_all(ledger, subject, LATER, limit=1) == 1
        with ledger.transaction() as tx:
            assert [one.rule for one in tx.guards.standing()] == ["r", "q"]
            assert [one.rule for one in tx.pauses.open()] == ["r"]

    def test_no_event_is_no_step(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            assert tx.retention.prune(Subject.EVENTS, LATER, None, 10) == Step(0, None)
            assert tx.retention.prune(Subject.EVENTS, LATER, Place(None, 7), 10).place is None
            assert tx.retention.count(Subject.EVENTS, LATER, 10) == 0

    def test_a_step_is_whole_or_not_at_all(self, ground: Ground) -> None:
        ledger = ground.open()
        ledger.keep_house()
        _end(ledger, 1)
        ground.set_now(LATER)
        for subject in (Subject.RECORDS, Subject.TALLIES):
            with raised(Abandoned), ledger.transaction() as tx:
                assert tx.retention.prune(subject, NOW + 60 * DAY, None, 10).removed_count == 1
                raise Abandoned
        only(ground.back.rows("record"))
        only(ground.back.rows("tally"))
        with ledger.transaction() as tx:
            assert tx.retention.forgotten_before("r") is None


def _begins(ledger: Ledger) -> bool:
    with ledger.transaction() as tx:
        return tx.retention.begin_round(DAY, 60 * SECOND)


def _end(ledger: Ledger, key: int) -> None:
    """Let an operation end as skipped, with its tally."""
    enqueue(ledger, new_operation("r", key))
    with ledger.transaction() as tx:
        (claim,) = tx.operations.claim("r", 1, None)
        tx.operations.finish_skipped([Skipped(claim.id, tally_id(tx, "r"), "gone")])


def count(ledger: Ledger, subject: Subject, before: datetime) -> int:
    """Count what would go, a hundred at most."""
    with ledger.transaction() as tx:
        return tx.retention.count(subject, before, 100)


def prune_all(ledger: Ledger, subject: Subject, before: datetime, limit: int = 10) -> int:
    """Walk to the end, a transaction a step."""
    removed_count = 0
    place: Place | None = None
    while True:
        with ledger.transaction() as tx:
            step = tx.retention.prune(subject, before, place, limit)
        removed_count, place = removed_count + step.removed_count, step.place
        if place is None:
            return removed_count
