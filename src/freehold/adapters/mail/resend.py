"""Mails over Resend: a repeat under the same key gets the first answer, for 24 hours.

*Source*: resend.com/docs: api-reference/emails/send-email, api-reference/errors, and
dashboard/emails/idempotency-keys. *Limits*: Resend builds the message itself, from the fields of the
frozen one; mails cannot be looked up by a key of ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from freehold.adapters.mail.answers import Ended, accepted, fault_of, refused, transient, unknown
from freehold.adapters.mail.http_client import (
    Client,
    Reply,
    Request,
    later,
    not_now,
    refused_to_everyone,
)
from freehold.adapters.mail.payload import Parts, read_parts
from freehold.domain.sending import Repeat, TransportPromise
from freehold.ports.mail import Answer, Mail

URL = "https://api.resend.com"
# It says 24 hours; the rest is for clocks that differ and for an attempt under way.
_WINDOW = timedelta(hours=23)
_IN_PROGRESS_WAIT = timedelta(seconds=5)
_QUOTA_WAIT = timedelta(hours=1)


class ResendTransport:
    """Implements `ports.mail.Transport`."""

    def __init__(self, key: str, *, url: str = URL, seconds: float = 30.0) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._client = Client("Resend", url, seconds, secret=key, headers=headers)

    def __repr__(self) -> str:
        """Show no secret."""
        return f"ResendTransport({self._client!r})"

    @property
    def promise(self) -> TransportPromise:
        """A repeat replays, inside the window."""
        return TransportPromise(
            "resend", Repeat.REPLAYS, _WINDOW, attempt_seconds_max=self._client.seconds_max
        )

    def send(self, mails: Iterable[Mail]) -> Iterator[Answer]:
        """Send mails one after the other."""
        for mail in mails:
            yield self._attempt(mail)

    def _attempt(self, mail: Mail) -> Answer:
        if fault := fault_of(mail.message):
            return refused(f"{fault}; a mistake of ours, nothing was sent")
        headers = {"Content-Type": "application/json", "Idempotency-Key": mail.key}
        body = payload(read_parts(mail.message), mail.recipient)
        try:
            reply = self._client.ask(Request("POST", "/emails", headers, body))
        except Ended as ended:
            return ended.answer
        return self._answer(reply)

    def _answer(self, reply: Reply) -> Answer:
        reference = reply.said.get("id")
        if reply.is_success and isinstance(reference, str):
            return accepted(reference, str(reply.status))
        name = str(reply.said.get("name") or "")
        usual = self._client.usual(reply, f"{reply.status} {name}".strip())
        match name:
            case "invalid_idempotent_request":
                # Something else was taken under this key: a mail of an older release, perhaps.
                text = "Resend took another mail under this key before; this one it did not take"
                return unknown(text, usual.code)
            case "concurrent_idempotent_requests":
                # An earlier request under the key is at work, and may be accepted.
                return later(unknown(usual.text, usual.code), _IN_PROGRESS_WAIT)
            case "daily_quota_exceeded" | "monthly_quota_exceeded":
                return later(not_now(usual), _QUOTA_WAIT)
            case "invalid_from_address" | "invalid_access" | "invalid_region":
                return refused_to_everyone(usual)
        return usual

    def look_up(self, mails: Sequence[tuple[Mail, datetime]]) -> Sequence[Answer]:
        """Find nothing: Resend cannot be asked for a key."""
        return [transient("Resend cannot be asked for a mail by its key") for _ in mails]

    def check(self) -> str | None:
        """List the domains; a key that may only send is refused that by name, and is good."""
        try:
            reply = self._client.ask(Request("GET", "/domains"))
        except Ended as ended:
            return ended.answer.text
        if reply.is_success or reply.said.get("name") == "restricted_api_key":
            return None
        return self._client.words(reply)

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()


def payload(parts: Parts, recipient: str) -> bytes:
    """Write a mail in Resend's fields; the same parts give the same bytes."""
    fields: dict[str, Any] = {
        "from": parts.sender,
        "to": [recipient],
        "subject": parts.subject,
        "text": parts.text,
        "html": parts.html,
        "headers": dict(parts.headers),
        "attachments": [
            {"filename": one.name, "content": one.content, "content_type": one.kind}
            for one in parts.attachments
        ],
    }
    if parts.reply_to:
        fields["reply_to"] = parts.reply_to
    return json.dumps({name: value for name, value in fields.items() if value}).encode()
