"""`freehold report ...` as a person types it."""

from __future__ import annotations

import hashlib
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


def test_a_mail_arrives_and_the_trail_explains_it(desk: Desk) -> None:
    ran = desk.freehold("--json", "report", "run")
    assert ran.code == 0, ran.err
    assert ran.data["sends"] == {"accepted": 1}
    (mail,) = desk.mails()
    shown = desk.freehold("--json", "report", "show", "harbour", str(desk.day)).data
    assert shown["state"] == "sent"
    assert shown["facts"]["rules"][0]["released_count"] == 3
    (sent,) = shown["sends"]
    whole = desk.freehold(
        "report", "show", "harbour", str(desk.day), "--eml", sent["recipient"]
    ).out
    frozen = whole.encode().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert mail.endswith(frozen)
    assert sent["mail_digest"] == hashlib.sha256(frozen).hexdigest()
    assert [one["outcome"] for one in sent["attempts"]] == ["accepted"]
    text = desk.freehold("report", "show", "harbour", str(desk.day)).out
    assert "desk@harbour.example: attempt 1, send by maildir, accepted" in text
