"""The contract of `ports.sends.Sends`."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from freehold.domain.reports import ReportReason, ReportState
from freehold.domain.sending import AttemptKind, SendOutcome, SendState
from freehold.domain.sending_next import Rest, Standing
from freehold.ports.ledger import Ledger
from freehold.ports.mail import Answer, Mail
from freehold.ports.retention import Subject
from freehold.ports.sends import ClaimedSend, Settlement
from freehold.testing.contracts.ground import NOW, SECOND, Ground, only
from freehold.testing.postroom import BODY, DATE, DAY, freeze_reports, mail_of, post

LEASE = timedelta(seconds=60)
SENT = Answer(SendOutcome.ACCEPTED, "ref-1", "250", "queued")
REFUSED = Answer(SendOutcome.REFUSED, None, "550", "no such mailbox")
LATER = Answer(SendOutcome.TRANSIENT, None, "451", "later")
DONE = Rest(SendState.ACCEPTED)


class SendsContract:
    """Give the fixture `ground`."""

    # -------------------------------------------------------------------------------- writing

    def test_a_written_mail_is_kept_byte_for_byte(self, ground: Ground) -> None:
        ledger = ground.open()
        ids = post(ledger, {"t": ["b@x", "a@x"]})
        row = only(ground.back.rows("mail"))
        assert zlib.decompress(row["body"]) == BODY
        assert row["body_digest"] == hashlib.sha256(BODY).hexdigest()
        assert (row["report_id"], row["byte_count"], row["frozen_at"]) == (ids["t"], len(BODY), NOW)
        sends = claim(ledger)
        with ledger.transaction() as tx:
            mails = tx.sends.load(sends, "s@x")
        wanted = mail_of(ids["t"], ["b@x", "a@x"])
        for mail, new, row in zip(mails, wanted.sends, ground.back.rows("send"), strict=True):
            assert mail == Mail(new.message_key, "s@x", new.recipient, new.head.encode() + BODY)
            assert row["mail_digest"] == hashlib.sha256(mail.message).hexdigest()

    def test_a_mail_is_written_once_and_moves_its_report_on(self, ground: Ground) -> None:
        ledger = ground.open()
        ids = freeze_reports(ledger, ["t"])
        mail = mail_of(ids["t"], ["a@x"])
        with ledger.transaction() as tx:
            assert tx.sends.write([mail]) == 1
        with ledger.transaction() as tx:
            assert tx.sends.write([mail]) == 0
            assert tx.sends.write([]) == 0
        assert len(ground.back.rows("send")) == 1
        assert report(ground) == ("sending", None, None)

    def test_a_mail_for_nobody_is_at_its_end(self, ground: Ground) -> None:
        ledger = ground.open()
        ids = freeze_reports(ledger, ["t", "u"])
        with ledger.transaction() as tx:
            mails = mail_of(ids["t"], ["a@x"], unsubscribed="a@x"), mail_of(ids["u"], [])
            assert tx.sends.write(mails) == 2
        assert claim(ledger) == []
        assert reports(ground) == {
            ids["t"]: ("not sent", "every recipient has unsubscribed", NOW),
            ids["u"]: ("not sent", "no recipient", NOW),
        }

    def test_a_report_that_ended_without_a_mail_can_be_frozen_again(self, ground: Ground) -> None:
        ledger = ground.open()
        ids = freeze_reports(ledger, ["t", "u"])
        with ledger.transaction() as tx:
            assert not tx.reports.reopen("t", DATE)
            tx.reports.end([ids["t"]], ReportState.NOT_SENT, ReportReason.NO_RECIPIENT)
            tx.sends.write([mail_of(ids["u"], [])])
        facts = [row["facts"] for row in ground.back.rows("report")]
        with ledger.transaction() as tx:
            assert not tx.reports.reopen("t", DATE + DAY)
            assert not tx.reports.reopen("u", DATE)  # it has a mail
            assert tx.reports.reopen("t", DATE)
            assert not tx.reports.reopen("t", DATE)
        assert [row["facts"] for row in ground.back.rows("report")] == facts
        assert reports(ground)[ids["t"]] == ("frozen", None, None)

    def test_pruned_bytes_are_told(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        (send,) = claim(ledger)
        with ledger.transaction() as tx:
            settle_one(tx, send, None, Rest(SendState.REVIEW, "why"))
            assert [one.has_mail for one in tx.sends.of_report("t", DATE)] == [True]
            tx.sends.resolve(send.id, SendState.ABANDONED, SENT, "why")
            tx.sends.finish_reports([send.report_id])
            assert tx.retention.prune(Subject.MAILS, NOW + DAY, None, 10).removed_count == 1
        with ledger.transaction() as tx:
            assert tx.sends.load([send], "s@x") == [None]
            assert [one.has_mail for one in tx.sends.of_report("t", DATE)] == [False]

    # ------------------------------------------------------------------------------- the lease

    def test_a_claim_names_what_is_known(self, ground: Ground) -> None:
        ledger = ground.open()
        ids = post(ledger, {"t": ["a@x"]})
        (send,) = claim(ledger)
        assert (send.report_id, send.tenant, send.report_date) == (ids["t"], "t", DATE)
        assert (send.recipient, send.attempt, send.noted) == ("a@x", 0, None)
        frozen_at = NOW  # later than the report was due
        assert send.standing == Standing(SendState.READY, frozen_at)

    def test_a_claim_is_bounded_and_the_oldest_come_first(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["b@x", "a@x", "c@x"]})
        ground.set_now(NOW + SECOND)
        post(ledger, {"u": ["d@x"]})
        assert [one.recipient for one in claim(ledger, 2)] == ["b@x", "a@x"]
        assert [one.recipient for one in claim(ledger)] == ["c@x", "d@x"]
        assert claim(ledger) == []

    def test_what_is_not_available_yet_is_not_claimed(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        with ledger.transaction() as tx:
            assert tx.sends.next_available() == NOW
        (send,) = claim(ledger)
        with ledger.transaction() as tx:
            assert tx.sends.next_available() == NOW + LEASE
            at = NOW + 2 * SECOND
            settle_one(tx, send, None, Rest(SendState.RETRYING, "why", at))
            assert tx.sends.next_available() == at
        ground.set_now(NOW + SECOND)
        assert claim(ledger) == []
        ground.set_now(NOW + 2 * SECOND)
        (again,) = claim(ledger)
        assert again.standing.state is SendState.RETRYING

    def test_nothing_waits_in_an_empty_ledger(self, ground: Ground) -> None:
        with ground.open().transaction() as tx:
            assert tx.sends.next_available() is None

    def test_what_another_transaction_has_in_hand_is_left_to_it(self, ground: Ground) -> None:
        if not ground.transactions_overlap():
            return
        mine, other = ground.open(), ground.open()
        post(mine, {"t": ["a@x", "b@x"]})
        with mine.transaction() as tx:
            assert [one.recipient for one in tx.sends.claim(1, LEASE)] == ["a@x"]
            assert [one.recipient for one in claim(other)] == ["b@x"]

    def test_given_back_sends_are_as_they_were(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x", "b@x"]})
        first, second = claim(ledger)
        with ledger.transaction() as tx:
            begun = tx.sends.begin(first, AttemptKind.SEND, "x", LEASE)
            assert tx.sends.give_back([first, second], NOW + SECOND, "stopping") == 1
            assert tx.sends.give_back([first, second], NOW, "again") == 0
        row = ground.back.rows("send")[1]
        assert (row["state"], row["reason"], row["available_at"]) == (
            "ready",
            "stopping",
            NOW + SECOND,
        )
        assert begun is not None

    def test_a_renewed_lease_lasts_longer(self, ground: Ground) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x"]})
        sends = claim(ledger)
        ground.set_now(NOW + LEASE - SECOND)
        with ledger.transaction() as tx:
            assert tx.sends.renew(sends, LEASE) == 1
        ground.set_now(NOW + LEASE + SECOND)
        with ledger.transaction() as tx:
            assert tx.sends.take_back(10) == 0
        ground.set_now(NOW + 2 * LEASE)
        with ledger.transaction() as tx:
            assert tx.sends.renew(sends, LEASE) == 0
            assert tx.sends.take_back(10) == 1
            assert tx.sends.renew(sends, LEASE) == 0

    def test_an_ended_lease_is_taken_back_as_unknown_where_it_was_begun(
        self, ground: Ground
    ) -> None:
        ledger = ground.open()
        post(ledger, {"t": ["a@x", "b@x"]})
        first, _ = claim(ledger)
        begin(ledger, first)
        at = NOW + LEASE
        ground.set_now(at)
        with ledger.transaction() as tx:
            assert tx.sends.take_back(1) == 1
            assert tx.sends.take_back(10) == 1
            assert tx.sends.take_back(10) == 0
        assert [row["state"] for row in ground.back.rows("send")] == ["unknown", "ready"]
        row = only(ground.back.rows("send_attempt"))
        assert (row["outcome"], row["ended_at"]) == ("unknown", at)
        lost, returned = sorted(claim(ledger), key=lambda one: one.id)
        assert lost.standing.state is SendState.UNKNOWN
        assert (lost.standing.transport, lost.standing.first_tried_at) == ("x", NOW)
        assert returned.standing.state is SendState.READY


def claim(ledger: Ledger, limit: int = 10) -> Sequence[ClaimedSend]:
    """Claim and commit."""
    with ledger.transaction() as tx:
        return tx.sends.claim(limit, LEASE)


def begin(
    ledger: Ledger,
    send: ClaimedSend,
    kind: AttemptKind = AttemptKind.SEND,
    transport: str = "x",
    lease: timedelta = LEASE,
) -> ClaimedSend:
    """Begin an attempt and commit."""
    with ledger.transaction() as tx:
        begun = tx.sends.begin(send, kind, transport, lease)
    assert begun is not None
    return begun


def settle(ledger: Ledger, send: ClaimedSend, answer: Answer, rest: Rest) -> bool:
    """Settle an attempt with its report, and commit."""
    with ledger.transaction() as tx:
        held = settle_one(tx, send, answer, rest)
        tx.sends.finish_reports([send.report_id])
        return held


def settle_one(tx: Any, send: ClaimedSend, answer: Answer | None, rest: Rest) -> bool:
    """Settle one attempt."""
    (held,) = tx.sends.settle([Settlement(send, answer, rest)])
    return bool(held)


def report(ground: Ground) -> tuple[Any, Any, Any]:
    """Return state, reason and end of the only report."""
    (found,) = reports(ground).values()
    return found


def reports(ground: Ground) -> Mapping[int, tuple[Any, Any, Any]]:
    """Return state, reason and end of each report."""
    rows = ground.back.rows("report")
    return {row["id"]: (row["state"], row["reason"], row["ended_at"]) for row in rows}
