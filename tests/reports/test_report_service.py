"""Reports from a running service and from a crontab, to a real mail server."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards, StopRequest
from freehold.bootstrap import open_ledger
from freehold.entrypoints.reporting import Reporting
from freehold.ports.guards import GuardKind
from freehold.ports.telemetry import UNHEARD
from freehold.testing.backdoor import BackDoor
from tests.e2e.inprocess import Program
from tests.e2e.running import Running
from tests.reports.desk import HARBOUR, Desk
from tests.reports.smtp_server import CUT, MailServer, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

SMTP = """[report.smtp]
host = "{host}"
port = {port}
security = "none"
timeout = "10s"
final_timeout = "10s"
"""


@pytest.fixture
def alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path, monkeypatch, capsys)


@contextmanager
def mailing(alone: Program, url: str) -> Iterator[tuple[Desk, MailServer]]:
    """A desk with one released hold, whose reports go to a mail server."""
    with MailServer.started(tls="none") as server:
        desk = Desk(alone, url, SMTP.format(host=server.host, port=server.port))
        desk.add(HARBOUR)
        desk.release("harbour")
        yield desk, server


def trail(desk: Desk) -> str:
    return desk.freehold("report", "show", "harbour", str(desk.day)).out


def test_a_running_service_sends_the_day_s_report(alone: Program, database_url: str) -> None:
    with mailing(alone, database_url) as (desk, server):
        addresses = tuple(f"desk{number}@harbour.example" for number in range(6))
        desk.add(replace(HARBOUR, recipients=addresses))
        text = (alone.folder / "freehold.toml").read_text("utf-8")
        alone.write("freehold.toml", text.replace("hour = 0", "hour = 0\nsenders = 2"))
        with Running(alone.folder) as service:
            told = service.wait_for("send")
            mails = server.wait_for_accepted(len(addresses))
            assert (told["state"], told["transport"]) == ("accepted", "smtp")
            assert service.stop() == 0
        assert sorted(one.recipient for one in mails) == sorted(addresses)
        assert {one.sender for one in mails} == {"reports@freehold.example"}
        named = ("report", "show", "harbour", str(desk.day))
        sends = {one["recipient"]: one for one in desk.freehold("--json", *named).data["sends"]}
        for mail in mails:
            assert sends[mail.recipient]["mail_digest"] == sha256(mail.message).hexdigest()
            assert mail.queue_id in sends[mail.recipient]["reference"]
        whole = desk.freehold(*named, "--eml", mails[0].recipient).out
        assert whole.replace("\r\n", "\n").encode() == mails[0].message.replace(b"\r\n", b"\n")


MORE = """[tenants]
table = "res"
id = "id"
[summary]
url = "http://127.0.0.1:1/v1"
model = "m"
"""


def test_loops_that_wait_long_hold_no_connection(alone: Program, postgres_url: str) -> None:
    desk = Desk(alone, postgres_url, more=MORE)
    loops = Reporting(desk.settings, Onwards(), UNHEARD, StopRequest()).loops()
    for one in loops:
        assert one.step() > 0
    with BackDoor(postgres_url) as door:
        held = door.one(
            "select count(*) from pg_stat_activity"
            " where datname = current_database() and application_name = 'freehold'"
        )
    for one in loops:
        one.close()
    assert [one.name for one in loops] == ["report", "send 1", "summary", "tenants"]
    assert held == 2


def test_one_command_of_a_crontab_releases_and_reports(alone: Program, sqlite_url: str) -> None:
    with mailing(alone, sqlite_url) as (desk, server):
        ran = desk.freehold("--json", "run", "--until-idle")
        assert ran.code == 0, ran.err
        assert ran.data["reports"]["sends"] == {"accepted": 1}
        assert len(server.accepted) == 1


def test_an_unknown_end_waits_for_a_person_whose_word_ends_it(
    alone: Program, sqlite_url: str
) -> None:
    with mailing(alone, sqlite_url) as (desk, server):
        server.play(Phase.ACCEPTED, CUT)
        assert desk.freehold("--json", "report", "run").data["sends"] == {"review": 1}
        assert desk.states() == [("harbour", "in review")]
        named = ("harbour", str(desk.day))
        checked = desk.freehold("status", "--check")
        assert checked.code == 3
        assert "A report waits for a person" in checked.out
        again = desk.freehold("report", "send", *named)
        assert (again.code, len(server.accepted)) == (6, 1)
        words = ("--as", "accepted", "--by", "ann", "--reason", "they have it")
        said = desk.freehold("report", "resolve", *named, *words)
        assert (said.code, desk.states()) == (0, [("harbour", "sent")]), said.err
        assert "ann: report resolve of harbour" in trail(desk)
        assert desk.freehold("report", "resolve", *named, *words).code == 6
        assert len(server.accepted) == 1


def test_a_refused_mail_is_sent_again_on_a_person_s_word(alone: Program, sqlite_url: str) -> None:
    with mailing(alone, sqlite_url) as (desk, server):
        server.play(Phase.RCPT, "550 5.1.1 no such user")
        assert desk.freehold("--json", "report", "run").data["sends"] == {"refused": 1}
        assert desk.states() == [("harbour", "not sent")]
        named = ("harbour", str(desk.day), "--recipient", "desk@harbour.example")
        assert desk.freehold("report", "send", *named).code == 2
        sent = desk.freehold("report", "send", *named, "--by", "ann", "--reason", "mailbox made")
        assert (sent.code, desk.states()) == (0, [("harbour", "sent")]), sent.err
        assert len(server.accepted) == 1


def test_a_mail_that_was_surely_not_taken_is_left_for_the_next_run(
    alone: Program, sqlite_url: str
) -> None:
    with mailing(alone, sqlite_url) as (desk, server):
        server.play(Phase.RCPT, "451 4.3.0 later")
        first = desk.freehold("report", "run")
        assert first.code == 4
        assert "Mails are still to be sent, the next at" in first.err
        codes = {desk.freehold("report", "run").code for _ in range(200) if not server.accepted}
        assert codes <= {0, 4}
        assert len(server.accepted) == 1
        assert "attempt 2, send by smtp, accepted" in trail(desk)


@pytest.mark.parametrize("whose", [(), ("--tenant", "harbour")], ids=["all", "tenant"])
def test_a_pause_holds_mails_back_and_nothing_else(
    alone: Program, sqlite_url: str, whose: tuple[str, ...]
) -> None:
    with mailing(alone, sqlite_url) as (desk, server):
        why = (*whose, "--by", "ann", "--reason", "dispute")
        assert desk.freehold("pause", "report", *why).code == 0
        ran = desk.freehold("report", "run")
        assert ran.code == (4 if whose else 6)
        assert desk.states() == [("harbour", "sending")]
        assert not server.accepted
        assert "The sending of reports" in desk.freehold("status").out
        assert desk.freehold("resume", "report", *why).code == 0
        assert "nothing is paused" in desk.freehold("pause", "list").out


def test_doctor_tries_the_server_and_names_what_is_missing(alone: Program, sqlite_url: str) -> None:
    with mailing(alone, sqlite_url) as (desk, _):
        desk.add(HARBOUR, type(HARBOUR)("pier", "Pier"))
        found = {one["code"]: one for one in desk.freehold("--json", "doctor").data}
        assert {"report-in-clear", "report-recipients"} <= set(found)
        assert "1 tenant has no recipient (pier)" in found["report-recipients"]["sentence"]
        assert "report-transport" not in found
    away = desk.freehold("--json", "doctor")
    codes = {one["code"] for one in away.data}
    assert (away.code, "report-transport" in codes) == (3, True)


@pytest.mark.parametrize(
    ("url", "key", "warned"),
    [
        ("http://models.example/v1", 'key = "k"', True),
        ("http://models.example/v1", 'key_file = "k"', True),
        ("http://models.example/v1", "", False),
        ("https://models.example/v1", 'key = "k"', False),
        ("http://127.0.0.1:11434/v1", 'key = "k"', False),
    ],
)
def test_doctor_warns_of_a_model_s_key_in_clear(
    alone: Program, sqlite_url: str, url: str, key: str, warned: bool
) -> None:
    desk = Desk(alone, sqlite_url, more=f'[summary]\nurl = "{url}"\nmodel = "m"\n{key}\n')
    found = desk.freehold("--json", "doctor").data
    places = [one["place"] for one in found if one["code"] == "report-in-clear"]
    assert places == (["summary.url"] if warned else [])


def test_trouble_in_one_step_keeps_no_mail_back(alone: Program, sqlite_url: str) -> None:
    with mailing(alone, sqlite_url) as (desk, server):
        assert desk.freehold("report", "build", "harbour", str(desk.day)).code == 0
        with BackDoor(sqlite_url) as door:
            door.execute("alter table {s}report_calendar rename to gone")
        ran = desk.freehold("--json", "report", "run")
        assert (ran.data["sends"], len(server.accepted)) == ({"accepted": 1}, 1)
        assert (ran.code, "report, close: The database refused" in ran.err) == (6, True), ran.err


def test_a_limit_ends_a_run_and_the_next_one_goes_on(alone: Program, sqlite_url: str) -> None:
    with mailing(alone, sqlite_url) as (desk, server):
        both = replace(HARBOUR, recipients=("a@harbour.example", "b@harbour.example"))
        desk.add(both)
        first = desk.freehold("report", "run", "--limit", "1")
        assert (first.code, len(server.accepted)) == (4, 1)
        second = desk.freehold("report", "run")
        assert (second.code, len(server.accepted)) == (0, 2)
        assert {one.recipient for one in server.accepted} == set(both.recipients)
        assert desk.freehold("report", "run", "--deadline", "5s").out == "no report is due\n"


def test_a_clock_in_doubt_closes_no_day_and_is_named(alone: Program, sqlite_url: str) -> None:
    desk = Desk(alone, sqlite_url)
    desk.add(HARBOUR)
    desk.release("harbour")
    ledger = open_ledger(desk.settings)
    with ledger.transaction() as tx:
        tx.guards.trip(GuardKind.CLOCK, None, "the clock moved 1 h ahead", {})
    ledger.close()
    ran = desk.freehold("report", "run")
    assert (ran.code, ran.out) == (6, "no day is closed\n")
    assert ran.err == "freehold: No day is closed: the clock moved 1 h ahead.\n"
    said = ("--by", "ann", "--reason", "it is right")
    assert desk.freehold("guard", "release", "--all", *said).code == 0
    assert desk.freehold("report", "run").code == 0
    assert desk.states() == [("harbour", "sent")]
