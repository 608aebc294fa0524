"""Log lines: an allow-list of fields, one event a line, and nothing that a screen obeys."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from io import StringIO
from typing import Any, ClassVar

import pytest

from freehold.adapters.logs import ALLOWED, FieldNotAllowed, LogLines
from freehold.ports.telemetry import Event, Level
from freehold.testing.contracts.telemetry import EXAMPLES, HOSTILE


@dataclass(frozen=True, slots=True)
class Gossip(Event):
    """An event that somebody wrote in a hurry."""

    name: ClassVar[str] = "gossip"
    rule: str
    guest_name: str


def lines(*events: Event, level: Level = Level.DEBUG, strict: bool = True) -> list[dict[str, Any]]:
    stream = StringIO()
    logs = LogLines(stream, level=level, strict=strict)
    for event in events:
        logs.tell(event)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_field_that_is_not_on_the_list_raises_in_tests() -> None:
    with pytest.raises(FieldNotAllowed, match="guest_name"):
        lines(Gossip("cart", "Ada"))


def test_a_field_that_is_not_on_the_list_is_left_out_in_production() -> None:
    (line,) = lines(Gossip("cart", "Ada"), strict=False)
    assert line.keys() == {"event", "level", "at", "rule"}


def test_every_event_is_one_line_of_allowed_fields() -> None:
    found = lines(*EXAMPLES)
    assert [line["event"] for line in found] == [event.name for event in EXAMPLES]
    assert all(line.keys() <= {"event", "level", "at", *ALLOWED} for line in found)


def test_a_hostile_value_stays_a_value() -> None:
    stream = StringIO()
    logs = LogLines(stream, level=Level.DEBUG)
    for event in EXAMPLES:
        logs.tell(event)
    text = stream.getvalue()
    assert len(text.split("\n")) == len(EXAMPLES) + 1
    unsafe = {"Cc", "Cf", "Zl", "Zp", "Cs"}
    assert {one for one in text if unicodedata.category(one) in unsafe} == {"\n"}
    hostile = [line for line in map(json.loads, text.splitlines()) if "hold_key" in line]
    assert {line["hold_key"] for line in hostile} == {HOSTILE}


def test_every_character_that_a_screen_obeys_is_escaped() -> None:
    unsafe = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in {"Cc", "Zl", "Zp"}
        or unicodedata.bidirectional(chr(code)) in {"LRE", "RLE", "LRO", "RLO", "PDF"}
        or unicodedata.bidirectional(chr(code)) in {"LRI", "RLI", "FSI", "PDI"}
        or chr(code) in "\u200e\u200f\u061c"
    ]
    for start in range(0, len(unsafe), 100):
        part = "".join(unsafe[start : start + 100])
        stream = StringIO()
        LogLines(stream).tell(Gossip(part, ""))
        shown = stream.getvalue()
        assert not set(shown[:-1]) & set(part)
        assert json.loads(shown)["rule"] == part


def test_a_long_value_is_cut() -> None:
    (line,) = lines(Gossip("x" * 1000, ""), strict=False)
    assert len(line["rule"]) == 200


def test_what_matters_less_is_left_out() -> None:
    names = {line["event"] for line in lines(*EXAMPLES, level=Level.INFO)}
    assert "released" not in names
    assert {"batch", "dead", "attempt failed"} <= names
    assert {line["level"] for line in lines(*EXAMPLES, level=Level.WARNING)} == {"warning"}
