"""Answers in words that may stand in a trail: bounded, without addresses and secrets."""

from __future__ import annotations

import re

from freehold.domain.sending import SendOutcome
from freehold.ports.mail import Answer

TEXT_LENGTH_MAX = 500  # of `Answer.text`
REFERENCE_LENGTH_MAX = 200
CODE_LENGTH_MAX = 100
ADDRESS_LENGTH_MAX = 254  # RFC 5321 4.5.3.1.3, less the brackets
# Generous: whatever stands around an @ is left out, also half an address.
_ADDRESS = re.compile(r"[^\s<>\"'(),;:\[\]=]*@[^\s<>\"'(),;\[\]]*")

_NUMBER = re.compile(r"^\[Errno -?\d+\] ")


class Ended(Exception):
    """The attempt is over before its last step; raised and caught inside an adapter only."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.text)
        self.answer = answer


def plain(text: str, *secrets: str | None, length_max: int = TEXT_LENGTH_MAX) -> str:
    """Make a provider's words fit for the trail: one line of printable characters, bounded."""
    text = _one_line(text)
    for secret in secrets:
        if secret:
            text = text.replace(_one_line(secret), "[secret]")
    return _bounded(_ADDRESS.sub("[address]", text), length_max)


def in_words(error: Exception) -> str:
    """Name an error of the operating system in its own words, without their number."""
    return _NUMBER.sub("", str(error)) or type(error).__name__


def _one_line(text: str) -> str:
    return " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())


def _bounded(text: str, length_max: int) -> str:
    return text if len(text) <= length_max else text[: length_max - 3] + "..."


def named(text: str) -> str:
    """Make a provider's own name of a mail fit for a row; it may look like an address."""
    return _bounded(_one_line(text), REFERENCE_LENGTH_MAX)


def accepted(reference: str | None, code: str, text: str = "") -> Answer:
    """The provider took the mail."""
    reference = None if reference is None else named(reference)
    return Answer(SendOutcome.ACCEPTED, reference=reference, code=code, text=text)


def found(reference: str) -> Answer:
    """A look-up found the mail."""
    return Answer(SendOutcome.FOUND, reference=named(reference), code="200")


def refused(text: str, code: str = "", *, everyone: bool = False) -> Answer:
    """It will never take the mail so."""
    return Answer(SendOutcome.REFUSED, code=code, text=text, everyone=everyone)


def transient(text: str, code: str = "", *, everyone: bool = False) -> Answer:
    """It surely did not take it."""
    return Answer(SendOutcome.TRANSIENT, code=code, text=text, everyone=everyone)


def unknown(text: str, code: str = "") -> Answer:
    """It may have taken it."""
    return Answer(SendOutcome.UNKNOWN, code=code, text=text)


def fault_of(mail_message: bytes) -> str | None:
    """Say why bytes cannot be mailed as they are, or None.

    A bare CR or LF is an end of line to some servers and not to others: what follows could pass for
    a command (CVE-2023-51764 and its kin).
    """
    if b"\0" in mail_message:
        return "the frozen mail holds a NUL byte"
    if re.search(rb"\r(?!\n)|(?<!\r)\n", mail_message):
        return "the frozen mail has a line that does not end in CRLF"
    if not mail_message.endswith(b"\r\n"):
        return "the frozen mail does not end in CRLF"
    return None


def is_bare(address: str) -> bool:
    """Tell whether an address can stand in an envelope as it is."""
    local, at, domain = address.rpartition("@")
    if not (local and at and domain) or len(address) > ADDRESS_LENGTH_MAX:
        return False
    return not any(ch in '<>(),;:"[]\\' or ch.isspace() or not ch.isprintable() for ch in address)
