"""Outbox events in the shape of CloudEvents 1.0.

Source: https://github.com/cloudevents/spec, version 1.0.2, JSON event format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from freehold.domain.names import operation_key


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
        return f"{operation_key(self.rule, self.digest)}:{self.generation}:{self.type}"


def cloud_event(event: Event) -> str:
    """Write the event as CloudEvents JSON, the same bytes at every call."""
    data = {
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
    envelope = {
        "specversion": "1.0",
        "id": event.event_key,
        "type": event.type.value,
        "source": f"/freehold/rules/{event.rule}",
        "subject": event.hold_key,
        "time": event.at.isoformat(),
        "datacontenttype": "application/json",
        "data": data,
    }
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
