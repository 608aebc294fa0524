"""The send ledger: the frozen mails, one send for each recipient, and every attempt.

*Invariants*: an attempt is written before the provider is asked and closed after; of one send at
most one attempt is open; whoever lost the lease changes nothing; ends never change, but by a person.
*Not here*: what may be done next (`domain.sending`), the provider (`ports.mail`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Protocol

from freehold.domain.sending import AttemptKind, SendState
from freehold.ports.mail import Answer, Mail


@dataclass(frozen=True, slots=True)
class NewSend:
    """One recipient of a frozen mail.

    Attributes:
        message_key: unique, the same in every attempt; see `ports.mail.Mail.key`.
        head: the header lines of this recipient's copy, ended by CRLF each.
        mail_digest: SHA-256 in hex over head and body.
        refused: why no mail can be made for this recipient, whose send is REFUSED from the start
            and has no head; None where one was made.
    """

    recipient: str
    message_key: str
    head: str
    mail_digest: str
    unsubscribed: bool = False
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class NewMail:
    """The frozen mail of one report.

    Attributes:
        body: what follows the recipient's head, from the first MIME header on.
    """

    report_id: int
    locale: str
    subject: str
    body: bytes
    sends: tuple[NewSend, ...]
    summary_id: int | None = None


@dataclass(frozen=True, slots=True)
class ClaimedSend:
    """One send in this process's hands.

    Attributes:
        state: as it was before the claim: READY, RETRYING or UNKNOWN.
        attempt: attempts that were begun so far.
        lease_token: the fencing token.
        first_tried_at, last_tried_at: when attempts to send began; None before the first.
    """

    id: int
    report_id: int
    tenant: str
    report_date: date
    recipient: str
    state: SendState
    attempt: int
    lease_token: int
    first_tried_at: datetime | None
    last_tried_at: datetime | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """How an attempt ended, and where that leaves the send.

    Attributes:
        available_at: when RETRYING or UNKNOWN is looked at again; None for the others.
    """

    send: ClaimedSend
    answer: Answer
    state: SendState
    reason: str | None = None
    available_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SendInReview:
    """A send that waits for a person, or that one looks at."""

    id: int
    report_id: int
    recipient: str
    state: SendState
    reason: str | None
    attempt: int


class Sends(Protocol):
    """The send ledger, inside one transaction."""

    def write(self, mails: Sequence[NewMail]) -> int:
        """Freeze the mails of frozen reports and their sends; return how many.

        The reports are SENDING from here on. Again: leaves those that are there as they are.
        """
        ...

    def claim(self, limit: int, lease: timedelta) -> Sequence[ClaimedSend]:
        """Lease sends that are available, the oldest first; those in others' hands stay theirs."""
        ...

    def next_available(self) -> datetime | None:
        """Return when the next send can be claimed, or None."""
        ...

    def load(self, sends: Sequence[ClaimedSend], sender: str) -> Sequence[Mail]:
        """Return the frozen mails, in order, byte for byte as they were written.

        Raises:
            LookupError: a mail's bytes were pruned; a mistake of ours, open sends keep theirs.
        """
        ...

    def begin(self, send: ClaimedSend, kind: AttemptKind, transport: str) -> ClaimedSend | None:
        """Open the next attempt; None where the lease was lost. Commit before the provider is asked.

        Again: a second open attempt is refused by the database.
        """
        ...

    def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        """Close open attempts and give the sends back; False where the lease was lost.

        What was lost is noted in the attempt all the same, so that the trail has the answer.
        """
        ...

    def give_back(self, sends: Sequence[ClaimedSend], available_at: datetime, reason: str) -> int:
        """Return claimed sends that were not begun, in the state they had; return how many."""
        ...

    def renew(self, sends: Sequence[ClaimedSend], lease: timedelta) -> int:
        """Give claimed sends more time; return how many are still ours."""
        ...

    def take_back(self, limit: int) -> int:
        """Take back sends whose lease ended; return how many.

        One with an open attempt becomes UNKNOWN, and its attempt ends so; one without is as it was.
        """
        ...

    def finish_reports(self, limit: int) -> int:
        """Move reports on whose sends have all ended or wait for a person; return how many."""
        ...

    def of_report(self, tenant: str, report_date: date) -> Sequence[SendInReview]:
        """Lock and return the sends of one report, by recipient."""
        ...

    def resolve(self, send_id: int, state: SendState, answer: Answer, reason: str) -> bool:
        """Write what a person said as an attempt of its own; False where the send is in other hands.

        Args:
            state: ACCEPTED, ABANDONED, or READY to be sent again.
        """
        ...
