"""The send ledger in SQL; implements `ports.sends.Sends`.

*Invariants*: every write to a send carries the lease's token and the attempt that it speaks of; what
decides after a lock is read by a statement of its own, which sees what was committed before.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from freehold.adapters.sql.session import Row, Runner
from freehold.domain.reports import ReportReason, ReportState
from freehold.domain.sending import AttemptKind, SendOutcome, SendState, report_standing
from freehold.domain.sending_next import HEARD_LATE, Standing
from freehold.ports.mail import Answer, Mail
from freehold.ports.sends import ClaimedSend, NewMail, NewSend, SendInReview, Settlement

LOST = "whoever sent it was lost, and so was the answer"
RETURNED = "whoever had it in hand was lost before it was tried"
ACCEPTANCES = (SendOutcome.ACCEPTED, SendOutcome.FOUND)
ANSWER_LENGTH = 500  # characters; evidence, not an archive


class SqlSends:
    """Mails, sends and attempts inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def _each(self, name: str, each: Sequence[Mapping[str, Any]]) -> list[int]:
        """Execute a statement once for each set of parameters."""
        shared = {"now": self._now}
        text = self._sql.text(name)
        return self._sql.session.run_each(text, [{**shared, **one} for one in each])

    # -------------------------------------------------------------------------------- writing

    def write(self, mails: Sequence[NewMail]) -> int:
        """Freeze mails and their sends."""
        written = self._each("add_mail", [_mail_row(mail) for mail in mails])
        new = [mail for mail, count in zip(mails, written, strict=True) if count]
        rows = [_send_row(mail.report_id, send) for mail in new for send in mail.sends]
        self._each("add_send", rows)
        self.finish_reports(mail.report_id for mail in new)
        return len(new)

    # ------------------------------------------------------------------------------- the lease

    def claim(self, limit: int, lease: timedelta) -> Sequence[ClaimedSend]:
        """Lease sends that are available."""
        rows = self._sql.rows("claim_sends", now=self._now, limit=limit)
        if not rows:
            return []
        token = self._sql.rows("next_lease_token")[0][0]
        until = self._now + lease
        self._each(
            "lease_send", [{"id": row[0], "until": until, "lease_token": token} for row in rows]
        )
        return [self._claimed(row, token) for row in rows]

    def _claimed(self, row: Row, token: int) -> ClaimedSend:
        instant = self._sql.session.instant
        standing = Standing(
            state=SendState(row[6]),
            due_at=self._sql.session.sure_instant(row[7]),
            spent_count=row[8],
            look_count=row[9],
            first_tried_at=instant(row[10]),
            last_tried_at=instant(row[11]),
            transport=row[12],
        )
        noted = None if row[13] is None else _noted(*row[13:17])
        return ClaimedSend(
            id=row[0],
            report_id=row[1],
            tenant=row[2],
            report_date=_date(row[3]),
            recipient=row[4],
            attempt=row[5],
            lease_token=token,
            standing=standing,
            noted=noted,
        )

    def next_available(self) -> datetime | None:
        """Return when the next send can be claimed or taken back."""
        found = [self._sql.session.instant(value) for value in self._sql.rows("next_send")[0]]
        return min((at for at in found if at is not None), default=None)

    def renew(self, sends: Sequence[ClaimedSend], lease: timedelta) -> int:
        """Give claimed sends more time."""
        until = self._now + lease
        return sum(self._each("renew_send", [{**_fence(one), "until": until} for one in sends]))

    def give_back(self, sends: Sequence[ClaimedSend], available_at: datetime, reason: str) -> int:
        """Return claimed sends that were not begun."""
        what = {"available_at": available_at, "reason": reason}
        return sum(self._each("give_back_send", [{**_fence(one), **what} for one in sends]))

    def take_back(self, limit: int) -> int:
        """Take back sends whose lease ended."""
        ids = [row[0] for row in self._sql.rows("ended_send_leases", now=self._now, limit=limit)]
        begun = self._each("end_lost_attempt", [{"id": one, "reason": LOST} for one in ids])
        taken = [
            {"id": one, "was_begun": was_begun, "reason": LOST if was_begun else RETURNED}
            for one, was_begun in zip(ids, begun, strict=True)
        ]
        return sum(self._each("take_back_send", taken))

    # ----------------------------------------------------------------------------- an attempt

    def load(self, sends: Sequence[ClaimedSend], sender: str) -> Sequence[Mail | None]:
        """Return the frozen mails."""
        bodies = {one: self._body(one) for one in dict.fromkeys(send.report_id for send in sends)}
        return [self._mail(send, sender, bodies[send.report_id]) for send in sends]

    def _body(self, report_id: int) -> bytes | None:
        body = self._sql.rows("mail_body", report_id=report_id)[0][0]
        return None if body is None else zlib.decompress(body)

    def _mail(self, send: ClaimedSend, sender: str, body: bytes | None) -> Mail | None:
        key, recipient, head = self._sql.rows("send_head", id=send.id)[0]
        return None if body is None else Mail(key, sender, recipient, head.encode() + body)

    def begin(
        self, send: ClaimedSend, kind: AttemptKind, transport: str, lease: timedelta
    ) -> ClaimedSend | None:
        """Open the next attempt."""
        fence = _fence(send)
        what = {**fence, "until": self._now + lease, "now": self._now}
        if kind is AttemptKind.LOOK_UP:
            begun = self._sql.count("begin_look_up", **what)
        else:
            begun = self._sql.count("begin_try", **what, transport=transport)
        if not begun:
            return None
        what = {**fence, "attempt": send.attempt + 1, "kind": kind.value, "transport": transport}
        self._sql.count("begin_attempt", **what, now=self._now)
        standing = send.standing.begun(kind, transport, self._now)
        return replace(send, attempt=send.attempt + 1, standing=standing)

    def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        """Close open attempts and give the sends back."""
        settled = self._each("settle_send", [_settlement_row(one) for one in settlements])
        asked = [
            (_answer_row(one.send, one.answer), held)
            for one, held in zip(settlements, settled, strict=True)
            if one.answer is not None
        ]
        self._each("end_attempt", [row for row, held in asked if held])
        late = [row for row, held in asked if not held]
        self._each("note_answer", late)
        self._each("accept_late", [_late_row(row) for row in late if row["outcome"] in ACCEPTANCES])
        return [bool(held) for held in settled]

    # ---------------------------------------------------------------------------- the reports

    def finish_reports(self, report_ids: Iterable[int]) -> int:
        """Bring reports to where their sends are."""
        return sum(self._finish(one) for one in sorted(set(report_ids)))

    def _finish(self, report_id: int) -> int:
        there = tuple(self._sql.rows("lock_report", id=report_id)[0])
        state, reason = self._standing(report_id)
        what = {"state": state.value, "reason": None if reason is None else reason.value}
        if there == tuple(what.values()):
            return 0
        return self._sql.count(
            "move_report", id=report_id, **what, is_end=int(state.is_end), now=self._now
        )

    def _standing(self, report_id: int) -> tuple[ReportState, ReportReason | None]:
        if self._sql.rows("open_send", report_id=report_id):
            return ReportState.SENDING, None
        counts = self._sql.rows("sends_by_state", report_id=report_id)
        return report_standing({SendState(state): count for state, count in counts})

    # ------------------------------------------------------------------------------- a person

    def of_report(self, tenant: str, report_date: date) -> Sequence[SendInReview]:
        """Lock and return the sends of one report."""
        day = report_date.isoformat()
        rows = self._sql.rows("sends_of_report", tenant=tenant, report_date=day)
        return sorted(map(_in_review, rows), key=lambda one: one.recipient)

    def resolve(self, send_id: int, state: SendState, answer: Answer, reason: str) -> bool:
        """Write what a person said."""
        what = {"state": state.value, "reason": reason, "reference": answer.reference}
        if not self._sql.count("resolve_send", id=send_id, **what, now=self._now):
            return False
        self._sql.count("add_resolve", id=send_id, now=self._now, **_said(answer))
        return True


def _in_review(row: Row) -> SendInReview:
    return SendInReview(
        id=row[0],
        report_id=row[1],
        recipient=row[2],
        state=SendState(row[3]),
        reason=row[4],
        attempt=row[5],
        has_mail=bool(row[6]),
    )


def _noted(outcome: str, reference: str | None, code: str | None, text: str | None) -> Answer:
    return Answer(SendOutcome(outcome), reference, code or "", text or "")


def _date(value: Any) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)


def _fence(send: ClaimedSend) -> dict[str, Any]:
    return {"id": send.id, "lease_token": send.lease_token, "attempt": send.attempt}


def _said(answer: Answer) -> dict[str, Any]:
    return {
        "outcome": answer.outcome.value,
        "reference": answer.reference,
        "code": answer.code or None,
        "answer": answer.text.replace("\x00", "")[:ANSWER_LENGTH] or None,
    }


def _answer_row(send: ClaimedSend, answer: Answer) -> dict[str, Any]:
    return {**_fence(send), **_said(answer)}


def _late_row(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("id", "lease_token", "attempt", "reference")
    return {**{name: row[name] for name in kept}, "reason": HEARD_LATE}


def _settlement_row(one: Settlement) -> dict[str, Any]:
    uncounted = int(one.answer is not None and not one.rest.counts)
    looked = one.send.standing.look_count > 0  # the attempt in hand is a look-up, if any is
    reference = None if one.answer is None else one.answer.reference
    return {
        **_fence(one.send),
        "state": one.rest.state.value,
        "reason": one.rest.reason,
        "available_at": one.rest.available_at,
        "reference": reference,
        "spent_back": 0 if looked else uncounted,
        "looks_back": uncounted if looked else 0,
    }


def _mail_row(mail: NewMail) -> dict[str, Any]:
    return {
        "report_id": mail.report_id,
        "locale": mail.locale,
        "subject": mail.subject,
        "body": zlib.compress(mail.body),
        "body_digest": hashlib.sha256(mail.body).hexdigest(),
        "byte_count": len(mail.body),
        "summary_id": mail.summary_id,
    }


def _send_row(report_id: int, send: NewSend) -> dict[str, Any]:
    state = SendState.UNSUBSCRIBED if send.unsubscribed else SendState.READY
    if send.refused is not None:
        state = SendState.REFUSED
    return {
        "report_id": report_id,
        "recipient": send.recipient,
        "message_key": send.message_key,
        "head": send.head,
        "mail_digest": send.mail_digest,
        "state": state.value,
        "reason": send.refused,
    }
