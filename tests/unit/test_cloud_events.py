"""Events are CloudEvents 1.0, as the reference reader and the specification's text see them."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from freehold.domain.events import Event, EventType, cloud_event

# The databases hold no NUL and no half of a surrogate pair.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
NAMES = st.from_regex(r"[a-z0-9_-]{1,64}", fullmatch=True)
OPTIONAL = st.none() | TEXTS
FIELDS: dict[str, Any] = {
    "sequence": st.integers(1, 2**63 - 1),
    "rule": NAMES,
    "tenant": OPTIONAL,
    "digest": st.uuids(),
    "generation": st.integers(1, 2**31 - 1),
    "due_at": st.datetimes(timezones=st.just(UTC)),
    "at": st.datetimes(timezones=st.just(UTC)),
    "tokens": st.dictionaries(TEXTS, OPTIONAL, max_size=3),
    "carry": st.dictionaries(TEXTS, OPTIONAL, max_size=3),
}
ABOUT_TARGETS = st.just(EventType.TARGET_PAUSED)
ABOUT_HOLDS = st.sampled_from([one for one in EventType if one is not EventType.TARGET_PAUSED])
EVENTS = st.builds(Event, type=ABOUT_HOLDS, hold_key=TEXTS, **FIELDS) | st.builds(
    Event, type=ABOUT_TARGETS, hold_key=NAMES, **FIELDS
)
# Source: RFC 3339, section 5.6.
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
# Source: RFC 3986, the characters of a path.
PATH = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)+")


def is_allowed(character: str) -> bool:
    """Tell whether CloudEvents 1.0.2, "Type System", allows a character in a String."""
    number = ord(character)
    is_noncharacter = 0xFDD0 <= number <= 0xFDEF or number & 0xFFFE == 0xFFFE
    return unicodedata.category(character) != "Cc" and not is_noncharacter


@given(EVENTS)
def test_the_reference_reader_reads_every_event(event: Event) -> None:
    text = cloud_event(event)
    read = JSONFormat().read(CloudEvent, text.encode())
    assert read.get_specversion() == "1.0"
    assert read.get_id() == event.event_key
    assert read.get_type() == event.type.value
    assert read.get_time() == event.at
    assert read.get_datacontenttype() == "application/json"
    data = read.get_data()
    assert isinstance(data, dict)
    assert data == json.loads(text)["data"]
    again = JSONFormat().read(CloudEvent, JSONFormat().write(read))
    assert again.get_attributes() == read.get_attributes()


@given(EVENTS)
def test_every_attribute_is_what_the_specification_allows(event: Event) -> None:
    envelope = json.loads(cloud_event(event))
    envelope.pop("data")
    assert all(re.fullmatch(r"[a-z0-9]{1,20}", name) for name in envelope)
    for text in envelope.values():
        assert isinstance(text, str)
        assert text
        assert all(map(is_allowed, text))
    assert RFC_3339.fullmatch(envelope["time"])
    assert PATH.fullmatch(envelope["source"])


@given(EVENTS)
def test_the_key_is_never_lost(event: Event) -> None:
    envelope = json.loads(cloud_event(event))
    assert envelope["data"]["target" if event.is_about_target else "key"] == event.hold_key
    could_be = bool(event.hold_key) and all(map(is_allowed, event.hold_key))
    assert envelope.get("subject") == (event.hold_key if could_be else None)


def test_it_is_a_structured_message_over_http() -> None:
    at = datetime(2031, 5, 6, tzinfo=UTC)
    event = Event(
        7, EventType.HOLD_EXPIRED, "cart", None, "é", UUID(int=1), 1, at, at, {}, {"a": None}
    )
    message = HTTPMessage(
        {"content-type": "application/cloudevents+json; charset=utf-8"},
        cloud_event(event).encode(),
    )
    assert from_http_event(message).get_subject() == "é"
