"""Reports that went out twice, not at all, or to the wrong people elsewhere, played here.

Each test is named after what happened; the public reports are listed in the design notes.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import SMTP
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.system import Onwards, StopRequest
from freehold.domain.inventory import Tenant
from freehold.entrypoints.reporting_once import MailBudget, report_once
from freehold.ports.system import Boundary, Checkpoint
from freehold.ports.telemetry import UNHEARD
from freehold.testing.backdoor import BackDoor
from freehold.testing.contracts.transports import SECRET
from freehold.testing.crash import KillAt
from freehold.testing.forking import Ending, fork, run
from freehold.testing.mailbox import Fault
from tests.e2e.inprocess import Program
from tests.reports.desk import HARBOUR, Desk
from tests.reports.resend_double import ResendDouble
from tests.reports.smtp_server import CUT, MailServer, Phase

if TYPE_CHECKING:
    from pathlib import Path

    from freehold.testing.forking import Wire

RESEND_TABLE = '[report.resend]\nurl = "{url}"\nkey = "{key}"'
SMTP_TABLE = '[report.smtp]\nhost = "localhost"\nport = {port}\nsecurity = "none"'
DAY = timedelta(days=1)
FORKS = pytest.mark.timeout(120, method="signal")  # a time limit by a thread could not fork
MIDWAY = (
    Boundary.REPORTS_ASSIGNED,
    Boundary.FACTS_FROZEN,
    Boundary.MAILS_FROZEN,
    Boundary.SEND_CLAIMED,
    Boundary.SEND_BEGUN,
    Boundary.PROVIDER_ANSWERED,
    Boundary.SEND_SETTLED,
)


@pytest.fixture
def alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path, monkeypatch, capsys)


@pytest.fixture
def desk(alone: Program, sqlite_url: str) -> Desk:
    """A business without tenants, on SQLite."""
    return Desk(alone, sqlite_url)


def hotels(count: int) -> list[Tenant]:
    return [
        Tenant(f"hotel-{n}", f"Hotel {n}", recipients=(f"desk@hotel-{n}.example",))
        for n in range(count)
    ]


def with_hotels(desk: Desk, count: int) -> list[Tenant]:
    """Add hotels, each with a hold that was released on the day."""
    tenants = hotels(count)
    desk.add(*tenants)
    for one in tenants:
        desk.release(one.id)
    return tenants


def once(desk: Desk, checkpoint: Checkpoint | None = None) -> Any:
    """Do what the cron line does, in this process."""
    budget, stop = MailBudget(), StopRequest()
    return report_once(desk.settings, checkpoint or Onwards(), UNHEARD, budget, stop)


def killed(desk: Desk, checkpoint: KillAt) -> Ending:
    """Do it in a process of its own, which dies at a boundary."""

    def child(wire: Wire) -> int:
        checkpoint.tell = wire.tell
        return int(once(desk, checkpoint).sent_count)

    return run(child)


def pass_time(desk: Desk) -> None:
    """Let leases end and delays pass."""
    with BackDoor(desk.url) as door:
        past = door.ledger(datetime.now(UTC) - DAY)
        door.execute("update {s}send set leased_until = :past where state = 'leased'", past=past)
        waiting = "update {s}send set available_at = :past where state in ('retrying', 'unknown')"
        door.execute(waiting, past=past)


def look(desk: Desk, sql: str) -> list[tuple[Any, ...]]:
    with BackDoor(desk.url) as door:
        return door.rows(sql)


def recipients(mails: list[bytes]) -> list[str]:
    return sorted(str(message_from_bytes(one, policy=SMTP)["to"]) for one in mails)


def addresses(tenants: list[Tenant]) -> list[str]:
    return sorted(address for one in tenants for address in one.recipients)


# --------------------------------------------------------------------------- killed and at once


@FORKS
@pytest.mark.parametrize("boundary", MIDWAY, ids=[one.name for one in MIDWAY])
def test_b65_a_scheduler_killed_amid_its_tenants_leaves_each_one_mail(
    desk: Desk, boundary: Boundary
) -> None:
    tenants = with_hotels(desk, 3)
    assert killed(desk, KillAt(1, boundary)).was_killed
    once(desk)  # what was not in its hands goes out at once
    pass_time(desk)
    once(desk)
    assert recipients(desk.mails()) == addresses(tenants)
    assert desk.states() == [(one.id, "sent") for one in tenants]
    kinds = look(desk, "select kind, count(*) from {s}send_attempt where attempt > 1 group by kind")
    assert kinds in ([], [("replay", 1)])
    assert once(desk).sent_count == 0


@FORKS
def test_b65_four_schedulers_at_once_make_one_report_each(
    alone: Program, database_url: str
) -> None:
    desk = Desk(alone, database_url)
    tenants = with_hotels(desk, 12)

    def child(wire: Wire) -> int:
        wire.tell("ready")
        wire.wait()
        return int(once(desk).sent_count)

    with ExitStack() as stack:
        children = [stack.enter_context(fork(child)) for _ in range(4)]
        for one in children:
            one.wait_for("ready")
        for one in children:
            one.go_on()
        endings = [one.end() for one in children]
    pass_time(desk)  # one may have found what another had in its hands
    rest = once(desk).sent_count
    assert sum(one.value for one in endings) + rest == 12
    assert recipients(desk.mails()) == addresses(tenants)
    assert desk.states() == [(one.id, "sent") for one in sorted(tenants, key=lambda t: t.id)]
    assert look(desk, "select count(*) from {s}send_attempt") == [(12,)]


# ------------------------------------------------------------------------------------- twice


def test_a_report_that_is_asked_for_twice_is_sent_once_and_says_so(desk: Desk) -> None:
    desk.add(HARBOUR)
    desk.release("harbour")
    day = desk.day.isoformat()
    assert desk.freehold("report", "build", "harbour", day).code == 0
    assert desk.freehold("report", "send", "harbour", day).code == 0
    again = desk.freehold("report", "send", "harbour", day)
    assert again.code == 0
    assert "accepted" in again.out
    assert len(desk.mails()) == 1
    forced = ("report", "send", "harbour", day, "--recipient", HARBOUR.recipients[0])
    desk.freehold(*forced, "--by", "ann", "--reason", "they lost it")
    assert len(desk.mails()) == 1
    assert look(desk, "select count(*) from {s}send_attempt") == [(1,)]


def test_a_second_try_after_new_expirations_has_the_same_bytes(
    alone: Program, sqlite_url: str
) -> None:
    with MailServer.started(tls="none", offers_tls=False) as server:
        desk = Desk(alone, sqlite_url, SMTP_TABLE.format(port=server.port))
        desk.add(HARBOUR)
        desk.release("harbour")
        server.play(Phase.DOT, "451 4.3.0 later")
        assert once(desk).sent_count == 0
        eml = ("report", "show", "harbour", desk.day.isoformat(), "--eml", HARBOUR.recipients[0])
        before = desk.freehold(*eml).out
        desk.release("harbour", 5)
        pass_time(desk)
        assert once(desk).sent_count == 1
        (mail,) = server.accepted
        assert desk.freehold(*eml).out == before
        assert mail.message == before.encode()


def test_a_connection_cut_amid_the_recipients_keeps_those_that_were_served(
    alone: Program, sqlite_url: str
) -> None:
    people = tuple(f"{name}@harbour.example" for name in "abcde")
    with MailServer.started(tls="none", offers_tls=False) as server:
        desk = Desk(alone, sqlite_url, SMTP_TABLE.format(port=server.port))
        desk.add(replace(HARBOUR, recipients=people))
        desk.release("harbour")
        server.play(Phase.RCPT, CUT, recipient=people[2])
        assert once(desk).sent_count == 4
        pass_time(desk)
        assert once(desk).sent_count == 1
        assert sorted(one.recipient for one in server.accepted) == sorted(people)
        assert desk.states() == [("harbour", "sent")]


def test_a_rate_limit_is_waited_out_and_not_for_a_quarter_of_an_hour(
    alone: Program, sqlite_url: str
) -> None:
    with ResendDouble.started() as double:
        double.retry_after = "0"
        desk = Desk(alone, sqlite_url, RESEND_TABLE.format(url=double.url, key=SECRET))
        with_hotels(desk, 3)
        double.play(Fault.TRANSIENT, "desk@hotel-1.example")
        waits: list[float] = []

        class Waiting(StopRequest):
            def wait(self, seconds: float) -> bool:
                waits.append(seconds)
                return super().wait(seconds)

        done = report_once(desk.settings, Onwards(), UNHEARD, MailBudget(), Waiting())
        assert (done.sent_count, done.left) == (3, False)
        assert len(double.accepted) == 3
        assert 0 < max(waits) <= 1


# --------------------------------------------------------------------------------- never silent


def test_every_tenant_and_day_has_an_end_that_can_be_read(desk: Desk) -> None:
    desk.add(
        Tenant("a-sent", "A", recipients=("a@a.example",)),
        Tenant("b-nobody", "B"),
        Tenant("c-gone", "C", recipients=("c@c.example",)),
        Tenant("d-calm", "D", recipients=("d@d.example",)),
    )
    for name in ("a-sent", "b-nobody", "c-gone", "e-unknown", None):
        desk.release(name)
    wants_none = ("tenant", "unsubscribe", "c-gone", "c@c.example", "--by", "c", "--reason", "no")
    assert desk.freehold(*wants_none).code == 0
    assert desk.freehold("report", "run").code == 0
    day = desk.day.isoformat()
    found = desk.freehold("--json", "report", "list", "--date", day).data["reports"]
    ends = {one["tenant"]: (one["state"], one["reason"]) for one in found}
    no_recipient = ("not sent", "no recipient")
    calm = ends.pop("d-calm", ("skipped", "nothing happened"))
    assert calm == ("skipped", "nothing happened")
    assert ends == {
        "": no_recipient,
        "a-sent": ("sent", None),
        "b-nobody": no_recipient,
        "c-gone": ("not sent", "every recipient has unsubscribed"),
        "e-unknown": no_recipient,
    }
    assert recipients(desk.mails()) == ["a@a.example"]


def test_a_sender_that_stood_still_for_days_sends_each_day_once(desk: Desk) -> None:
    desk.add(HARBOUR)
    assert desk.freehold("pause", "report", "--by", "ann", "--reason", "vacation").code == 0
    days = [desk.day - DAY, desk.day]
    for desk.day in days:
        desk.release("harbour")
    assert desk.freehold("report", "run").code == 6
    assert desk.freehold("report", "run").code == 6
    assert desk.mails() == []
    assert desk.freehold("resume", "report", "--by", "ann", "--reason", "back").code == 0
    for _ in range(2):
        assert desk.freehold("report", "run").code == 0
        dates = [str(message_from_bytes(one, policy=SMTP)["message-id"]) for one in desk.mails()]
        assert [sum(day.isoformat() in one for one in dates) for day in days] == [1, 1]
        assert len(dates) == 2


def test_commands_of_maintenance_send_nothing(desk: Desk) -> None:
    desk.add(HARBOUR)
    desk.release("harbour")
    day = desk.day.isoformat()
    for words in (
        *(["sweep"], ["prune"], ["scan"], ["work"], ["audit"], ["doctor"], ["status"]),
        *(["db", "status"], ["db", "upgrade"], ["tenant", "list"], ["report", "list"]),
        *(["report", "build", "harbour", day], ["report", "show", "harbour", day]),
        ["report", "show", "harbour", day, "--text"],
    ):
        desk.freehold(*words)
        assert desk.mails() == [], words
        assert look(desk, "select count(*) from {s}send_attempt") == [(0,)], words
    assert desk.freehold("report", "run").code == 0
    assert len(desk.mails()) == 1


def test_no_tenant_gets_anything_of_another(desk: Desk) -> None:
    tenants = [
        replace(one, recipients=(f"a@{one.id}.example", f"b@{one.id}.example")) for one in hotels(8)
    ]
    desk.add(*tenants)
    keys = {one.id: desk.release(one.id, 2) for one in tenants}
    assert once(desk).sent_count == 16
    seen = []
    for raw in desk.mails():
        mail = message_from_bytes(raw, policy=SMTP)
        (name,) = re.findall(r"@(hotel-\d+)\.example", str(mail["to"]))
        table = next(one for one in mail.walk() if one.get_content_type() == "text/csv")
        text = table.get_payload(decode=True).decode("utf-8-sig")  # type: ignore[union-attr]
        assert all(key in text for key in keys[name])
        whole = "".join(
            part.get_content() for part in mail.walk() if part.get_content_maintype() == "text"
        )
        number = name.removeprefix("hotel-")
        assert set(re.findall(r"Hotel (\d+)", whole)) == {number}
        seen.append(str(mail["to"]))
    assert sorted(seen) == addresses(tenants)
