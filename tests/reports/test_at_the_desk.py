"""What whoever works beside reports may rely on: the host application, and who reads the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from freehold.adapters.sql.write_turn import SUFFIX
from freehold.domain.inventory import Tenant
from freehold.testing.backdoor import BackDoor
from tests.e2e.inprocess import Program
from tests.reports.desk import HARBOUR, MAILDIR, Desk


@pytest.fixture
def desk(
    tmp_path: Path,
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Desk:
    """A desk over a SQLite file."""
    monkeypatch.chdir(tmp_path)
    return Desk(Program(tmp_path, monkeypatch, capsys), sqlite_url)


def test_reports_of_a_crontab_leave_the_file_to_the_host_between_two_writes(desk: Desk) -> None:
    """Without turns a host with a time-out of 1 s was refused while 3,000 tenants reported."""
    desk.release("harbour")
    turns = Path(desk.url.removeprefix("sqlite:///") + SUFFIX)
    turns.unlink()
    assert desk.freehold("report", "run").code == 0
    assert turns.exists()


def test_what_a_tenant_is_called_gives_the_terminal_no_orders(desk: Desk) -> None:
    tenant = "a\x1b]0;owned\x07\u202eb :key:"
    desk.release(tenant)
    assert desk.freehold("report", "run").code == 0
    for words in (("list",), ("show", tenant, str(desk.day))):
        shown = desk.freehold("report", *words).out
        assert "a\ufffd]0;owned\ufffd\ufffdb :key:" in shown
        assert not {"\x1b", "\x07", "\u202e"} & set(shown)


def test_the_trail_says_when_an_attempt_began_that_ended_long_after(desk: Desk) -> None:
    """A sender that was killed is missed once its lease is over; its provider knows the earlier hour."""
    desk.add(HARBOUR)
    desk.release("harbour")
    assert desk.freehold("report", "run").code == 0
    with BackDoor(desk.url) as door:
        door.execute("update {s}send_attempt set started_at = (select max(due_at) from {s}report)")
        began = door.one("select substr(max(due_at), 1, 10) from {s}report")
    trail = desk.freehold("report", "show", "harbour", str(desk.day)).out
    assert f"attempt 1, send by maildir at {began} 00:00:00 UTC, accepted" in trail


def test_of_a_mail_in_a_sender_s_hands_no_instant_is_promised(desk: Desk) -> None:
    desk.add(HARBOUR)
    desk.release("harbour")
    why = ("--by", "ann", "--reason", "lunch")
    desk.freehold("pause", "report", *why)
    desk.freehold("report", "run")
    desk.freehold("resume", "report", *why)
    with BackDoor(desk.url) as door:
        door.execute(
            "update {s}send set state = 'leased', state_before = state, leased_until = '9999-01-01'"
        )
    asked = desk.freehold("report", "send", "harbour", str(desk.day))
    assert (asked.code, "still to be sent, and in the hands of a sender;" in asked.err) == (4, True)


def test_a_run_says_when_a_server_that_is_away_is_asked_again(desk: Desk) -> None:
    """Not when the first mail may leave that nobody tried: it would meet the same server."""
    away = '[report.smtp]\nhost = "127.0.0.1"\nport = 9\nsecurity = "none"'
    text = (desk.freehold.folder / "freehold.toml").read_text("utf-8")
    desk.freehold.write("freehold.toml", text.replace(MAILDIR, away))
    for tenant in ("harbour", "pier"):
        desk.add(Tenant(tenant, tenant, recipients=tuple(f"{n}@x.example" for n in range(20))))
        desk.release(tenant)
    ran = desk.freehold("report", "run")
    with BackDoor(desk.url) as door:
        again = door.one("select max(available_at) from {s}send").replace("T", " ")
    assert (ran.code, f"the next at {again[:19]} UTC" in ran.err) == (4, True), ran.err
