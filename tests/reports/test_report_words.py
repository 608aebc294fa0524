"""What people read in a terminal of 80 columns: whole, true, and with what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.domain.inventory import Tenant
from tests.e2e.inprocess import Program
from tests.reports.desk import HARBOUR, Desk

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = '[report.smtp]\nhost = "127.0.0.1"\nport = 1\nsecurity = "none"'
LONG = "the.night.desk@harbour-hotel.example"


@pytest.fixture
def desk(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    sqlite_url: str,
) -> Desk:
    """A tenant with a long address, and one that was never added."""
    monkeypatch.chdir(tmp_path)
    desk = Desk(Program(tmp_path, monkeypatch, capsys, columns=80), sqlite_url)
    desk.add(Tenant("harbour", "The Harbour Hotel", recipients=(LONG, *HARBOUR.recipients)))
    desk.release("harbour")
    desk.release("pier")
    return desk


def test_a_list_of_tenants_has_their_whole_addresses_and_no_zone_of_ours(desk: Desk) -> None:
    said = desk.freehold("tenant", "list").out
    assert f" {LONG}  " in said
    assert all(len(line) <= 80 for line in said.splitlines())
    assert HARBOUR.recipients[0] in said
    assert "UTC" not in said
    assert "state" not in said
    desk.freehold("tenant", "set", "harbour", "--inactive", "--by", "ann")
    assert "inactive" in desk.freehold("tenant", "list").out


def test_a_report_that_nobody_gets_says_so_and_what_to_do(desk: Desk) -> None:
    desk.freehold("report", "run")
    listed = desk.freehold("report", "list").out
    assert listed.count("`freehold tenant add ID --recipient ADDRESS` says who gets") == 1
    shown = desk.freehold("report", "show", "pier", str(desk.day), "--html", "-o", "page.html")
    assert "preview: this report is not sent (no recipient) and has no mail" in shown.err
    assert "no recipient:" not in desk.freehold("report", "list", "--tenant", "harbour").out
    none = desk.freehold("report", "list", "--tenant", "harbour", "--state", "in review")
    assert none.out == "there is no such report\n"


def test_who_unsubscribed_is_told_so(desk: Desk) -> None:
    desk.freehold("tenant", "unsubscribe", "harbour", LONG, "--by", "ann")
    desk.freehold("report", "run")
    again = ("--recipient", LONG, "--by", "ann", "--reason", "why not")
    said = desk.freehold("report", "send", "harbour", str(desk.day), *again)
    assert said.code == 6
    assert "is not sent, as the recipient has unsubscribed" in said.err


def test_why_a_mail_waits_is_a_line_of_its_own(desk: Desk) -> None:
    file = desk.freehold.folder / "freehold.toml"
    file.write_text(file.read_text().replace(desk.transport, NOWHERE))
    desk.freehold("report", "run")
    shown = desk.freehold("report", "show", "harbour", str(desk.day)).out
    said = " ".join(shown.split())
    why = f"{LONG} retrying: no mail is taken now: the mail server 127.0.0.1:1"
    assert f"{why} cannot be reached: Connection refused" in said
