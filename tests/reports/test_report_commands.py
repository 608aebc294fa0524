"""`freehold report ...` as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.inprocess import Program
from tests.reports.desk import HARBOUR, Desk


@pytest.fixture
def alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path, monkeypatch, capsys)


@pytest.fixture
def desk(alone: Program, database_url: str) -> Desk:
    """A tenant with three released holds, on every database."""
    desk = Desk(alone, database_url)
    desk.add(HARBOUR)
    desk.release("harbour", 3)
    return desk


def test_nothing_is_listed_before_a_day_was_closed(desk: Desk) -> None:
    assert desk.freehold("report", "list").out == "there is no such report\n"
