"""`freehold report ...` as a person types it."""

from __future__ import annotations

import hashlib
import shutil
import webbrowser
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from freehold.domain.inventory import Tenant
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


@pytest.fixture
def lite(alone: Program, sqlite_url: str) -> Desk:
    """Two tenants with a day's holds each, on SQLite."""
    desk = Desk(alone, sqlite_url)
    desk.add(HARBOUR, Tenant("pier", "Pier"))
    desk.release("harbour")
    desk.release("pier")
    return desk


def test_nothing_is_listed_before_a_day_was_closed(lite: Desk) -> None:
    assert lite.freehold("report", "list").out.startswith("there is no report yet; ")


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


def test_a_report_that_nobody_got_is_sent_after_all_on_a_persons_word(desk: Desk) -> None:
    desk.add(replace(HARBOUR, recipients=()))
    assert desk.freehold("report", "run").code == 0
    assert desk.states() == [("harbour", "not sent")]
    named = ("report", "send", "harbour", str(desk.day))
    words = ("--by", "ann", "--reason", "they have a mailbox now")
    facts = desk.freehold("--json", "report", "show", *named[2:]).data["facts"]
    in_vain = desk.freehold(*named, *words)
    assert (in_vain.code, "would end again as not sent (no recipient)" in in_vain.err) == (6, True)
    assert desk.states() == [("harbour", "not sent")]
    desk.add(HARBOUR)
    without = desk.freehold(*named)
    assert (without.code, len(desk.mails())) == (0, 0)
    assert "nothing was sent; add --by and --reason to send it after all" in without.out
    sent = desk.freehold(*named, *words)
    assert (sent.code, desk.states(), len(desk.mails())) == (0, [("harbour", "sent")], 1), sent.err
    assert "is sent, 1 of 1 mails accepted" in sent.out
    shown = desk.freehold("--json", "report", "show", *named[2:]).data
    assert shown["facts"] == facts
    assert "ann: report send of harbour" in desk.freehold("report", "show", *named[2:]).out
    again = desk.freehold(*named, *words)
    assert (again.code, len(desk.mails())) == (6, 1)


def test_a_list_is_paged_and_filtered(desk: Desk) -> None:
    desk.add(Tenant("pier", "Pier"))
    desk.release("pier")
    assert desk.freehold("report", "run").code == 0
    rows: list[tuple[str, str]] = []
    after: list[str] = []
    while not rows or after:
        found = desk.freehold("--json", "report", "list", "--limit", "1", *after).data
        rows += [(one["report_date"], one["tenant"]) for one in found["reports"]]
        after = ["--after", found["after"]] if found["after"] else []
    days = [str(desk.day + timedelta(days=1)), str(desk.day)]
    assert rows == [(day, tenant) for day in days for tenant in ("pier", "harbour")]

    def listed(*words: str) -> list[tuple[str, str]]:
        found = desk.freehold("--json", "report", "list", *words).data["reports"]
        return [(one["report_date"], one["tenant"]) for one in found]

    assert listed("--state", "sent") == [(days[1], "harbour")]
    assert listed("--date", days[1]) == [(days[1], "pier"), (days[1], "harbour")]
    assert listed("--tenant", "pier") == [(days[0], "pier"), (days[1], "pier")]
    assert listed("--tenant", "pier", "--date", days[0], "--state", "sent") == []
    text = desk.freehold("report", "list", "--date", days[1]).out
    assert "no recipient" in text
    assert "1/1" in text


def test_before_the_mail_there_is_a_preview_and_after_it_the_mail(lite: Desk) -> None:
    named = ("report", "show", "harbour", str(lite.day))
    assert lite.freehold("report", "build", *named[2:]).code == 0
    page = lite.freehold.folder / "page.html"
    before = lite.freehold(*named, "--html", "-o", "page.html")
    assert (before.code, "preview" in before.err) == (0, True)
    preview = page.read_text("utf-8")
    assert "Harbour Hotel" in preview
    assert lite.freehold(*named, "--eml", "desk@harbour.example").code == 2
    assert lite.freehold("report", "send", *named[2:]).code == 0
    after = lite.freehold(*named, "--html", "-o", "page.html")
    assert (after.code, after.err) == (0, "")
    assert page.read_text("utf-8") == preview
    assert "Harbour Hotel" in lite.freehold(*named, "--text").out


def test_a_page_opens_in_the_browser(lite: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def browse(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    lite.freehold("report", "build", "harbour", str(lite.day))
    said = lite.freehold("report", "show", "harbour", str(lite.day), "--html")
    assert said.out.startswith("opened ")
    page = Path(opened[0].removeprefix("file://"))
    assert "Harbour Hotel" in page.read_text("utf-8")
    shutil.rmtree(page.parent)


def test_a_pruned_mail_says_so_and_keeps_its_trail(lite: Desk) -> None:
    named = ("report", "show", "harbour", str(lite.day))
    assert lite.freehold("report", "run").code == 0
    with BackDoor(lite.url) as door:
        door.execute("update {s}mail set body = null")
    assert lite.freehold(*named).out.count("(bytes pruned)") == 1
    refused = lite.freehold(*named, "--html", "-o", "x.html")
    assert (refused.code, "were pruned" in refused.err) == (6, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show", "harbour", "yesterday"), 2, "'yesterday' is no day; write it as in 2026-05-01."),
        (("show", "harbour", "2026-01-01"), 2, "There is no report of tenant 'harbour' for"),
        (("show", "harbour", "2026-01-01", "--html", "--text"), 2, "Choose one of --html"),
        (("show", "harbour", "2026-01-01", "-o", "x"), 2, "--output writes a mail into a file"),
        (("list", "--state", "lost"), 2, "There is no state 'lost'; known states: assigned"),
        (("list", "--after", "2026-01-01"), 2, "--after takes what a list ends with"),
        (
            ("build", "harbour", "2099-01-01"),
            6,
            "The day 2099-01-01 of tenant 'harbour' is not over",
        ),
        (("build", "nobody-knows", "2026-01-01"), 2, "There is no tenant 'nobody-knows'"),
        (("build", "harbour", "2026-01-01"), 2, "There is no report of tenant 'harbour' for"),
        (("send", "harbour", "2026-01-01", "--by", "ann"), 2, "reason"),
        (
            ("resolve", "harbour", "2026-01-01", "--as", "lost", "--by", "a", "--reason", "b"),
            2,
            "--as 'lost' says nothing; choose one of accepted, resend, abandon.",
        ),
        (
            ("resolve", "harbour", "2026-01-01", "--as", "abandon", "--by", "a", "--reason", "b"),
            2,
            "There is no mail of harbour 2026-01-01",
        ),
        (("run", "--deadline", "soon"), 2, "--deadline 'soon'"),
    ],
)
def test_mistakes(lite: Desk, words: tuple[str, ...], code: int, said: str) -> None:
    ended = lite.freehold("report", *words)
    assert (ended.code, said in ended.err) == (code, True), ended.err
    assert ended.err.startswith("freehold: ")


def test_without_its_table_every_acting_command_says_how_to_turn_reports_on(
    alone: Program, sqlite_url: str
) -> None:
    alone.write("freehold.toml", "[database]", f'url = "{sqlite_url}"', "[holds]")
    assert alone("db", "upgrade").code == 0
    for words in (
        ("report", "run"),
        ("report", "build", "a", "2026-01-01"),
        ("report", "send", "a", "2026-01-01"),
        ("run", "--role", "report"),
    ):
        ended = alone(*words)
        assert (ended.code, "add [report] to freehold.toml" in ended.err) == (2, True), words
    assert alone("report", "list").code == 0
