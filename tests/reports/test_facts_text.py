"""Facts have one canonical form: what is read back is what was written, and no byte changes unseen."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.domain.facts import Facts, LateFacts, ReleasedItem, RuleFacts
from freehold.domain.facts_text import canonical, facts_digest, read_facts

texts = st.text(max_size=20)
counts = st.integers(0, 2**53)
instants = st.datetimes(timezones=st.just(UTC))
dates = st.dates()
seconds = st.integers(0, 2**50).map(lambda count: count / 1_000_000)
maybe_seconds = st.none() | seconds
rules = st.builds(
    RuleFacts,
    rule=texts,
    released_count=counts,
    unit_count=counts,
    skipped=st.dictionaries(texts, counts, max_size=3),
    retried_count=counts,
    dead_count=counts,
    oldest_due_at=st.none() | instants,
    lag_p50_seconds=maybe_seconds,
    lag_p95_seconds=maybe_seconds,
    lag_max_seconds=maybe_seconds,
    promise_seconds=maybe_seconds,
    within_promise_count=st.none() | counts,
)
some_facts = st.builds(
    Facts,
    tenant=texts,
    tenant_name=texts,
    report_date=dates,
    start_at=instants,
    end_at=instants,
    zone=texts,
    tz_version=texts,
    watermark_at=instants,
    frozen_at=instants,
    rules=st.lists(rules, max_size=2).map(tuple),
    late=st.lists(st.builds(LateFacts, st.none() | dates, counts, counts), max_size=2).map(tuple),
    items=st.lists(
        st.builds(ReleasedItem, texts, texts, st.none() | texts, instants, instants, seconds),
        max_size=2,
    ).map(tuple),
    day_before_count=st.none() | counts,
    week_before_count=st.none() | counts,
    version=st.just(1),
)
MIDNIGHT = datetime(2026, 3, 28, 23, tzinfo=UTC)
FACTS = Facts(
    tenant="t",
    tenant_name="Häuser \u202e\x00",
    report_date=date(2026, 3, 29),
    start_at=MIDNIGHT,
    end_at=MIDNIGHT + timedelta(hours=23),
    zone="Europe/Berlin",
    tz_version="2026f",
    watermark_at=MIDNIGHT,
    frozen_at=MIDNIGHT,
    rules=(RuleFacts("cart", 2, skipped={"gone": 1}, promise_seconds=60, lag_max_seconds=0.1),),
    items=(ReleasedItem("cart", "1", None, MIDNIGHT, MIDNIGHT, 0.5),),
)


@given(some_facts)
def test_what_is_read_back_is_what_was_written(facts: Facts) -> None:
    body = canonical(facts)
    assert read_facts(body.decode("ascii")) == facts
    assert canonical(read_facts(body.decode())) == body


def test_the_same_facts_are_the_same_bytes() -> None:
    berlin = timezone(timedelta(hours=1))
    same = replace(FACTS, start_at=FACTS.start_at.astimezone(berlin))
    shuffled = replace(FACTS.rules[0], skipped={"renewed": 1, "gone": 1})
    sorted_ones = replace(FACTS.rules[0], skipped={"gone": 1, "renewed": 1})
    assert canonical(same) == canonical(FACTS)
    assert canonical(replace(FACTS, rules=(shuffled,))) == canonical(
        replace(FACTS, rules=(sorted_ones,))
    )


def test_no_number_is_written_as_a_float() -> None:
    def refuse(text: str) -> float:
        raise AssertionError(text)

    kept = json.loads(canonical(FACTS), parse_float=refuse)
    assert (kept["rules"][0]["promise_us"], kept["items"][0]["lag_us"]) == (60_000_000, 500_000)
    assert kept["start_at"] == "2026-03-28T23:00:00.000000Z"


def test_the_bytes_of_a_release_stay() -> None:
    digest = "81579880e49d1f66972cb0361d12a70af334a7ee07c9ad8c9e1e610b7595873d"
    assert facts_digest(canonical(FACTS)) == digest


@given(st.data())
def test_a_changed_byte_changes_the_digest(data: st.DataObject) -> None:
    body = bytearray(canonical(FACTS))
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] ^= data.draw(st.integers(1, 255))
    assert facts_digest(bytes(body)) != facts_digest(canonical(FACTS))


@pytest.mark.parametrize("text", ["[]", "{}", '{"version":2}', "null"])
def test_what_is_no_facts_of_this_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no facts of a version"):
        read_facts(text)
