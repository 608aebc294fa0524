"""Outbox events in the shape of CloudEvents 1.0.

An event about a target is about no hold: its rule is empty, its hold key is the target's name, its
due is the instant of the pause, and what it carries is the reason. A skip carries its reason too,
and no token: the row may be gone.

Source: https://github.com/cloudevents/spec, version 1.0.2, JSON event format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from freehold.domain.names import operation_key

# What CloudEvents allows in no attribute: nothing at all, control characters, noncharacters.
_NO_SUBJECT = re.compile(
    r"\A\Z|[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
    )
    + "]"
)
TARGET_PREFIX = "target"  # of the keys of events about a target, where others have their rule


class EventType(StrEnum):
    """What an event says happened; the names are public."""

    HOLD_EXPIRED = "hold.expired.v1"
    HOLD_SKIPPED = "hold.skipped.v1"
    HOLD_HELD = "hold.held.v1"
    HOLD_RENEWED = "hold.renewed.v1"
    HOLD_CONFIRMED = "hold.confirmed.v1"
    HOLD_CANCELLED = "hold.cancelled.v1"
    TARGET_PAUSED = "target.paused.v1"


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the outbox.

    Attributes:
        sequence: grows with each event of one hold; has gaps, promises no delivery order.
        tokens: texts of the token columns before the change, by column.
        carry: texts of the carried columns before the change, by column.
    """

    sequence: int
    type: EventType
    rule: str
    tenant: str | None
    hold_key: str
    digest: UUID
    generation: int
    due_at: datetime
    at: datetime
    tokens: Mapping[str, str | None]
    carry: Mapping[str, str | None]

    @property
    def event_key(self) -> str:
        """Return the key by which a consumer knows a repeat."""
        about = TARGET_PREFIX if self.is_about_target else self.rule
        return f"{operation_key(about, self.digest)}:{self.generation}:{self.type}"

    @property
    def is_about_target(self) -> bool:
        """Tell whether it is about a target of events, and no hold."""
        return self.type is EventType.TARGET_PAUSED


def cloud_event(event: Event) -> str:
    """Write the event as CloudEvents JSON, the same bytes at every call.

    A key that may be no attribute of CloudEvents stands in the data alone.
    """
    about = "targets" if event.is_about_target else "rules"
    name = event.hold_key if event.is_about_target else event.rule
    subject = {} if _NO_SUBJECT.search(event.hold_key) else {"subject": event.hold_key}
    envelope = {
        "specversion": "1.0",
        "id": event.event_key,
        "type": event.type.value,
        "source": f"/freehold/{about}/{name}",
        **subject,
        "time": event.at.isoformat(),
        "datacontenttype": "application/json",
        "data": _data(event),
    }
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))


def _data(event: Event) -> dict[str, Any]:
    if event.is_about_target:
        return _of_target(event)
    return _of_skip(event) if event.type is EventType.HOLD_SKIPPED else _of_hold(event)


def _of_skip(event: Event) -> dict[str, Any]:
    return {**_of_hold(event), "carry": {}, "reason": event.carry.get("reason")}


def _of_hold(event: Event) -> dict[str, Any]:
    return {
        "rule": event.rule,
        "tenant": event.tenant,
        "key": event.hold_key,
        "due_at": event.due_at.isoformat(),
        "at": event.at.isoformat(),
        "token": dict(event.tokens),
        "carry": dict(event.carry),
        "operation_key": operation_key(event.rule, event.digest),
        "generation": event.generation,
        "sequence": str(event.sequence),
    }


def _of_target(event: Event) -> dict[str, Any]:
    return {
        "target": event.hold_key,
        "reason": event.carry.get("reason"),
        "paused_at": event.due_at.isoformat(),
    }
