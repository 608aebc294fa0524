"""Public failures of several schedulers at once, and of one that was away, played here.

Those that take a fleet of whole services are in `test_fleet`.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, time, timedelta
from email import message_from_bytes
from email.policy import SMTP
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards, StopRequest
from freehold.bootstrap import open_ledger
from freehold.domain.inventory import Tenant
from freehold.entrypoints.reporting import reporter_of
from freehold.entrypoints.reporting_once import MailBudget, report_once
from freehold.ports.telemetry import UNHEARD
from freehold.testing.backdoor import BackDoor
from freehold.testing.clock import SetClock
from freehold.testing.forking import fork
from tests.e2e.inprocess import Program
from tests.e2e.running import Running
from tests.reports.desk import HARBOUR, Desk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from freehold.testing.forking import Wire
    from tests.servers import Servers

DAY = timedelta(days=1)
SCHEDULERS = 8
TENANTS = 100


@pytest.fixture
def alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path, monkeypatch, capsys)


@pytest.fixture
def url(servers: Servers) -> Iterator[str]:
    """A fresh database of the machine's PostgreSQL."""
    server = servers.read(next(iter(servers.find_binaries())))
    url = server.create_database()
    yield url
    server.drop_database(url)


def release_for_all(desk: Desk, tenants: list[Tenant]) -> None:
    """Have a hold of each tenant released on the desk's day, in one pass."""
    due = f"{datetime.combine(desk.day, time(11)):%Y-%m-%d %H:%M:%S}"
    with BackDoor(desk.url) as door, door.together():
        for number, one in enumerate(tenants):
            door.execute(
                "insert into res values (:id, :tenant, 'held', :due)",
                id=desk.day.toordinal() * 1_000 + number,
                tenant=one.id,
                due=due,
            )
    desk.release(tenants[0].id)


@pytest.mark.timeout(120, method="signal")  # a time limit by a thread could not fork
def test_eight_schedulers_write_one_row_for_each_of_two_hundred_due_dates(
    alone: Program, url: str
) -> None:
    desk = Desk(alone, url)
    tenants = [Tenant(f"hotel-{number:02}", f"Hotel {number}") for number in range(TENANTS)]
    desk.add(*tenants)
    days = [desk.day - DAY, desk.day]
    for desk.day in days:
        release_for_all(desk, tenants)

    def child(wire: Wire) -> int:
        wire.tell("ready")
        wire.wait()
        done = report_once(desk.settings, Onwards(), UNHEARD, MailBudget(), StopRequest())
        return done.closed_count

    with ExitStack() as stack:
        children = [stack.enter_context(fork(child)) for _ in range(SCHEDULERS)]
        for one in children:
            one.wait_for("ready")
        for one in children:
            one.go_on()
        closed_count = sum(one.end().value for one in children)
    with BackDoor(url) as door:
        rows = door.rows(
            "select report_date, count(*), count(distinct tenant), min(expired_count)"
            " from {s}report where report_date <= :day group by 1 order by 1",
            day=days[-1],
        )
        assert rows == [(day, TENANTS, TENANTS, 1) for day in days]
        assert closed_count == door.one("select count(*) from {s}report")


def test_a_service_that_was_away_over_the_due_time_sends_at_its_start_once(
    alone: Program, sqlite_url: str
) -> None:
    desk = Desk(alone, sqlite_url)
    desk.add(HARBOUR)
    days = [desk.day - DAY, desk.day]
    noon = datetime.combine(days[0], time(12), UTC)
    ledger = open_ledger(desk.settings, clock=SetClock(noon))
    reporter_of(ledger, desk.settings, Onwards(), UNHEARD, StopRequest()).prepare()  # the last pass
    ledger.close()
    for desk.day in days:
        desk.release("harbour")
    with Running(alone.folder, "--role", "report") as service:
        assert [service.wait_for("send")["state"] for _ in days] == ["accepted", "accepted"]
        assert service.stop() == 0
    assert desk.freehold("--json", "report", "run").data["sends"] == {}
    subjects = {str(message_from_bytes(one, policy=SMTP)["subject"]) for one in desk.mails()}
    assert len(subjects) == len(desk.mails()) == 2
