from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.domain.messages import (
    PAYLOAD_BYTES_MAX,
    RAW_BYTES_KEPT,
    Message,
    Unreadable,
    read_message,
    write_message,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
MESSAGES = st.builds(
    Message,
    operation_id=st.integers(1, 2**63 - 1),
    operation_key=TEXTS,
    rule=TEXTS,
    hold_key=TEXTS,
    due_at=st.datetimes(timezones=st.just(UTC)),
    attempt=st.integers(1, 100),
    trace_context=st.none() | TEXTS,
)
MESSAGE = Message(7, "r:7", "r", "7", datetime(2031, 5, 6, tzinfo=UTC), 1)


@given(MESSAGES)
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    payload = write_message(message)
    assert len(payload) <= PAYLOAD_BYTES_MAX
    assert read_message(payload) == message


@given(st.binary(max_size=3_000))
def test_reading_never_raises(payload: bytes) -> None:
    read = read_message(payload)
    assert isinstance(read, Unreadable)
    assert (read.raw, read.length_bytes) == (payload[:RAW_BYTES_KEPT], len(payload))


@given(
    st.sampled_from(list(json.loads(write_message(MESSAGE)))),
    st.none() | st.booleans() | st.floats() | st.integers() | st.lists(st.none()) | st.just("x"),
)
def test_a_field_of_another_kind_is_unreadable_or_harmless(field: str, value: Any) -> None:
    fields = {**json.loads(write_message(MESSAGE)), field: value}
    read = read_message(json.dumps(fields).encode())
    if isinstance(read, Message):
        assert type(getattr(read, field, 1)) in (int, str, type(None))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"v": 2}, "version"),
        ({"operation_id": True}, "TypeError"),
        ({"operation_id": 2**63}, "ValueError"),
        ({"operation_id": 0}, "ValueError"),
        ({"due_at": "2031-05-06T00:00:00"}, "ValueError"),
        ({"due_at": 1}, "TypeError"),
        ({"rule": None}, "TypeError"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], reason: str) -> None:
    fields = {**json.loads(write_message(MESSAGE)), **changes}
    read = read_message(json.dumps(fields).encode())
    assert isinstance(read, Unreadable)
    assert reason in read.reason


def test_fields_of_a_later_program_are_passed_over() -> None:
    fields = {**json.loads(write_message(MESSAGE)), "colour": "green"}
    assert read_message(json.dumps(fields).encode()) == MESSAGE


def test_deep_nesting_is_unreadable() -> None:
    assert isinstance(read_message(b"[" * 60_000), Unreadable)
