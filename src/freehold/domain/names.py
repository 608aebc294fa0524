"""How holds and operations are named: key text, identity and operation key.

*Invariants*: the same hold, due and tokens give the same digest for ever, on every database.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from json.encoder import encode_basestring
from uuid import UUID

Text = str | None

KEY_BYTES_MAX = 2_400  # PostgreSQL indexes 2,704 bytes, with the rule's name and a digest beside

NO_IDENTITY = "[]"  # of an operation that names no single row: it is never looked up in a table


def pack(values: Sequence[Text]) -> str:
    """Write column texts as one JSON array, byte for byte as both databases write it."""
    return (
        f"[{','.join('null' if value is None else encode_basestring(value) for value in values)}]"
    )


def unpack(packed: str) -> tuple[Text, ...]:
    """Read what `pack` wrote."""
    return tuple(json.loads(packed))


def key_text(values: Sequence[str]) -> str:
    """Name one hold: the bare text of a single key column, else a JSON array of the texts."""
    return values[0] if len(values) == 1 else pack(values)


def key_values(text: str, column_count: int) -> tuple[str, ...]:
    """Split what `key_text` wrote.

    Raises:
        ValueError: the text does not hold `column_count` values; asking again cannot help.
    """
    if column_count == 1:
        return (text,)
    values = json.loads(text)
    if not isinstance(values, list) or len(values) != column_count:
        raise ValueError(f"a key of {column_count} columns was expected, got {text!r}")
    return tuple(str(value) for value in values)


def digest(rule: str, hold_key: str, identity: str) -> UUID:
    """Return the 128-bit name of one granting of one hold under one rule.

    Args:
        identity: `pack` of the due text and the token texts.

    Source: SHA-256 cut to 128 bits, FIPS 180-4; MD5 is refused on hardened hosts.
    """
    text = pack((rule, hold_key, identity))
    return UUID(bytes=hashlib.sha256(text.encode()).digest()[:16])


def window_key(begins_at: datetime, until: datetime) -> str:
    """Name a window by its span, both ends in UTC."""
    first, last = (at.astimezone(UTC).replace(tzinfo=None) for at in (begins_at, until))
    return f"window {first.isoformat()}Z/{last.isoformat()}Z"


def operation_key(rule: str, identity_digest: UUID) -> str:
    """Return the text form of an operation's identity, stable over every redelivery."""
    return f"{rule}:{identity_digest}"
