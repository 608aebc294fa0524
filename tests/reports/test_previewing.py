"""`freehold report preview`: the report of a day that is not closed, and not a trace of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from freehold.application.reporting import previewing
from freehold.domain.inventory import Tenant
from freehold.testing.backdoor import BackDoor
from tests.e2e.inprocess import Program
from tests.reports.desk import HARBOUR, Desk


@pytest.fixture
def today(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
) -> Desk:
    """A tenant with three holds that were released today, on every database."""
    monkeypatch.chdir(tmp_path)
    day = (datetime.now(UTC) - timedelta(minutes=5)).date()
    desk = Desk(Program(tmp_path, monkeypatch, capsys), database_url, day=day)
    desk.add(HARBOUR)
    desk.release("harbour", 3)
    return desk


def kept(desk: Desk) -> tuple[object, ...]:
    """Return all that closing and freezing would change."""
    with BackDoor(desk.url) as door:
        return (
            door.rows("select * from {s}report"),
            door.rows("select id, report_id from {s}tally order by id"),
            door.rows("select * from {s}report_calendar order by tenant"),
        )


def test_a_running_day_can_be_seen_and_stays_as_it_is(today: Desk) -> None:
    freehold = today.freehold
    freehold("report", "preview", "harbour")  # who enrols the tenant, as any pass does
    before = kept(today)
    seen = freehold("--json", "report", "preview", "harbour")
    assert (seen.code, seen.data["report_date"]) == (0, str(today.day)), seen.err
    assert seen.data["rules"][0]["released_count"] == 3
    assert f"preview: {today.day} of harbour goes on until " in seen.err
    text = freehold("report", "preview", "harbour").out
    assert "3 holds ran out and were released" in text
    wrote = freehold("report", "preview", "harbour", "--html", "-o", "page.html")
    assert wrote.out == "wrote page.html\n"
    assert "</html>" in (freehold.folder / "page.html").read_text()
    assert kept(today) == before
    assert freehold("report", "list").out.startswith("there is no report yet; ")


def test_a_preview_says_what_the_report_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(Program(tmp_path, monkeypatch, capsys), database_url)
    desk.add(HARBOUR)
    desk.release("harbour", 3)
    seen = desk.freehold("--json", "report", "preview", "harbour")
    assert f"{desk.day} of harbour is over and not closed yet" in seen.err
    desk.freehold("report", "build", "harbour", str(desk.day))
    facts = desk.freehold("--json", "report", "show", "harbour", str(desk.day)).data["facts"]
    differ = {name for name in facts if facts[name] != seen.data[name]}
    assert differ <= {"frozen_at", "watermark_at"}
    assert facts["rules"][0]["released_count"] == 3


def test_who_gets_no_report_has_no_preview(today: Desk) -> None:
    freehold = today.freehold
    nobody = freehold("report", "preview", "")
    assert (nobody.code, nobody.err.count("\n")) == (2, 1)
    assert "No hold without a tenant was released" in nobody.err
    today.add(Tenant("pier", "Pier", active=False))
    inactive = freehold("report", "preview", "pier")
    assert inactive.code == 6
    assert "freehold tenant set pier --active" in inactive.err
    assert "There is no tenant 'quay'" in freehold("report", "preview", "quay").err


def test_a_day_that_takes_long_to_count_is_left_alone(
    today: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    today.release("harbour", 2)  # a tally of its own
    monkeypatch.setattr(previewing, "TALLIES", 1)
    refused = today.freehold("report", "preview", "harbour")
    assert (refused.code, "too many releases to be counted" in refused.err) == (6, True)
