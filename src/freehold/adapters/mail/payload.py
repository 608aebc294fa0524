"""A frozen message taken apart, for providers that build mails from fields.

*Invariants*: the same bytes give the same parts, in every process and at every time: a provider that
remembers a key compares the whole payload, so a change here is a new payload for mails under way.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP

# What the providers write themselves, or take as fields of their own.
_NOT_CUSTOM = frozenset(
    {
        "from",
        "to",
        "cc",
        "bcc",
        "subject",
        "reply-to",
        "date",
        "mime-version",
        "return-path",
        "sender",
    }
)


@dataclass(frozen=True, slots=True)
class Attachment:
    """One file of a mail; the content is base64."""

    name: str
    kind: str
    content: str


@dataclass(frozen=True, slots=True)
class Parts:
    """What a mail consists of.

    Attributes:
        headers: those that a provider lets the sender write, in order; not the content's own.
    """

    sender: str
    subject: str
    reply_to: str | None
    text: str
    html: str
    headers: tuple[tuple[str, str], ...]
    attachments: tuple[Attachment, ...]


def read_parts(message: bytes) -> Parts:
    """Take a frozen message apart."""
    mail = message_from_bytes(message, policy=SMTP)
    return Parts(
        sender=str(mail["From"]),
        subject=str(mail["Subject"]),
        reply_to=None if mail["Reply-To"] is None else str(mail["Reply-To"]),
        text=_body(mail, "plain"),
        html=_body(mail, "html"),
        headers=tuple((name, str(value)) for name, value in mail.items() if _is_custom(name)),
        attachments=tuple(_attachment(part) for part in mail.iter_attachments()),
    )


def message_id(message: bytes) -> str:
    """Return the Message-ID of a frozen message, without its brackets."""
    return str(message_from_bytes(message, policy=SMTP)["Message-ID"]).strip().strip("<>")


def _is_custom(name: str) -> bool:
    return name.lower() not in _NOT_CUSTOM and not name.lower().startswith("content-")


def _body(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    return "" if part is None else str(part.get_content()).replace("\r\n", "\n")


def _attachment(part: EmailMessage) -> Attachment:
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    return Attachment(
        part.get_filename() or "attachment", part.get_content_type(), b64encode(content).decode()
    )
