"""Facts as text: one canonical form, its digest, and the way back.

*Invariants*: the same facts are the same bytes on every machine: JSON in ASCII with sorted keys and
no spaces, instants in UTC with microseconds, spans of time as whole microseconds, never a float;
what is read back is what was written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, date, datetime
from typing import Any

from freehold.domain.facts import FACTS_VERSION, Facts, LateFacts, ReleasedItem, RuleFacts

_SECONDS = "_seconds"
_MICROSECONDS = "_us"  # what such a field is called in the text
_PARTS: dict[str, type] = {"rules": RuleFacts, "late": LateFacts, "items": ReleasedItem}


def canonical(facts: Facts) -> bytes:
    """Write facts as the bytes that are kept, and that the digest is of."""
    written = _object(facts)
    return json.dumps(written, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def facts_digest(body: bytes) -> str:
    """Return the SHA-256 of the canonical form in hex."""
    return hashlib.sha256(body).hexdigest()


def read_facts(text: str) -> Facts:
    """Read the canonical form.

    Raises:
        ValueError: it is none, or of a version that is newer than this code.
    """
    kept = json.loads(text)
    if not isinstance(kept, dict) or kept.get("version") != FACTS_VERSION:
        raise ValueError("these are no facts of a version that this release reads")
    found: Facts = _read(Facts, kept, **{name: _part(name, kept[name]) for name in _PARTS})
    return found


def to_microseconds(seconds: float | None) -> float | None:
    """Round seconds to what the text can hold."""
    return None if seconds is None else round(seconds * 1_000_000) / 1_000_000


def _object(value: Any) -> dict[str, Any]:
    """Write one dataclass; its field names are the keys."""
    return dict(_pair(one.name, getattr(value, one.name)) for one in fields(value))


def _pair(name: str, value: Any) -> tuple[str, Any]:
    if name.endswith(_SECONDS):
        key = name.removesuffix(_SECONDS) + _MICROSECONDS
        return key, None if value is None else round(value * 1_000_000)
    if name in _PARTS:
        return name, [_object(one) for one in value]
    if isinstance(value, datetime):
        return name, _instant_text(value)
    if isinstance(value, date):
        return name, value.isoformat()
    return name, dict(value) if name == "skipped" else value


def _instant_text(instant: datetime) -> str:
    text = instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    return text + "Z"


def _read(kind: Any, kept: dict[str, Any], **known: Any) -> Any:
    """Read one dataclass; what is known already is taken as it is."""
    names = [one.name for one in fields(kind) if one.name not in known]
    return kind(**known, **{name: _value(name, kept) for name in names})


def _part(name: str, kept: list[dict[str, Any]]) -> tuple[Any, ...]:
    return tuple(_read(_PARTS[name], one) for one in kept)


def _value(name: str, kept: dict[str, Any]) -> Any:
    if name.endswith(_SECONDS):
        count = kept[name.removesuffix(_SECONDS) + _MICROSECONDS]
        return None if count is None else count / 1_000_000
    value, reader = kept[name], _reader(name)
    return value if value is None or reader is None else reader(value)


def _reader(name: str) -> Callable[[str], Any] | None:
    if name.endswith("_at"):
        return datetime.fromisoformat
    return date.fromisoformat if name == "report_date" else None
