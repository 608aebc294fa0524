"""The contract of `ports.sends.Sends`: attempts, what becomes of reports, and a person's words."""

from __future__ import annotations

import pytest

from freehold.domain.errors import DatabaseError
from freehold.domain.sending import AttemptKind, SendOutcome, SendState
from freehold.domain.sending_next import HEARD_LATE, Rest
from freehold.ports.ledger import Ledger
from freehold.ports.mail import Answer
from freehold.ports.sends import ClaimedSend
from freehold.testing.contracts.ground import NOW, SECOND, Ground, only
from freehold.testing.contracts.sends import (
    DONE,
    LATER,
    LEASE,
    REFUSED,
    SENT,
    begin,
    claim,
    report,
    reports,
    settle,
    settle_one,
)
from freehold.testing.postroom import DATE, DAY, post

PARTLY = ("partly sent", "some recipients' mails were not accepted")
STANDINGS = (
    (("accepted", "accepted"), ("sent", None)),
    (("accepted", "retrying"), ("sending", None)),
    (("review", "unknown"), ("sending", None)),
    (("accepted", "review"), ("in review", None)),
    (("refused", "review"), ("in review", None)),
    (("accepted", "refused"), PARTLY),
    (("refused", "refused"), ("not sent", "no recipient's mail was accepted")),
)
VERDICTS = (
    (SendState.ACCEPTED, SendOutcome.ACCEPTED),
    (SendState.ABANDONED, SendOutcome.ABANDONED),
    (SendState.READY, SendOutcome.SEND_AGAIN),
)


class AttemptsContract:
    """Give the fixture `ground`."""

    # ------------------------------------------------------------------------------ an attempt

    def test_an_attempt_is_open_until_it_is_settled(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        (send,) = claim(ledger)
        begun = begin(ledger, send)
        row = only(ground.back.rows("send_attempt"))
        assert (row["attempt"], row["kind"], row["transport"]) == (1, "send", "x")
        assert (row["started_at"], row["outcome"], row["ended_at"]) == (NOW, None, None)
        assert begun.attempt == 1
        assert begun.standing == send.standing.begun(AttemptKind.SEND, "x", NOW)
        ground.set_now(NOW + SECOND)
        assert settle(ledger, begun, SENT, DONE)
        row = only(ground.back.rows("send_attempt"))
        assert (row["outcome"], row["ended_at"]) == ("accepted", NOW + SECOND)
        assert (row["reference"], row["code"], row["answer"]) == ("ref-1", "250", "queued")
        row = only(ground.back.rows("send"))
        assert (row["state"], row["reference"], row["changed_at"]) == (
            "accepted",
            "ref-1",
            NOW + SECOND,
        )
        assert report(ground) == ("sent", None, NOW + SECOND)

    def test_what_was_spent_is_counted(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        kinds = (AttemptKind.SEND, AttemptKind.LOOK_UP, AttemptKind.LOOK_UP, AttemptKind.REPLAY)
        counted = [self._count(ledger, ground, n, kind) for n, kind in enumerate(kinds)]
        assert counted == [(1, 0), (1, 1), (1, 2), (2, 0)]
        (send,) = claim(ledger)
        standing = send.standing
        assert (standing.first_tried_at, standing.last_tried_at) == (NOW, NOW + 3 * SECOND)
        assert (standing.transport, standing.state) == ("x0", SendState.UNKNOWN)

    def test_a_window_begins_anew_by_another_transport(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        for n, name in enumerate(("x0", "x0", "x1", "x1")):
            ground.set_now(NOW + n * SECOND)
            (send,) = claim(ledger)
            begun = begin(ledger, send, AttemptKind.SEND, name)
            settle(ledger, begun, LATER, Rest(SendState.RETRYING, "why", NOW + (n + 1) * SECOND))
            row = only(ground.back.rows("send"))
            assert row["first_tried_at"] == NOW + n // 2 * 2 * SECOND
            assert begun.standing.first_tried_at == row["first_tried_at"]

    def _count(self, ledger: Ledger, ground: Ground, n: int, kind: AttemptKind) -> tuple[int, int]:
        """Make one attempt whose end is unknown; return the counts that are read back."""
        ground.set_now(NOW + n * SECOND)
        (send,) = claim(ledger)
        name = "x1" if kind is AttemptKind.LOOK_UP else "x0"
        begun = begin(ledger, send, kind, name)
        at = NOW + (n + 1) * SECOND
        settle(ledger, begun, LATER, Rest(SendState.UNKNOWN, "why", at))
        ground.set_now(at)
        (again,) = claim(ledger)
        with ledger.transaction() as tx:
            tx.sends.give_back([again], at, "why")
        return again.standing.spent_count, again.standing.look_count

    def test_an_attempt_that_met_trouble_of_everyone_is_not_counted(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x", "b@x"]})
        parked = Rest(SendState.RETRYING, "", NOW, counts=False)
        for send, kind in zip(claim(ledger), (AttemptKind.SEND, AttemptKind.LOOK_UP), strict=True):
            settle(ledger, begin(ledger, send, kind), LATER, parked)
        for send in claim(ledger):
            assert (send.attempt, send.standing.spent_count, send.standing.look_count) == (1, 0, 0)

    def test_a_second_open_attempt_is_refused(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        (send,) = claim(ledger)
        begun = begin(ledger, send)
        with ledger.transaction() as tx:
            assert tx.sends.begin(send, AttemptKind.SEND, "x", LEASE) is None
        with pytest.raises(DatabaseError), ledger.transaction() as tx:
            tx.sends.begin(begun, AttemptKind.SEND, "x", LEASE)

    def test_nothing_begins_after_the_lease(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        (send,) = claim(ledger)
        ground.set_now(NOW + LEASE)
        with ledger.transaction() as tx:
            assert tx.sends.begin(send, AttemptKind.SEND, "x", LEASE) is None
            assert tx.sends.begin(send, AttemptKind.LOOK_UP, "x", LEASE) is None
            assert tx.sends.take_back(10) == 1
        assert ground.back.rows("send_attempt") == []

    @pytest.mark.parametrize("kind", [AttemptKind.SEND, AttemptKind.LOOK_UP])
    def test_what_is_begun_is_leased_for_its_attempt_and_the_rest_is_not(
        self, ground: Ground, kind: AttemptKind
    ) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x", "b@x"]})
        first, second = claim(ledger)
        begun = begin(ledger, first, kind, lease=3 * LEASE)
        ground.set_now(NOW + LEASE)
        with ledger.transaction() as tx:
            assert tx.sends.take_back(10) == 1
            assert tx.sends.next_available() == NOW + LEASE
            assert tx.sends.begin(second, AttemptKind.SEND, "x", LEASE) is None
        assert [one.recipient for one in claim(ledger)] == ["b@x"]
        ground.set_now(NOW + 3 * LEASE - SECOND)
        with ledger.transaction() as tx:
            assert tx.sends.take_back(10) == 1
        assert settle(ledger, begun, SENT, DONE)

    def test_an_attempt_whose_lease_is_over_is_taken_back(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        (send,) = claim(ledger)
        begun = begin(ledger, send, lease=3 * LEASE)
        ground.set_now(NOW + 3 * LEASE)
        with ledger.transaction() as tx:
            assert tx.sends.take_back(10) == 1
        assert not settle(ledger, begun, LATER, Rest(SendState.RETRYING, "why", NOW))
        assert only(ground.back.rows("send"))["state"] == "unknown"

    def test_who_lost_the_lease_changes_nothing_but_the_trail(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        (send,) = claim(ledger)
        begun = begin(ledger, send)
        ground.set_now(NOW + LEASE)
        with ledger.transaction() as tx:
            tx.sends.take_back(10)
        before = ground.back.rows("send")
        assert not settle(ledger, begun, SENT, DONE)
        assert not settle(ledger, begun, SENT, DONE)
        assert ground.back.rows("send") == before
        row = only(ground.back.rows("send_attempt"))
        assert (row["outcome"], row["reference"]) == ("accepted", "ref-1")
        (again,) = claim(ledger)
        assert again.noted == SENT

    @pytest.mark.parametrize("answer", [SENT, REFUSED])
    def test_a_late_acceptance_ends_a_review(self, ground: Ground, answer: Answer) -> None:
        ledger = ground.open()
        begun = put_into_review(ground, ledger)
        assert not settle(ledger, begun, answer, DONE)
        assert not settle(ledger, begun, answer, DONE)
        row = only(ground.back.rows("send"))
        if answer is SENT:
            assert (row["state"], row["reason"]) == ("accepted", HEARD_LATE)
            assert row["reference"] == "ref-1"
            assert report(ground)[0] == "sent"
        else:
            assert row["state"] == "review"

    def test_a_late_acceptance_leaves_what_a_person_has_looked_at(self, ground: Ground) -> None:
        ledger = ground.open()
        begun = put_into_review(ground, ledger)
        again = Answer(SendOutcome.SEND_AGAIN, None, "", "nothing came")
        with ledger.transaction() as tx:
            assert tx.sends.resolve(begun.id, SendState.READY, again, "by ann")
        (send,) = claim(ledger)
        with ledger.transaction() as tx:
            settle_one(tx, send, None, Rest(SendState.REVIEW, "why"))
        assert not settle(ledger, begun, SENT, DONE)
        assert only(ground.back.rows("send"))["state"] == "review"

    def test_a_known_answer_is_not_written_over(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        (send,) = claim(ledger)
        begun = begin(ledger, send)
        assert settle(ledger, begun, SENT, DONE)
        assert not settle(ledger, begun, REFUSED, Rest(SendState.REFUSED))
        assert only(ground.back.rows("send_attempt"))["outcome"] == "accepted"
        assert only(ground.back.rows("send"))["state"] == "accepted"

    # ----------------------------------------------------------------------------- the reports

    def test_a_report_is_where_its_sends_are(self, ground: Ground) -> None:
        ledger = ground.open()
        ids = post(ledger, {str(n): ["a@x", "b@x"] for n in range(len(STANDINGS))})
        wanted_of = dict(zip(ids.values(), STANDINGS, strict=True))
        left = {report_id: list(states) for report_id, (states, _) in wanted_of.items()}
        for send in claim(ledger, 99):
            state = SendState(left[send.report_id].pop(0))
            at = NOW + SECOND if state in (SendState.RETRYING, SendState.UNKNOWN) else None
            settle(ledger, begin(ledger, send), LATER, Rest(state, "why", at))
        found = reports(ground)
        assert {report_id: one[:2] for report_id, one in found.items()} == {
            report_id: wanted for report_id, (_, wanted) in wanted_of.items()
        }

    def test_of_two_that_end_the_last_sends_the_later_sees_both(self, ground: Ground) -> None:
        mine, other = ground.open(), ground.open()
        ids = post(mine, {"t": ["a@x", "b@x"]})
        first, second = claim(mine)
        for ledger, send in ((mine, first), (other, second)):
            begun = begin(ledger, send)
            with ledger.transaction() as tx:
                settle_one(tx, begun, SENT, DONE)
                assert tx.sends.finish_reports([ids["t"]]) == (send is second)
        with mine.transaction() as tx:
            assert tx.sends.finish_reports(ids.values()) == 0
        assert report(ground)[0] == "sent"

    # -------------------------------------------------------------------------------- a person

    def test_the_sends_of_a_report_are_read_by_recipient(self, ground: Ground) -> None:
        ledger = ground.open()
        ids = post(ledger, {"t": ["b@x", "a@x"], "u": ["c@x"]})
        with ledger.transaction() as tx:
            found = tx.sends.of_report("t", DATE)
            assert [one.recipient for one in found] == ["a@x", "b@x"]
            one = found[0]
            assert (one.report_id, one.state, one.reason) == (ids["t"], SendState.READY, None)
            assert (one.attempt, one.has_mail) == (0, True)
            assert list(tx.sends.of_report("t", DATE + DAY)) == []

    def test_a_person_resolves_by_an_attempt_of_its_own(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x", "b@x", "c@x"]})
        for send, (state, outcome) in zip(claim(ledger), VERDICTS, strict=True):
            settle(ledger, begin(ledger, send), LATER, Rest(SendState.REVIEW, "why"))
            with ledger.transaction() as tx:
                said = Answer(outcome, None, "", "seen in the inbox")
                assert tx.sends.resolve(send.id, state, said, "by ann")
        for row, (state, _) in zip(ground.back.rows("send"), VERDICTS, strict=True):
            assert (row["state"], row["reason"], row["attempt"]) == (state, "by ann", 2)
        rows = [row for row in ground.back.rows("send_attempt") if row["kind"] == "resolve"]
        for row, (_, outcome) in zip(rows, VERDICTS, strict=True):
            assert (row["attempt"], row["outcome"]) == (2, outcome)
            assert (row["answer"], row["ended_at"]) == ("seen in the inbox", NOW)

    def test_a_send_to_be_sent_again_has_a_fresh_count(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        (send,) = claim(ledger)
        settle(ledger, begin(ledger, send), REFUSED, Rest(SendState.REFUSED, "why"))
        with ledger.transaction() as tx:
            tx.sends.resolve(send.id, SendState.READY, Answer(SendOutcome.SEND_AGAIN), "by ann")
            assert tx.sends.finish_reports([send.report_id]) == 1
        assert report(ground) == ("sending", None, None)
        (again,) = claim(ledger)
        assert (again.standing.state, again.standing.spent_count) == (SendState.READY, 0)
        assert (again.attempt, again.standing.first_tried_at) == (2, NOW)

    def test_what_waits_for_nobody_is_not_resolved(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x", "b@x", "c@x"]})
        leased, retrying, accepted = claim(ledger)
        begin(ledger, leased)
        settle(ledger, begin(ledger, retrying), LATER, Rest(SendState.RETRYING, "why", NOW))
        settle(ledger, begin(ledger, accepted), SENT, DONE)
        before = ground.back.rows("send")
        with ledger.transaction() as tx:
            for send in (leased, retrying, accepted):
                assert not tx.sends.resolve(send.id, SendState.ABANDONED, LATER, "by ann")
        assert ground.back.rows("send") == before
        assert len(ground.back.rows("send_attempt")) == 3


def put_into_review(ground: Ground, ledger: Ledger) -> ClaimedSend:
    """Begin the only send's attempt, lose the lease, and let a person be asked; return the attempt."""
    post(ledger, {"t": ["a@x"]})
    (send,) = claim(ledger)
    begun = begin(ledger, send)
    ground.set_now(NOW + LEASE)
    with ledger.transaction() as tx:
        tx.sends.take_back(10)
    (taken,) = claim(ledger)
    with ledger.transaction() as tx:
        settle_one(tx, taken, None, Rest(SendState.REVIEW, "why"))
        tx.sends.finish_reports([taken.report_id])
    return begun
