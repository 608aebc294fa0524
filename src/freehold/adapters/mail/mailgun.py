"""Mails over Mailgun: the frozen message as it is, no idempotency, and a look-up in its events.

*Source*: documentation.mailgun.com: messages.mime, events (`GET /v3/DOMAIN/events`, kept for at least
3 days), filter-field, and event-polling, which calls a page trustworthy after half an hour. A filter
by `user-variables` is documented nowhere and finds nothing (mailgun/mailgun-php issue 720), so the
events of the recipient are read and compared here. *Limits*: Mailgun calls this interface deprecated
in favour of its logs.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from freehold.adapters.mail.answers import (
    Ended,
    accepted,
    fault_of,
    found,
    is_bare,
    refused,
    transient,
)
from freehold.adapters.mail.http_client import Client, Reply, Request, objects_of
from freehold.adapters.mail.payload import message_id
from freehold.domain.sending import Repeat, SendOutcome, TransportPromise
from freehold.ports.mail import Answer, Mail

URL = "https://api.mailgun.net"  # https://api.eu.mailgun.net for accounts in Europe
_VARIABLE = "freehold-key"
_INDEXING = timedelta(minutes=30)
_KEPT = timedelta(days=2, hours=12)  # of 3 days, with a margin for clocks
_CLOCK_MARGIN = timedelta(minutes=10)
_PAGE_MAX = 300


class MailgunTransport:
    """Implements `ports.mail.Transport`."""

    def __init__(self, key: str, domain: str, *, url: str = URL, seconds: float = 30.0) -> None:
        login = b64encode(f"api:{key}".encode()).decode()
        headers = {"Authorization": f"Basic {login}"}
        self._client = Client("Mailgun", url, seconds, secret=key, headers=headers)
        self._domain = domain

    def __repr__(self) -> str:
        """Show no secret."""
        return f"MailgunTransport({self._client!r}, {self._domain!r})"

    @property
    def promise(self) -> TransportPromise:
        """It sends again, and can be asked."""
        return TransportPromise(
            "mailgun",
            Repeat.SENDS,
            looks_up=True,
            indexing=_INDEXING,
            attempt_seconds_max=self._client.seconds_max,
        )

    def send(self, mails: Iterable[Mail]) -> Iterator[Answer]:
        """Send mails one after the other."""
        for mail in mails:
            yield self._attempt(mail)

    def _attempt(self, mail: Mail) -> Answer:
        if not is_bare(mail.recipient):  # a comma would be a second recipient
            return refused("an address cannot stand in an envelope as it is")
        if fault := fault_of(mail.message):
            return refused(f"{fault}; a mistake of ours, nothing was sent")
        request = Request(
            "POST",
            f"/v3/{quote(self._domain)}/messages.mime",
            form={"to": mail.recipient, f"v:{_VARIABLE}": mail.key, "o:tracking": "no"},
            files={"message": ("message.mime", mail.message, "message/rfc822")},
        )
        try:
            reply = self._client.ask(request)
        except Ended as ended:
            return ended.answer
        reference = reply.said.get("id")
        if reply.is_success and isinstance(reference, str):
            return accepted(reference.strip("<>"), str(reply.status))
        return self._client.usual(reply)

    def look_up(self, mails: Sequence[tuple[Mail, datetime]]) -> Sequence[Answer]:
        """Read the events of each recipient since the first attempt."""
        return [self._look_up(mail, tried_at) for mail, tried_at in mails]

    def _look_up(self, mail: Mail, tried_at: datetime) -> Answer:
        parameters = {
            "recipient": mail.recipient,
            "event": "accepted OR delivered OR failed",
            "begin": str((tried_at - _CLOCK_MARGIN).timestamp()),
            "ascending": "yes",
            "limit": str(_PAGE_MAX),
        }
        try:
            reply = self._client.look(self._events(parameters))
        except Ended as ended:
            return ended.answer
        items = objects_of(reply.said.get("items"))
        own_id = message_id(mail.message)
        for one in items:
            if _is_of(one, mail.key, own_id):
                return found(_id_of(one))
        return _not_found(reply, len(items), tried_at)

    def _events(self, parameters: Mapping[str, str]) -> Request:
        return Request("GET", f"/v3/{quote(self._domain)}/events", parameters=parameters)

    def check(self) -> str | None:
        """Read one event of the domain, which shows key and domain."""
        try:
            self._client.look(self._events({"limit": "1"}))
        except Ended as ended:
            return ended.answer.text
        return None

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()


def _is_of(event: Mapping[str, Any], key: str, own_id: str) -> bool:
    """Tell whether an event is of this mail: by our variable, or by its Message-ID."""
    variables = objects_of([event.get("user-variables")])
    return key in [one.get(_VARIABLE) for one in variables] or _id_of(event) == own_id


def _id_of(event: Mapping[str, Any]) -> str:
    for message in objects_of([event.get("message")]):
        for headers in objects_of([message.get("headers")]):
            return str(headers.get("message-id") or "").strip("<>")
    return ""


def _not_found(reply: Reply, count: int, tried_at: datetime) -> Answer:
    """Say that there is none, but only where that can be known."""
    if count >= _PAGE_MAX:
        return transient("Mailgun has more events of this recipient than one page holds", "200")
    if reply.at is None or reply.at - tried_at > _KEPT:
        return transient("Mailgun may have forgotten events that are so old", "200")
    return Answer(SendOutcome.NOT_FOUND, code="200", text="Mailgun has no mail under this key")
