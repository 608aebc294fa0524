"""The synthesised sample: attached by configuration alone and released, on every database."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.command import freehold
from tests.realdata.bookings import SAMPLE, read_bookings
from tests.realdata.evidence import attach, check_released


def test_the_sample_has_the_dirt_of_the_real_file() -> None:
    bookings = read_bookings(SAMPLE)
    assert len(bookings) == 300
    lapsed = [one for one in bookings if one.lapsed]
    assert any(one.agent == "NULL" for one in lapsed)
    assert any(one.adults == 0 for one in lapsed)
    assert any(one.children == "NA" for one in lapsed)
    assert any(float(one.rate) < 0 for one in lapsed)
    assert {one.state for one in bookings} == {"held", "confirmed"}
    assert any(one.state == "held" and not one.lapsed for one in bookings)


def test_the_lapsed_holds_of_the_sample_are_released(database_url: str, tmp_path: Path) -> None:
    bookings = read_bookings(SAMPLE)
    attach(database_url, tmp_path, bookings)
    assert freehold("run", "--until-idle", cwd=tmp_path).code == 0
    check_released(database_url, tmp_path, bookings)
