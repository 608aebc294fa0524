"""What people read in a terminal of 80 columns: whole, true, and with what to do next."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import freehold
from freehold.domain.errors import RuleRefused
from freehold.domain.facts import RuleFacts
from freehold.domain.inventory import Tenant
from freehold.entrypoints.cli.report_view import rules_table
from freehold.entrypoints.cli.sentences import sentence
from tests.e2e.inprocess import Program
from tests.reports.desk import HARBOUR, Desk

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
    ran = desk.freehold("report", "run").out
    assert "4 reports frozen" in ran
    assert "1 mail retrying" in ran
    shown = desk.freehold("report", "show", "harbour", str(desk.day)).out
    said = " ".join(shown.split())
    why = f"{LONG}: no mail is taken now: the mail server 127.0.0.1:1"
    assert f"{why} cannot be reached: Connection refused" in said


def test_long_waits_do_not_crowd_out_the_rule() -> None:
    rule = RuleFacts("room-of-the-tower", 7, 7, {}, 0, 0, None, 1166.0, 1166.0, 1166.0, 60.0, 0)
    console = Console(width=80, file=io.StringIO())
    console.print(rules_table([rule, replace(rule, dead_count=3, skipped={"gone": 2})]))
    said = console.file.getvalue()  # type: ignore[attr-defined] # it is the one from above
    assert "room-of-the-towe" in said
    assert "review" in said
    assert "retried" not in said


def test_what_is_to_be_typed_can_be_typed(desk: Desk) -> None:
    desk.add(Tenant("old town", "Old Town", active=False))
    shown = desk.freehold("report", "show", "old town", str(desk.day)).err
    assert "`freehold report list --tenant 'old town'`" in shown
    assert "`freehold report preview 'old town'`" in shown
    built = desk.freehold("report", "build", "old town", str(desk.day)).err
    assert "`freehold tenant set 'old town' --active --by NAME`" in built


def test_whoever_is_told_to_set_a_tenant_is_told_to_say_who_they_are() -> None:
    """The command demands `--by`."""
    sources = Path(freehold.__file__).parent.rglob("*.py")
    texts = [re.sub(r'"\n\s*f?"', "", path.read_text(encoding="utf-8")) for path in sources]
    named = re.findall(r"`freehold tenant set [^`]*`", "".join(texts))
    assert len(named) > 4
    assert not [one for one in named if "--by" not in one]


def test_a_role_without_rights_is_told_whose_to_use() -> None:
    said = sentence(RuleRefused("permission denied for table send", "42501"))
    assert "(permission denied for table send)" in said
    assert "use the role that ran `freehold db upgrade`" in said
