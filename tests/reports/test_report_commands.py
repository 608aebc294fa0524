"""`freehold report ...` as a person types it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from freehold.testing.backdoor import BackDoor
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


def test_status_says_what_is_owed_and_why_names_the_report(desk: Desk) -> None:
    before = desk.freehold("--json", "status").data
    assert "Reports are on, and nothing ever closed a day" in " ".join(before["findings"])
    with BackDoor(desk.url) as door:  # a reporter that closed the day and died
        desk.freehold("report", "build", "harbour", str(desk.day))
        assert door.one("select count(*) from {s}report where state = 'frozen'")
    owed = desk.freehold("--json", "status").data
    assert owed["reports"]["owed_count"] == 1
    assert [one for one in owed["findings"] if one.startswith("A report is owed since ")]
    assert desk.freehold("report", "run").code == 0
    after = desk.freehold("--json", "status").data
    assert after["reports"]["owed_count"] == 0
    assert after["reports"]["last_days"]["sent"] == 1
    assert not [one for one in after["findings"] if "eport" in one]
    assert f"counted by the report of harbour for {desk.day}, which is sent" in (
        desk.freehold("why", "1").out
    )


def test_a_report_is_sent_once_however_often_it_is_asked_for(desk: Desk) -> None:
    first = desk.freehold("report", "send", "harbour", str(desk.day))
    assert (first.code, len(desk.mails())) == (0, 1), first.err
    second = desk.freehold("report", "send", "harbour", str(desk.day))
    assert second.code == 0
    assert "was sent, 1 of 1 mails accepted; nothing was sent" in second.out
    assert len(desk.mails()) == 1
