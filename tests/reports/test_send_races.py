"""`freehold report send` beside other senders of the same mails: each leaves once, whoever is first."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.system import StopRequest
from freehold.domain.inventory import Tenant
from freehold.entrypoints.reporting_once import MailBudget, report_once
from freehold.ports.system import Boundary
from freehold.ports.telemetry import UNHEARD
from freehold.testing.backdoor import BackDoor
from freehold.testing.crash import StopAt
from freehold.testing.forking import Child, Wire, fork
from tests.conftest import DATABASES
from tests.e2e.inprocess import Program
from tests.reports.desk import Desk
from tests.reports.smtp_server import MailServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Servers

pytestmark = pytest.mark.timeout(method="signal")  # the other kind is a thread, and forks want one
SMTP = """[report.smtp]
host = "{host}"
port = {port}
security = "none"
"""
COPIES = 5  # recipients of a report
RUN = ("report", "run")
AGAIN = "in the hands of another process; try again"  # said while another one closes the day


@dataclass
class Office:
    """A mail server in a process of its own, so that its test can fork."""

    child: Child
    host: str
    port: int

    def accepted(self) -> Counter[str]:
        """Close the server; return how often each recipient's mail was accepted."""
        self.child.go_on()
        return Counter(self.child.end().value)


@contextmanager
def office() -> Iterator[Office]:
    """Open an office."""

    def serve(wire: Wire) -> list[str]:
        with MailServer.started(tls="none") as server:
            wire.tell("open", [server.host, server.port])
            wire.wait()
            return [one.recipient for one in server.accepted]

    with fork(serve) as child:
        yield Office(child, *child.wait_for("open"))


@pytest.fixture
def alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path, monkeypatch, capsys)


@pytest.fixture(params=DATABASES[:2])
def url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> str:
    """SQLite, and one PostgreSQL: the statements themselves have their contract on each."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'freehold.db'}"
    return servers.read(request.param).create_database()


def hotel(desk: Desk, name: str) -> Tenant:
    """Add a tenant whose report of the day nobody has closed yet."""
    recipients = tuple(f"{n}@{name}.example" for n in range(COPIES))
    tenant = Tenant(name, name.title(), recipients=recipients)
    desk.add(tenant)
    desk.release(name)
    return tenant


def at_once(desk: Desk, *commands: tuple[str, ...]) -> list[list[Any]]:
    """Run commands side by side, from one word on; return how they ended, and what they said."""

    def child(wire: Wire, words: tuple[str, ...]) -> list[Any]:
        wire.tell("ready")
        wire.wait()
        ended = desk.freehold(*words)
        return [ended.code, ended.err]

    with ExitStack() as stack:
        children = [
            stack.enter_context(fork(lambda wire, words=words: child(wire, words)))  # type: ignore[misc]
            for words in commands
        ]
        for one in children:
            one.wait_for("ready")
        for one in children:
            one.go_on()
        return [one.end().value for one in children]


@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.proof)])
def test_however_many_send_at_once_each_mail_leaves_once(
    alone: Program, url: str, rounds: int
) -> None:
    """They close the day, freeze it and write its mails beside each other, too.

    Some end with 4, as another one has a mail in hand.
    """
    with office() as mails:
        desk = Desk(alone, url, SMTP.format(host=mails.host, port=mails.port))
        wanted: Counter[str] = Counter()
        for number in range(rounds):
            harbour, pier = (hotel(desk, f"{name}{number}") for name in ("harbour", "pier"))
            sends = [("report", "send", one.id, str(desk.day)) for one in (harbour, pier)]
            ended = at_once(desk, *sends, RUN, sends[0], RUN)
            assert not [one for one in ended if one[0] not in (0, 4) and AGAIN not in one[1]]
            assert desk.freehold(*sends[0]).code == 0
            wanted.update([*harbour.recipients, *pier.recipients])
        with BackDoor(url) as door:
            trail = door.rows("select kind, outcome, count(*) from {s}send_attempt group by 1, 2")
            assert trail == [("send", "accepted", wanted.total())]
        assert mails.accepted() == wanted


@pytest.mark.parametrize(
    ("boundary", "code"), [(Boundary.SEND_CLAIMED, 0), (Boundary.PROVIDER_ANSWERED, 6)]
)
def test_a_reporter_that_stood_still_makes_no_second_mail(
    alone: Program, url: str, boundary: Boundary, code: int
) -> None:
    """A person sends what it had in hand, as soon as its lease is over; then it goes on."""
    with office() as mails:
        desk = Desk(alone, url, SMTP.format(host=mails.host, port=mails.port))
        harbour = hotel(desk, "harbour")
        words = ("report", "send", "harbour", str(desk.day))
        with fork(lambda _: stand_still(desk, boundary)) as reporter:
            reporter.wait_until_stopped()
            assert desk.freehold(*words).code == 4
            end_leases(desk)
            assert desk.freehold(*words).code == code
            reporter.resume()
            reporter.end()
        assert threading.active_count() == 1
        assert desk.freehold(*words).code == 0
        assert desk.states() == [("harbour", "sent")]
        assert mails.accepted() == Counter(harbour.recipients)


def stand_still(desk: Desk, boundary: Boundary) -> None:
    """Do what a crontab does, stopped at a boundary."""
    report_once(desk.settings, StopAt(1, boundary), UNHEARD, MailBudget(), StopRequest())


def end_leases(desk: Desk) -> None:
    """Let the leases of senders be over."""
    with BackDoor(desk.url) as door:
        past = door.ledger(datetime.now(UTC) - timedelta(days=1))
        door.execute("update {s}send set leased_until = :past where state = 'leased'", past=past)
