"""From a model's text to the mail, as an installation does it: with settings, commands and a server."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import SMTP
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from freehold.domain.inventory import Tenant
from freehold.testing.contracts.summarizers import Play
from tests.e2e.inprocess import Program
from tests.reports.desk import Desk
from tests.reports.model_server import model_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.reports.model_server import ModelServer

TABLE = """
[summary]
url = "{url}"
model = "small"
timeout = "1s"
input_price = 0.15
output_price = 0.6
"""
SECRET = "s3cret-Key_42"
CANARY = "Canary Hotel"
TRUE = "In all, 3 holds were released, and none waits for a person."
LIE = "In all, 31 holds were released."


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model's endpoint."""
    with model_server() as server:
        yield server


@pytest.fixture
def alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program in an empty folder, with a key in its environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FREEHOLD_SUMMARY__KEY", SECRET)
    return Program(tmp_path, monkeypatch, capsys)


def at_noon(alone: Program, url: str, server: ModelServer) -> Desk:
    """Open a desk where it is about noon; yesterday's report leaves at 23:00 local time."""
    now = datetime.now(UTC)
    zone = f"Etc/GMT{now.hour - 12:+d}"  # POSIX signs: +3 is three hours behind
    # Noon of UTC lies within yesterday there; of the hour before it, within the day before.
    noon = now.date() - timedelta(days=1 if now.hour else 2)
    desk = Desk(alone, url, more=TABLE.format(url=server.url), day=noon)
    people = ("a@a.example", "b@a.example")
    desk.add(Tenant("harbour", CANARY, zone=zone, report_hour=23, recipients=people))
    desk.release("harbour", 3)
    desk.day = now.astimezone(ZoneInfo(zone)).date() - timedelta(days=1)
    return desk


def run(desk: Desk) -> None:
    """Run the cron line; the mail is not due yet."""
    ran = desk.freehold("report", "run")
    assert ran.code == 0, ran.err
    assert desk.mails() == []


def text_of(raw: bytes) -> str:
    body = message_from_bytes(raw, policy=SMTP).get_body(("plain",))
    assert body is not None
    return " ".join(str(body.get_content()).split())


def test_an_accepted_text_stands_in_every_mail_and_is_paid_once(
    alone: Program, database_url: str, server: ModelServer
) -> None:
    desk = at_noon(alone, database_url, server)
    server.play(Play.TOLD, TRUE)
    run(desk)
    run(desk)
    assert len(server.requests()) == 1
    day = desk.day.isoformat()
    assert desk.freehold("report", "send", "harbour", day).code == 0
    mails = desk.mails()
    assert len(mails) == 2
    assert all(TRUE in text_of(one) for one in mails)
    (asked,) = desk.freehold("--json", "report", "show", "harbour", day).data["summaries"]
    assert (asked["outcome"], asked["cost_micros"], asked["currency"]) == ("accepted", 161, "USD")
    assert desk.freehold("audit").code == 0
    assert CANARY not in json.dumps(server.requests()[0]["body"])


@pytest.mark.parametrize("play", [Play.TOLD, Play.BROKEN, Play.SILENT])
def test_a_lying_broken_or_silent_model_changes_nothing(
    alone: Program, sqlite_url: str, server: ModelServer, play: Play
) -> None:
    desk = at_noon(alone, sqlite_url, server)
    server.play(play, LIE)
    run(desk)
    day = desk.day.isoformat()
    assert desk.freehold("report", "send", "harbour", day).code == 0
    mails = [text_of(one) for one in desk.mails()]
    assert len(mails) == 2
    assert not any(LIE in one or "language model" in one for one in mails)
    asked = desk.freehold("--json", "report", "show", "harbour", day).data["summaries"]
    assert {one["outcome"] for one in asked} == {"rejected" if play is Play.TOLD else "failed"}
    shown = desk.freehold("report", "show", "harbour", day)
    assert SECRET not in shown.out
    assert LIE not in shown.out
