"""`freehold run` beside a real broker: a hint that may die, and targets that are told of releases."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from tests.e2e.command import freehold
from tests.e2e.inprocess import Program
from tests.e2e.running import Running
from tests.e2e.shop import make_shop, statuses
from tests.webhooks.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.brokers.nats_server import NatsServer
    from tests.brokers.rabbit_server import RabbitServer

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
QUEUE = """
[loops]
poll = "50ms"
[logs]
level = "debug"
[queue]
kind = "nats"
url = "{url}"
name = "{name}"
"""


def shop(folder: Path, url: str, more: str, *, due_count: int = 0) -> None:
    make_shop(folder, url, due_count=due_count, more=more)
    assert freehold("db", "upgrade", cwd=folder).code == 0


def hold(url: str, *numbers: int) -> None:
    """Insert holds that are due now; a scan reads again what came due a moment ago, not long ago."""
    due = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}"
    insert = "insert into carts (id, shop, status, hold_token, hold_until) values "
    rows = ", ".join(f"({n}, 'pier', 'held', 't{n}', '{due}')" for n in numbers)
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=20)) as lite:
            lite.execute(insert + rows)
            lite.commit()
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(insert + rows)


class Journal:
    """What a service says, line by line, with what was read on the way."""

    def __init__(self, service: Running) -> None:
        self._service = service
        self.entries: list[dict[str, Any]] = []

    def until(self, event: str, **fields: object) -> dict[str, Any]:
        """Read on until a line has that event and those values."""
        while True:
            entry = self._service.read()
            self.entries.append(entry)
            if entry["event"] == event and fields.items() <= entry.items():
                return entry

    def until_released(self, count: int) -> None:
        """Read on until the batches have released so many more."""
        while count > 0:
            count -= int(self.until("batch")["released"])

    def take(self) -> list[dict[str, Any]]:
        """Return what was read since the last call."""
        taken, self.entries = self.entries, []
        return taken


def of(entries: list[dict[str, Any]], event: str, field: str) -> int:
    return sum(int(one[field]) for one in entries if one["event"] == event)


def test_it_works_by_messages_without_them_and_by_them_again(
    tmp_path: Path, database_url: str, nats_server: NatsServer, stream: str
) -> None:
    more = QUEUE.format(url=nats_server.url, name=stream)
    _works_by_messages_and_without(tmp_path, database_url, nats_server, more, nats_server.kill9)


@pytest.mark.proof
def test_it_does_so_beside_rabbitmq_too(
    tmp_path: Path, sqlite_url: str, rabbit_server: RabbitServer, stream: str
) -> None:
    more = QUEUE.format(url=rabbit_server.url, name=stream).replace('"nats"', '"rabbitmq"')

    def kill() -> None:
        """Kill it as one that has run a while.

        Who leads a quorum queue is on disk only seconds after the queue was made. One that is
        killed sooner never finds a leader again, and workers then stay with the ledger.
        """
        rabbit_server.command("eval", "[dets:sync(One) || One <- dets:all()].")
        rabbit_server.kill9()

    _works_by_messages_and_without(tmp_path, sqlite_url, rabbit_server, more, kill)


def _works_by_messages_and_without(
    tmp_path: Path,
    database_url: str,
    server: NatsServer | RabbitServer,
    more: str,
    kill: Callable[[], None],
) -> None:
    shop(tmp_path, database_url, more)
    with Running(tmp_path) as service:
        journal = Journal(service)
        assert journal.until("started")["roles"] == "scan,work,dispatch"
        journal.until("queue found")
        journal.until("queue found")
        journal.take()
        hold(database_url, *range(1, 11))
        journal.until("deliveries", passed_over=0)
        handled = journal.take()
        assert of(handled, "dispatch", "published") >= of(handled, "deliveries", "delivered") > 0
        assert of(handled, "batch", "released") == of(handled, "deliveries", "delivered")
        journal.until_released(10 - of(handled, "batch", "released"))

        kill()
        try:
            journal.until("queue lost", loop="deliveries")
            journal.take()
            hold(database_url, *range(11, 21))
            journal.until_released(10)
            assert not of(journal.take(), "deliveries", "delivered")
        finally:
            server.start()

        journal.until("queue found", loop="deliveries")
        if not any(one.get("loop") == "dispatch" for one in journal.take()):
            journal.until("queue found", loop="dispatch")
        hold(database_url, *range(21, 31))
        journal.until("deliveries", passed_over=0)
        journal.until_released(10 - of(journal.take(), "batch", "released"))
        assert service.stop() == 0
    assert statuses(database_url)["expired"] == 30
    assert freehold("audit", cwd=tmp_path).code == 0


def test_roles_may_be_of_different_processes(
    tmp_path: Path, sqlite_url: str, nats_server: NatsServer, stream: str
) -> None:
    shop(tmp_path, sqlite_url, QUEUE.format(url=nats_server.url, name=stream))
    with (
        Running(tmp_path, "--role", "work") as working,
        Running(tmp_path, "--role", "scan,dispatch") as naming,
    ):
        worker = Journal(working)
        worker.until("queue found", loop="deliveries")
        hold(sqlite_url, 1, 2, 3)
        worker.until("deliveries", passed_over=0)
        assert of(worker.take(), "batch", "released") > 0
        assert naming.stop() == 0
        assert working.stop() == 0


def test_without_a_dispatcher_a_worker_looks_for_itself(
    tmp_path: Path, sqlite_url: str, nats_server: NatsServer, stream: str
) -> None:
    more = QUEUE.format(url=nats_server.url, name=stream)
    shop(tmp_path, sqlite_url, more.replace("[loops]", '[loops]\nsweep = "300ms"'))
    with Running(tmp_path, "--role", "scan,work") as service:
        journal = Journal(service)
        journal.until("queue found", loop="deliveries")
        hold(sqlite_url, 1, 2, 3)
        assert journal.until("hints missing")["rule"] == "cart"
        findings = freehold("status", "--json", cwd=tmp_path).data["findings"]
        assert any("no process with the role dispatch is alive" in one for one in findings)
        journal.until_released(3)
        assert service.stop() == 0


def test_a_one_shot_names_what_is_ready_and_says_when_there_is_no_broker(
    program: Program, sqlite_url: str, nats_server: NatsServer, stream: str
) -> None:
    shop(program.folder, sqlite_url, QUEUE.format(url=nats_server.url, name=stream), due_count=3)
    assert program("scan").code == 0
    assert program("dispatch").out == "cart: 3 published\n"
    nats_server.kill9()
    try:
        away = program("dispatch")
        assert away.code == 5
        assert away.sentence.startswith("freehold: ")
        assert program("run", "--until-idle").out == "released 3 holds\n"
    finally:
        nats_server.start()


TARGET = """
[loops]
poll = "50ms"
[logs]
level = "debug"
[[targets]]
name = "crm"
kind = "webhook"
url = "{url}"
secret = "{secret}"
insecure = true
allow = ["127.0.0.1/32"]
ports = [{port}]
"""


@pytest.fixture
def program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program, in the test's own process."""
    return Program(tmp_path, monkeypatch, capsys)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A customer's endpoint."""
    with Receiver(None).serving() as one:
        yield one


def to_receiver(receiver: Receiver) -> str:
    url = receiver.url(host="127.0.0.1")
    return TARGET.format(url=url, secret=SECRET, port=receiver.port)


def test_a_target_is_told_of_every_release(
    tmp_path: Path, database_url: str, receiver: Receiver
) -> None:
    shop(tmp_path, database_url, to_receiver(receiver), due_count=10)
    with Running(tmp_path) as service:
        journal = Journal(service)
        assert journal.until("started")["roles"] == "scan,work,relay"
        told = 0
        while told < 10:
            told += int(journal.until("events forwarded")["delivered"])
        assert service.stop() == 0
    keys = {json.loads(one.body)["id"] for one in receiver.got}
    assert len(keys) == 10
    assert freehold("audit", cwd=tmp_path).code == 0


def test_a_target_that_says_nothing_does_not_outlast_the_drain(
    tmp_path: Path, sqlite_url: str, receiver: Receiver
) -> None:
    asked = threading.Event()

    def hang(_: object) -> None:
        asked.set()
        receiver.hang()

    receiver.play = hang
    more = to_receiver(receiver).replace("[loops]", '[loops]\ndrain = "300ms"')
    shop(tmp_path, sqlite_url, more, due_count=1)
    with Running(tmp_path) as service:
        service.wait_for("batch")
        assert asked.wait(20)
        began = monotonic()
        assert service.stop() == 4
        assert monotonic() - began < 10, "a delivery may take 15 s"
    assert statuses(sqlite_url)["expired"] == 1


def test_one_shots_tell_a_target_too(program: Program, sqlite_url: str, receiver: Receiver) -> None:
    shop(program.folder, sqlite_url, to_receiver(receiver), due_count=3)
    who = ("--by", "ann", "--reason", "their release")
    assert program("pause", "relay", *who).code == 0
    assert program("work").code == 0
    assert program("run", "--until-idle").out == ("released 3 holds; delivered 0 events\n")
    paused = program("relay")
    assert paused.code == 6
    assert "The relay is paused" in paused.sentence
    assert program("resume", "relay", *who).code == 0
    assert program("relay", "--limit", "1", "--json").data["delivered"] == 3
    assert program("relay").out == "delivered 0 events\n"
    assert len(receiver.got) == 3


def test_roles_without_what_they_need_are_refused(program: Program, sqlite_url: str) -> None:
    shop(program.folder, sqlite_url, "")
    for role, missing in (("dispatch", "No broker is configured"), ("relay", "No target is")):
        for arguments in (("run", "--role", role), (role,)):
            refused = program(*arguments)
            assert refused.code == 2
            assert missing in refused.sentence
