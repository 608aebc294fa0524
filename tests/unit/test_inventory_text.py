"""Tenants, units and holds out of texts: what is wrong is named by its column, never by its text."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.domain.errors import UsageError
from freehold.domain.inventory import HoldStatus, ImportedHold, NewUnit, Stay, Tenant
from freehold.domain.inventory_text import (
    OPTIONAL,
    REQUIRED,
    line_reference,
    read_hold,
    read_tenant,
    read_unit,
)

DRAWN = UUID(int=7)
LEAST = {"tenant": "t", "unit": "1", "hold_until": "2026-07-01T12:00"}


def hold(**more: str) -> ImportedHold:
    return read_hold({**LEAST, **more}, "Europe/Berlin", lambda: DRAWN)


def test_the_least_and_the_whole() -> None:
    until = datetime(2026, 7, 1, 10, tzinfo=UTC)
    least = hold()
    assert (least.hold_until, least.token, least.stay) == (until, DRAWN, None)
    assert (least.status, least.reference) == (HoldStatus.HELD, line_reference(LEAST))
    whole = hold(
        starts_at="2026-07-02", ends_at="2026-07-03", reference="r", status="Confirmed",
        token=str(UUID(int=9)),
    )  # fmt: skip
    stay = Stay(datetime(2026, 7, 1, 22, tzinfo=UTC), datetime(2026, 7, 2, 22, tzinfo=UTC))
    assert whole == ImportedHold("t", "1", until, UUID(int=9), "r", stay, HoldStatus.CONFIRMED)
    assert read_unit({"tenant": "t", "name": "1", "active": "No"}) == NewUnit("t", "1", False)
    assert read_tenant({"id": "t"}) == Tenant("t", "t")
    assert read_tenant({"id": "t", "recipients": "a@x; b@x", "report_hour": "07"}) == Tenant(
        "t", "t", report_hour=7, recipients=("a@x", "b@x")
    )


def test_a_line_is_its_own_reference() -> None:
    assert line_reference({"a": "1", "b": ""}) == line_reference({"a": "1"})
    assert line_reference({"a": "1"}) != line_reference({"a": "2"})


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ("hold_until", "hold_until is no time"),
        ("token", "token must be a UUID"),
        ("status", "status must be one of held, confirmed, cancelled, expired"),
        ("starts_at", "starts_at and ends_at must both be there, or neither"),
    ],
)
def test_what_is_wrong_is_named_and_not_repeated(column: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        hold(**{column: "canary"})
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("zone", "Mars"),
        ("report_hour", "7h"),
        ("report_hour", "24"),
        ("recipients", "a"),
        ("locale", "!"),
        ("active", "perhaps"),
        ("id", "x" * 201),
    ],
)
def test_a_wrong_tenant_is_refused(column: str, text: str) -> None:
    with pytest.raises((ValueError, UsageError)):
        read_tenant({"id": "t", column: text})


def test_an_empty_due_and_a_stay_that_ends_before_it_starts() -> None:
    with pytest.raises(ValueError, match="hold_until is empty"):
        hold(hold_until="")
    with pytest.raises(ValueError, match="ends_at must be later than starts_at"):
        hold(starts_at="2026-07-03", ends_at="2026-07-03")


@given(st.dictionaries(st.sampled_from(REQUIRED["hold"] + OPTIONAL["hold"]), st.text(max_size=30)))
def test_no_text_raises_anything_else(values: dict[str, str]) -> None:
    try:
        assert read_hold({**LEAST, **values}, "UTC", lambda: DRAWN).reference
    except (ValueError, UsageError) as error:
        assert "\n" not in str(error)  # noqa: PT017 -- what is raised is what is tested
