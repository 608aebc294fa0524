"""The reference page is the vocabulary's own, and the allow-list has no dead entry."""

from __future__ import annotations

from freehold.adapters.logs import ALLOWED
from freehold.ports import telemetry
from freehold.ports.telemetry import EVENTS, Event
from tests.telemetry.page import PAGE, page, told_fields

LATER = {"trace_id"}  # told once there are traces


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.telemetry.page"


def test_the_allow_list_is_what_events_hold() -> None:
    assert told_fields() | LATER == set(ALLOWED)


def test_every_event_is_in_the_vocabulary_under_a_name_of_its_own() -> None:
    every = {
        one
        for one in vars(telemetry).values()
        if isinstance(one, type) and issubclass(one, Event) and one is not Event
    }
    assert every == set(EVENTS)
    assert len({event.name for event in EVENTS}) == len(EVENTS)
