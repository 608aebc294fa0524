"""The command `ExpireHold` as it travels over a broker, and payloads that nobody can read.

*Invariants*: a message names work and never carries tokens or the rest of the fence; reading never
raises, whatever the bytes; a payload that a later version wrote with more fields is still read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar

T = TypeVar("T")

VERSION = 1
PAYLOAD_BYTES_MAX = 65_536  # sixteen times a key of 3 kB with every letter escaped
ID_END = 2**63  # a larger number makes the database refuse the statement with its whole batch
RAW_BYTES_KEPT = 1_000  # of an unreadable payload: evidence, not an archive


@dataclass(frozen=True, slots=True)
class Message:
    """One hint that an operation is ready.

    Attributes:
        due_at: the instant that made the hold eligible.
        attempt: the attempt that handling it is about to make, from 1; the ledger has the last word.
    """

    operation_id: int
    operation_key: str
    rule: str
    hold_key: str
    due_at: datetime
    attempt: int
    trace_context: str | None = None


_FIELDS = tuple(one.name for one in fields(Message))
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A payload that is no message.

    Attributes:
        raw: its first `RAW_BYTES_KEPT` bytes.
        length_bytes: how long it was.
        digest: SHA-256 over the whole of it, in hex.
        reason: why it cannot be read, in a few words without its content.
    """

    raw: bytes
    length_bytes: int
    digest: str
    reason: str


def write_message(message: Message) -> bytes:
    """Write a message as JSON, the same bytes at every call."""
    told = {"v": VERSION} | {name: getattr(message, name) for name in _FIELDS}
    return _ENCODE(told | {"due_at": message.due_at.isoformat()}).encode()


def read_message(payload: bytes) -> Message | Unreadable:
    """Read what `write_message` wrote; anything else is unreadable."""
    if len(payload) > PAYLOAD_BYTES_MAX:
        return _unreadable(payload, f"longer than {PAYLOAD_BYTES_MAX} bytes")
    try:
        fields = json.loads(payload.decode())
    except (ValueError, RecursionError):
        return _unreadable(payload, "not JSON in UTF-8")
    if not isinstance(fields, dict):
        return _unreadable(payload, "not a JSON object")
    if fields.get("v") != VERSION:
        return _unreadable(payload, f"not of version {VERSION}")
    try:
        return _message(fields)
    except (KeyError, TypeError, ValueError) as error:
        return _unreadable(payload, f"a field is missing or wrong ({type(error).__name__})")


def _message(fields: dict[str, Any]) -> Message:
    due_at = datetime.fromisoformat(fields["due_at"])
    if due_at.tzinfo is None:
        raise ValueError("an instant without an offset")
    trace = fields.get("trace_context")
    return Message(
        operation_id=_id(fields["operation_id"]),
        operation_key=_typed(fields["operation_key"], str),
        rule=_typed(fields["rule"], str),
        hold_key=_typed(fields["hold_key"], str),
        due_at=due_at,
        attempt=_typed(fields["attempt"], int),
        trace_context=None if trace is None else _typed(trace, str),
    )


def _id(value: Any) -> int:
    number = _typed(value, int)
    if not 0 < number < ID_END:
        raise ValueError("no id of an operation")
    return number


def _typed(value: Any, kind: type[T]) -> T:
    """Return the value if it is exactly of its kind; true is no number."""
    if type(value) is not kind:
        raise TypeError(f"{kind.__name__} was expected")
    return value


def _unreadable(payload: bytes, reason: str) -> Unreadable:
    digest = hashlib.sha256(payload).hexdigest()
    return Unreadable(payload[:RAW_BYTES_KEPT], len(payload), digest, reason)
