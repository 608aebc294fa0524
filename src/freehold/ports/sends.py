"""The send ledger: the frozen mails, one send for each recipient, and every attempt.

*Invariants*: an attempt is written before the provider is asked and closed after; of one send at
most one attempt is open; whoever lost the lease changes nothing; ends never change, but by a person.
*Not here*: what may be done next (`domain.sending`), the provider (`ports.mail`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Protocol

from freehold.domain.sending import AttemptKind, SendState
from freehold.domain.sending_next import Rest, Standing
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
        attempt: attempts that were begun so far.
        lease_token: the fencing token.
        noted: an acceptance that somebody who had lost the lease brought; None without one.
    """

    id: int
    report_id: int
    tenant: str
    report_date: date
    recipient: str
    attempt: int
    lease_token: int
    standing: Standing
    noted: Answer | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """How an attempt ended, and where that leaves the send.

    Attributes:
        answer: None where nobody was asked, so that no attempt is open.
    """

    send: ClaimedSend
    answer: Answer | None
    rest: Rest


@dataclass(frozen=True, slots=True)
class SendInReview:
    """A send that waits for a person, or that one looks at.

    Attributes:
        has_mail: whether the mail's bytes are still kept.
    """

    id: int
    report_id: int
    recipient: str
    state: SendState
    reason: str | None
    attempt: int
    has_mail: bool


class Sends(Protocol):
    """The send ledger, inside one transaction."""

    def write(self, mails: Sequence[NewMail]) -> int:
        """Freeze the mails of frozen reports and their sends; return how many mails.

        The reports are SENDING from here on, or at their end where no send waits.
        Again: leaves those that are there as they are.
        """
        ...

    def claim(self, limit: int, lease: timedelta) -> Sequence[ClaimedSend]:
        """Lease sends that are available, the oldest first; those in others' hands stay theirs."""
        ...

    def next_available(self) -> datetime | None:
        """Return when the next send can be claimed or taken back, or None."""
        ...

    def load(self, sends: Sequence[ClaimedSend], sender: str) -> Sequence[Mail | None]:
        """Return the frozen mails, in order, byte for byte as they were written.

        None stands for one whose bytes were pruned.
        """
        ...

    def begin(
        self, send: ClaimedSend, kind: AttemptKind, transport: str, lease: timedelta
    ) -> ClaimedSend | None:
        """Open the next attempt; None where the lease was lost. Commit before the provider is asked.

        From here on the send is leased for so long, which covers the attempt.

        Attempts to send, replays among them, note when and by which transport, and start the count
        of look-ups anew; by another transport, the first attempt is counted anew too. Again: a second
        open attempt is refused by the database.
        """
        ...

    def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        """Close open attempts and give the sends back; False where the lease was lost.

        What was lost is noted in the attempt all the same, so that the trail has the answer; an
        acceptance ends a send that is in review, unless a person has spoken since the attempt.
        Again: as if the lease was lost.
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

    def finish_reports(self, report_ids: Iterable[int]) -> int:
        """Bring these reports to where their sends are; return how many moved.

        Whoever ends a send calls it in the same transaction, so that no report waits for a sweep:
        reports are locked first, and of two that end the last two sends the later one sees both.
        """
        ...

    def of_report(self, tenant: str, report_date: date) -> Sequence[SendInReview]:
        """Lock and return the sends of one report, by recipient."""
        ...

    def resolve(self, send_id: int, state: SendState, answer: Answer, reason: str) -> bool:
        """Write what a person said as an attempt of its own; False where the send waits for nobody.

        Args:
            state: ACCEPTED, ABANDONED, or READY to be sent again with a fresh count of attempts;
                in REVIEW or REFUSED any of them can be said.
        """
        ...
