"""Reading mails back at a provider's side, without any code of ours."""

from __future__ import annotations

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from typing import cast

from freehold.testing.contracts.transports import Arrived


def arrived_of(recipient: str, sender: str, message: bytes) -> Arrived:
    """Read a whole message."""
    read = message_from_bytes(message, policy=SMTP)
    attachments = tuple(
        (part.get_filename() or "", cast("bytes", part.get_payload(decode=True)))
        for part in read.iter_attachments()
    )
    return Arrived(
        recipient=recipient,
        sender=sender,
        subject=str(read["Subject"]),
        text=_body(read, "plain"),
        html=_body(read, "html"),
        attachments=attachments,
        headers={name.lower(): str(value) for name, value in read.items()},
        message=message,
    )


def _body(read: EmailMessage, kind: str) -> str:
    part = read.get_body((kind,))
    return "" if part is None else str(part.get_content())
