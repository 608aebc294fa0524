"""What a person says of a mail whose end nobody knows, or that was refused.

*Invariants*: the words, the attempt that keeps them and the entry in the action log commit together;
an accepted mail is never sent again; what a sender has in hand is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import StrEnum

from freehold.application.review import Person
from freehold.domain.errors import RefusedByState, UsageError
from freehold.domain.sending import SendOutcome, SendState
from freehold.ports.ledger import Act, Ledger, Transaction
from freehold.ports.mail import Answer
from freehold.ports.report_insight import send_subject
from freehold.ports.sends import SendInReview


class Verdict(StrEnum):
    """What a person may say."""

    ACCEPTED = "accepted"
    RESEND = "resend"
    ABANDON = "abandon"


_MEANS = {
    Verdict.ACCEPTED: (SendState.ACCEPTED, SendOutcome.ACCEPTED),
    Verdict.RESEND: (SendState.READY, SendOutcome.SEND_AGAIN),
    Verdict.ABANDON: (SendState.ABANDONED, SendOutcome.ABANDONED),
}
_OPEN_TO = {
    SendState.REVIEW: frozenset(Verdict),
    SendState.REFUSED: frozenset({Verdict.RESEND, Verdict.ABANDON}),
}
_WHY_NOT = {
    SendState.READY: "waits to be sent by itself; pause the role report to stop that",
    SendState.RETRYING: "is tried again by itself; pause the role report to stop that",
    SendState.UNKNOWN: "is being cleared up with its provider; look again in some minutes",
    SendState.LEASED: "is in the hands of a sender; look again in some minutes",
    SendState.ACCEPTED: "was accepted, and is never sent again",
    SendState.REFUSED: "was refused by its provider; say resend or abandon",
    SendState.ABANDONED: "was given up already",
    SendState.UNSUBSCRIBED: "is not sent, as the recipient has unsubscribed",
}


def resolve(
    ledger: Ledger,
    tenant: str,
    report_date: date,
    recipient: str | None,
    verdict: Verdict,
    by: str,
    reason: str,
) -> Sequence[SendInReview]:
    """Say how sends ended, or what becomes of them; return them as they were.

    Args:
        recipient: None for all of the report that wait for a person.

    Again: refused, as nothing waits any more.

    Raises:
        UsageError: there is no such report or recipient, or name or reason is missing.
        RefusedByState: nothing waits for a person, or what was named does not.
    """
    person = Person(by, reason)
    with ledger.transaction() as tx:
        sends = tx.sends.of_report(tenant, report_date)
        named = f"{tenant or 'nobody'} {report_date}"
        chosen = _chosen(sends, recipient, named)
        for send in chosen:
            _require_open(send, verdict, f"The mail of {named} to {send.recipient}")
        for send in chosen:
            subject = send_subject(tenant, report_date, send.recipient)
            _say(tx, send, verdict, person, subject)
        tx.sends.finish_reports(send.report_id for send in chosen)
    return chosen


def _chosen(
    sends: Sequence[SendInReview], recipient: str | None, named: str
) -> Sequence[SendInReview]:
    if not sends:
        raise UsageError(
            f"There is no mail of {named}; `freehold report list` shows what there is."
        )
    if recipient is None:
        waiting = [one for one in sends if one.state is SendState.REVIEW]
        if not waiting:
            raise RefusedByState(
                f"No mail of {named} waits for a person; name a --recipient for one that was refused."
            )
        return waiting
    found = [one for one in sends if one.recipient == recipient]
    if not found:
        raise UsageError(
            f"The report of {named} has no mail to {recipient}; `freehold report show` lists them."
        )
    return found


def _require_open(send: SendInReview, verdict: Verdict, called: str) -> None:
    if verdict not in _OPEN_TO.get(send.state, frozenset()):
        raise RefusedByState(f"{called} {_WHY_NOT[send.state]}.")
    if verdict is Verdict.RESEND and not send.has_mail:
        raise RefusedByState(f"{called} cannot be sent again: its bytes are not kept any more.")


def _say(
    tx: Transaction, send: SendInReview, verdict: Verdict, person: Person, subject: str
) -> None:
    state, outcome = _MEANS[verdict]
    said = f"{verdict}, said {person.name}: {person.reason}"
    tx.sends.resolve(send.id, state, Answer(outcome, text=said), said)
    tx.actions.record(
        Act(
            person.name,
            "report resolve",
            subject,
            person.reason,
            before=send.state.value,
            after=verdict.value,
        )
    )
