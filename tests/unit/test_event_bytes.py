"""The bytes of events are frozen: an upgrade between two attempts must not change what is sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from freehold.domain.events import Event, EventType, cloud_event

AT = datetime(2031, 5, 6, 7, 8, 9, 10, tzinfo=UTC)
NUMBER = "00000000-0000-0000-0000-000000000007"
HOLD = (
    '{"specversion":"1.0","id":"cart:NUMBER:2:TYPE","type":"TYPE","source":"/freehold/rules/cart",'
    '"subject":"é/7","time":"2031-05-06T07:08:09.000010+00:00","datacontenttype":"application/json",'
    '"data":{"rule":"cart","tenant":null,"key":"é/7","due_at":"2031-05-06T07:08:00+00:00",'
    '"at":"2031-05-06T07:08:09.000010+00:00","token":{"v":"1"},'
    '"carry":{"reason":"renewed","unit_id":null},"operation_key":"cart:NUMBER","generation":2,'
    '"sequence":"9007199254740993"}}'
)
SKIPPED = HOLD.replace('{"reason":"renewed","unit_id":null}', "{}").replace(
    '"9007199254740993"', '"9007199254740993","reason":"renewed"'
)
PAUSED = (
    '{"specversion":"1.0","id":"target:NUMBER:2:TYPE","type":"TYPE",'
    '"source":"/freehold/targets/é/7","subject":"é/7","time":"2031-05-06T07:08:09.000010+00:00",'
    '"datacontenttype":"application/json","data":{"target":"é/7","reason":"renewed",'
    '"paused_at":"2031-05-06T07:08:00+00:00"}}'
)
OTHERS = {EventType.HOLD_SKIPPED: SKIPPED, EventType.TARGET_PAUSED: PAUSED}


@pytest.mark.parametrize("kind", EventType)
def test_an_event_of_each_type_keeps_its_bytes(kind: EventType) -> None:
    """Those that are kept can be replayed to a consumer that knows them by their bytes."""
    due_at = AT - timedelta(seconds=9, microseconds=10)
    carry = {"reason": "renewed", "unit_id": None}
    event = Event(
        2**53 + 1, kind, "cart", None, "é/7", UUID(NUMBER), 2, due_at, AT, {"v": "1"}, carry
    )
    frozen = OTHERS.get(kind, HOLD).replace("NUMBER", NUMBER).replace("TYPE", kind.value)
    assert cloud_event(event) == frozen
