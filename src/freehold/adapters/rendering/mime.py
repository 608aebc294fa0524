"""From a report's parts to the bytes of a mail: one body, and a head for each recipient.

*Invariants*: boundaries come from what they bound, never from chance; a head has the fields that
were asked for and no others, each once, which is checked by reading it back; what a tenant is called
stands in no field but the subject, encoded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email import message_from_bytes
from email.header import Header
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from freehold.domain.addresses import read_address
from freehold.domain.errors import UsageError
from freehold.domain.facts import Facts
from freehold.domain.reports import ReportPolicy
from freehold.domain.unsubscribing import token

_HASH_LENGTH = 20  # hex digits: 80 bits, for keys that are unique over all tenants for ever
_LINE_MAX = 998  # RFC 5322
_ONE_LINE = SMTP.clone(max_line_length=_LINE_MAX)  # what the library folds, it may garble
_WORD_LENGTH = 75  # RFC 2047, of a line of encoded words
Fields = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a mail is made of; `table` is None where nothing was released."""

    language: str
    text: str
    html: str
    table: bytes | None
    table_name: str


# -------------------------------------------------------------------------------------------- body


def body_of(parts: Parts) -> bytes:
    """Return the MIME body with its own fields, from `MIME-Version` on."""
    both = EmailMessage(policy=SMTP)
    both.set_content(parts.text, cte="quoted-printable")
    both.add_alternative(parts.html, subtype="html", cte="quoted-printable")
    both.set_boundary(_boundary("alternative", parts))
    for part in both.iter_parts():
        part["Content-Language"] = parts.language
        del part["MIME-Version"]
    if parts.table is None:
        return _whole(both)
    whole = EmailMessage(policy=SMTP)
    whole.make_mixed(_boundary("mixed", parts))
    del both["MIME-Version"]
    whole.attach(both)
    whole.add_attachment(
        parts.table,
        maintype="text",
        subtype="csv",
        filename=parts.table_name,
        params={"charset": "utf-8", "header": "present"},
    )
    del whole.get_payload(1)["MIME-Version"]  # type: ignore[union-attr]
    return _whole(whole)


def _whole(message: EmailMessage) -> bytes:
    """Return the bytes with `MIME-Version` in front, where the recipient's fields end."""
    del message["MIME-Version"]
    return b"MIME-Version: 1.0\r\n" + message.as_bytes(policy=SMTP)


def _boundary(what: str, parts: Parts) -> str:
    """Return a boundary that stands in no part: neither encoding can write `=_`."""
    digest = hashlib.sha256(what.encode())
    for part in (parts.text.encode(), parts.html.encode(), parts.table or b""):
        digest.update(hashlib.sha256(part).digest())
    return f"=_freehold_{digest.hexdigest()[:32]}"


# ------------------------------------------------------------------------------------------- heads


@dataclass(frozen=True, slots=True)
class Addressed:
    """What the heads of one report share.

    Attributes:
        dated_at: what the mail says of when it was written.
    """

    facts: Facts
    policy: ReportPolicy
    sender_name: str
    subject: str
    dated_at: datetime


def head_of(mail: Addressed, recipient: str) -> tuple[str, str]:
    """Return the message key and the header lines of one recipient's copy.

    Raises:
        UsageError: the address cannot stand in a header.
    """
    try:
        to = read_address(recipient)
    except ValueError as error:
        raise UsageError(f"A recipient of a report {error}; set the tenant's recipients.") from None
    key = _message_key(mail.facts, to)
    fields = _fields(mail, to, key)
    head = "".join(_line(name, value) for name, value in fields)
    _check(head, fields)
    return key, head


def _message_key(facts: Facts, recipient: str) -> str:
    day = facts.report_date.isoformat()
    whose = _hash(f"recipient\0{facts.tenant}\0{day}\0{recipient}")
    return f"report.{_tenant_hash(facts)}.{day}.{whose}"


def _tenant_hash(facts: Facts) -> str:
    """Return what stands for the tenant in headers, which may be called anything."""
    return _hash(f"tenant\0{facts.tenant}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_HASH_LENGTH]


def _fields(mail: Addressed, to: str, key: str) -> Fields:
    policy, tenant = mail.policy, _tenant_hash(mail.facts)
    domain = policy.sender.rpartition("@")[2]
    fields = [
        ("From", f"{mail.sender_name} <{policy.sender}>"),
        ("To", to),
        ("Subject", mail.subject),
        ("Date", format_datetime(mail.dated_at)),
        ("Message-ID", f"<{key}@{domain}>"),
    ]
    if policy.reply_to:
        fields.append(("Reply-To", policy.reply_to))
    fields.append(("List-Id", f"<{tenant}.report.{domain}>"))
    fields += _unsubscribe(policy, mail.facts.tenant, to)
    fields += [
        ("Auto-Submitted", "auto-generated"),  # RFC 3834
        ("X-Auto-Response-Suppress", "All"),
        ("X-Freehold-Report", f"{tenant}/{mail.facts.report_date.isoformat()}"),
    ]
    return fields


def _unsubscribe(policy: ReportPolicy, tenant: str, to: str) -> Fields:
    """Return what RFC 2369 and, for https alone, RFC 8058 want."""
    if not policy.unsubscribe:
        return ()
    url = policy.unsubscribe.replace("{token}", token(tenant, to))
    one_click = ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
    fields = (("List-Unsubscribe", f"<{url}>"),)
    return (*fields, one_click) if url.startswith("https:") else fields


def _line(name: str, value: str) -> str:
    """Return one header line.

    The library's own folding loses blanks between encoded words, so a text that is not plain ASCII
    is encoded as a whole.
    """
    if not value.isascii() or len(value) > _LINE_MAX - len(name) - len(": "):
        text, _, address = value.partition(" <") if name == "From" else (value, "", "")
        encoded = Header(text, "utf-8", maxlinelen=_WORD_LENGTH, header_name=name)
        tail = f" <{address}" if address else ""
        return f"{name}: {encoded.encode(linesep=SMTP.linesep)}{tail}{SMTP.linesep}"
    return str(_ONE_LINE.fold(*_ONE_LINE.header_store_parse(name, value)))


def _check(head: str, fields: Fields) -> None:
    """Read the head back: it must say what was meant, and nothing else.

    Raises:
        ValueError: it does not; a mistake of ours, or a trick that nobody thought of.
    """
    message = message_from_bytes(f"{head}\r\n".encode("ascii"), policy=SMTP)
    names = [name for name, _ in fields]
    if message.keys() != names or message.defects or message.get_payload():
        raise ValueError("a mail's head does not read back as it was written")
    if any(str(message[name]) != value for name, value in fields):
        raise ValueError("a field of a mail's head does not read back as it was written")
