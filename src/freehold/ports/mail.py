"""Handing frozen mails to a provider, one recipient each.

*Invariants*: one call of a method is one attempt: an adapter never repeats by itself, and neither
does its library; nothing that a provider or a network does raises.
*Not here*: when to try, and again (`application.sending`), the rows (`ports.sends`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from freehold.domain.sending import SendOutcome, TransportPromise


@dataclass(frozen=True, slots=True)
class Mail:
    """One frozen mail to one recipient.

    Attributes:
        key: the idempotency key, the same in every attempt: 1 to 100 characters of
            `[A-Za-z0-9._-]`.
        sender: the envelope's sender, a bare address.
        message: the whole of it, head and body, as RFC 5322 wants it, lines ended by CRLF.
    """

    key: str
    sender: str
    recipient: str
    message: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """How one attempt ended.

    Attributes:
        outcome: ACCEPTED, REFUSED, TRANSIENT or UNKNOWN of a sending; FOUND, NOT_FOUND or TRANSIENT
            of a look-up.
        reference: the provider's own name of the mail, or an SMTP server's queue id.
        code: an SMTP reply code, an HTTP status, or a provider's error name.
        text: what a person reads in the trail; at most 500 characters, no address, no secret.
        retry_after: how long the provider asked to wait; None where it did not say.
        everyone: a refusal or trouble of the account or the sender, that every mail would meet.
    """

    outcome: SendOutcome
    reference: str | None = None
    code: str = ""
    text: str = ""
    retry_after: timedelta | None = None
    everyone: bool = False


class Transport(Protocol):
    """A way to send; belongs to one thread."""

    @property
    def promise(self) -> TransportPromise:
        """Return what it promises about repeats."""
        ...

    def send(self, mails: Iterable[Mail]) -> Iterator[Answer]:
        """Send mails one after the other, and answer each before the next one is asked for.

        The caller notes the attempt when a mail is asked of `mails`, and its end when the answer
        comes. Connections may be kept from one mail to the next.

        Again: another attempt; what it does is `promise.repeat`.
        Crash: before the answer was noted, its end is unknown.
        """
        ...

    def look_up(self, mails: Sequence[tuple[Mail, datetime]]) -> Sequence[Answer]:
        """Ask the provider for mails by their keys; each with the instant of its first attempt.

        Only where `promise.looks_up`. FOUND has the reference; NOT_FOUND means nothing before
        `promise.indexing` is over.
        """
        ...

    def check(self) -> str | None:
        """Try what can be tried without sending; return what is wrong in a sentence, or None."""
        ...

    def close(self) -> None:
        """Give connections back; a second call does nothing."""
        ...
