"""Mails over Postmark: no idempotency, and a look-up by metadata.

*Source*: postmarkapp.com/developer: api/email-api, api/messages-api, api/overview (error codes);
metadata is searched as `metadata_NAME=VALUE`. *Limits*: Postmark builds the message itself; `X-PM-KeepID` keeps our
Message-ID. How fast its index is, it does not say; five minutes are our own caution.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from freehold.adapters.mail.answers import Ended, accepted, fault_of, found, refused, transient
from freehold.adapters.mail.http_client import (
    Client,
    Reply,
    Request,
    not_now,
    objects_of,
    refused_to_everyone,
)
from freehold.adapters.mail.payload import Parts, read_parts
from freehold.domain.sending import Repeat, SendOutcome, TransportPromise
from freehold.ports.mail import Answer, Mail

URL = "https://api.postmarkapp.com"
_METADATA = "freehold-key"  # a name has at most 20 characters, a value 80
_VALUE_LENGTH_MAX = 80
_INDEXING = timedelta(minutes=5)
# Messages are kept for 45 days, for 7 where an account chose the least; a margin for clocks.
_KEPT = timedelta(days=6, hours=12)

# Error codes of api/overview. The account's or the sender's: token, signature, credit, stream.
_OF_THE_ACCOUNT = frozenset({10, 400, 401, 405, 412, 413, 1235})
_MAINTENANCE = 100
_RATE_LIMIT = 429
_INACTIVE_RECIPIENT = 406


class PostmarkTransport:
    """Implements `ports.mail.Transport`."""

    def __init__(
        self, token: str, *, stream: str = "outbound", url: str = URL, seconds: float = 30.0
    ) -> None:
        headers = {"X-Postmark-Server-Token": token}
        self._client = Client("Postmark", url, seconds, secret=token, headers=headers)
        self._stream = stream

    def __repr__(self) -> str:
        """Show no secret."""
        return f"PostmarkTransport({self._client!r}, stream={self._stream!r})"

    @property
    def promise(self) -> TransportPromise:
        """It sends again, and can be asked."""
        return TransportPromise(
            "postmark",
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
        if fault := fault_of(mail.message):
            return refused(f"{fault}; a mistake of ours, nothing was sent")
        headers = {"Content-Type": "application/json"}
        body = payload(read_parts(mail.message), mail, self._stream)
        try:
            reply = self._client.ask(Request("POST", "/email", headers, body))
        except Ended as ended:
            return ended.answer
        return self._answer(reply)

    def _answer(self, reply: Reply) -> Answer:
        said, reference = reply.said.get("ErrorCode", 0), reply.said.get("MessageID")
        error = said if isinstance(said, int) else -1
        if reply.is_success and error == 0 and isinstance(reference, str):
            return accepted(reference, str(reply.status))
        usual = self._client.usual(reply, f"{reply.status} {error}")
        if error in _OF_THE_ACCOUNT:
            return refused_to_everyone(usual)
        if error in {_MAINTENANCE, _RATE_LIMIT}:
            return not_now(usual)
        if error == _INACTIVE_RECIPIENT:
            return refused(usual.text, usual.code)
        return usual

    def look_up(self, mails: Sequence[tuple[Mail, datetime]]) -> Sequence[Answer]:
        """Search for mails by their metadata, one request each: it takes one field at a time."""
        return [self._look_up(mail, tried_at) for mail, tried_at in mails]

    def _look_up(self, mail: Mail, tried_at: datetime) -> Answer:
        value = metadata_of(mail.key)
        parameters = {"count": "10", "offset": "0", f"metadata_{_METADATA}": value}
        try:
            reply = self._client.look(_search(parameters))
        except Ended as ended:
            return ended.answer
        for one in objects_of(reply.said.get("Messages")):
            # A search that does not know a filter returns everything: believe only what says it.
            metadata = objects_of([one.get("Metadata")])
            if value in [names.get(_METADATA) for names in metadata]:
                return found(str(one.get("MessageID")))
        if reply.at is None or reply.at - tried_at > _KEPT:
            return transient("Postmark may have forgotten a mail that is so old", "200")
        return Answer(SendOutcome.NOT_FOUND, code="200", text="Postmark has no mail under this key")

    def check(self) -> str | None:
        """Search for one message, which needs the token that sending needs."""
        try:
            self._client.look(_search({"count": "1", "offset": "0"}))
        except Ended as ended:
            return ended.answer.text
        return None

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()


def _search(parameters: dict[str, str]) -> Request:
    return Request("GET", "/messages/outbound", parameters=parameters)


def metadata_of(key: str) -> str:
    """Return a key as a value of metadata; a long one by its digest."""
    return key if len(key) <= _VALUE_LENGTH_MAX else sha256(key.encode()).hexdigest()


def payload(parts: Parts, mail: Mail, stream: str) -> bytes:
    """Write a mail in Postmark's fields."""
    headers = [{"Name": name, "Value": value} for name, value in parts.headers]
    fields: dict[str, Any] = {
        "From": parts.sender,
        "To": mail.recipient,
        "Subject": parts.subject,
        "TextBody": parts.text,
        "HtmlBody": parts.html,
        "ReplyTo": parts.reply_to,
        "Headers": [*headers, {"Name": "X-PM-KeepID", "Value": "true"}],
        "Attachments": [
            {"Name": one.name, "Content": one.content, "ContentType": one.kind}
            for one in parts.attachments
        ],
        "Metadata": {_METADATA: metadata_of(mail.key)},
        "MessageStream": stream,
        "TrackLinks": "None",  # a link is to stay what it is
    }
    # Whether a report is read is nobody's business.
    fields_said = {"TrackOpens": False} | {name: value for name, value in fields.items() if value}
    return json.dumps(fields_said).encode()
