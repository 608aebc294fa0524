"""The rights on the brokers' pages are enough for a whole service: the first start and later ones."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import nats
import pytest

from freehold.adapters.rabbitmq import RabbitTarget
from freehold.adapters.rabbitmq.topology import dead_arguments, hints_arguments
from freehold.settings import load_settings
from tests.brokers.nats_server import NatsServer
from tests.brokers.rabbit_door import RabbitDoor
from tests.e2e.command import freehold
from tests.e2e.running import Running
from tests.e2e.shop import make_shop, statuses
from tests.unit.test_settings import LEAST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nats.aio.msg import Msg

    from tests.brokers.rabbit_server import RabbitServer

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
RABBIT, NATS = ((HOW_TO / name).read_text() for name in ("rabbitmq.md", "nats.md"))
LOOPS = '[loops]\npoll = "50ms"\n[logs]\nlevel = "debug"\n'
HOLDS = 5


def toml(page: str, url: str) -> str:
    """Return the page's settings with another URL."""
    text = "".join(re.findall(r"```toml\n(.*?)```", page, re.DOTALL))
    return re.sub(r"^url(_file)? = .*$", f'url = "{url}"', text, flags=re.MULTILINE)


def serve(folder: Path, page: str, url: str) -> None:
    """Let a service with that URL release by messages, and tell a target of it."""
    folder.mkdir()
    database = folder / "freehold.db"
    make_shop(folder, f"sqlite:///{database}", due_count=0, more=LOOPS + toml(page, url))
    assert freehold("db", "upgrade", cwd=folder).code == 0
    told = handled = 0
    with Running(folder) as service:
        found: set[object] = set()
        while found != {"dispatch", "deliveries"}:
            found.add(service.wait_for("queue found")["loop"])
        with closing(sqlite3.connect(database, timeout=20)) as lite:
            due = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}"
            lite.executemany(
                "insert into carts values (?, 'pier', 'held', 't', ?)",
                [(number, due) for number in range(1, HOLDS + 1)],
            )
            lite.commit()
        while told < HOLDS or not handled:
            entry = service.read()
            assert entry["event"] not in {"queue lost", "target away"}, entry
            told += int(str(entry["delivered"])) if entry["event"] == "events forwarded" else 0
            handled += int(str(entry["delivered"])) if entry["event"] == "deliveries" else 0
        assert service.stop() == 0
    assert statuses(f"sqlite:///{database}")["expired"] == HOLDS


def permissions(user: str, number: int = 0) -> str:
    """Return the page's n-th permissions of a user as a line of Erlang."""
    told = re.findall(rf"set_permissions -p freehold {user} '(.*)' '(.*)' '(.*)'", RABBIT)
    each = ", ".join(f"<<{json.dumps(one)}>>" for one in told[number])
    return (
        f'rabbit_auth_backend_internal:set_permissions(<<"{user}">>, <<"freehold">>, '
        f'{each}, <<"tests">>)'
    )


USERS = """
rabbit_vhost:add(<<"freehold">>, <<"tests">>),
rabbit_auth_backend_internal:add_user(<<"freehold">>, <<"w">>, <<"tests">>),
rabbit_auth_backend_internal:add_user(<<"crm">>, <<"w">>, <<"tests">>),
"""


@pytest.mark.proof
def test_a_user_of_rabbitmq_with_the_rights_of_the_page_serves(
    rabbit_server: RabbitServer, tmp_path: Path
) -> None:
    url = rabbit_server.url_of("freehold:w", "freehold")
    rights = permissions("freehold"), permissions("crm")
    rabbit_server.command("eval", f"{USERS}{', '.join(rights)}.")
    first = RabbitTarget(url=url, exchange="freehold.events")
    assert list(first.deliver([])) == []  # makes the exchange, to which a consumer binds
    first.close()
    crm = RabbitDoor(rabbit_server.url_of("crm:w", "freehold"))
    crm.bind("crm", "freehold.events", "#")
    serve(tmp_path / "makes", RABBIT, url)
    assert len(crm.take("crm")) == HOLDS
    rabbit_server.command("eval", f"{permissions('freehold', 1)}.")
    serve(tmp_path / "uses", RABBIT, url)
    assert len(crm.take("crm")) == 2 * HOLDS


RULED = """
authorization { users: [
  { user: first, password: w, permissions: { publish: [USES MAKES], subscribe: ["_INBOX.>"] } }
  { user: later, password: w, permissions: { publish: [USES], subscribe: ["_INBOX.>"] } }
  { user: crm, password: w, permissions: { publish: [TAKES], subscribe: ["_INBOX.>"] } }
] }
"""


@pytest.fixture
def ruled() -> Iterator[NatsServer]:
    """A NATS server with the users of the page."""
    settings = RULED
    told = re.findall(r"publish: \[(.*?)\]", NATS, re.DOTALL)
    for word, subjects in zip(("USES", "MAKES", "TAKES"), told, strict=True):
        settings = settings.replace(word, subjects)
    server = NatsServer(settings=settings)
    yield server.start()
    server.remove()


def test_a_user_of_nats_with_the_rights_of_the_page_serves(
    ruled: NatsServer, tmp_path: Path
) -> None:
    for name in ("first", "later"):
        serve(tmp_path / name, NATS, f"nats://{name}:w@127.0.0.1:{ruled.port}")
    taken = asyncio.run(take(f"nats://crm:w@127.0.0.1:{ruled.port}"))
    assert len(taken) == 2 * HOLDS


async def take(url: str) -> list[Msg]:
    """Read the events as a consumer named crm does, and acknowledge them."""
    link = await nats.connect(url, allow_reconnect=False)
    try:
        crm = await link.jetstream().pull_subscribe(
            "freehold.events.>", durable="crm", stream="freehold-events"
        )
        found = await crm.fetch(2 * HOLDS, timeout=10)
        for one in found:
            await one.ack_sync()
    finally:
        await link.close()
    return found


def test_the_page_of_rabbitmq_says_what_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "rabbitmq").write_text("amqps://mq.example.com/freehold")
    text = "".join(re.findall(r"```toml\n(.*?)```", RABBIT, re.DOTALL))
    (tmp_path / "freehold.toml").write_text(LEAST + text)
    settings = load_settings(None, {})
    assert settings.queue is not None
    assert settings.queue.url.needed().startswith("amqps:")
    rows = {line.split("|")[1].strip(): line for line in RABBIT.splitlines() if "| durable" in line}
    for name, made in (
        ("freehold", hints_arguments("freehold")),
        ("freehold.dead", dead_arguments()),
    ):
        row = rows[f"queue `{name}`"]
        assert set(re.findall(r"x-[a-z-]+", row)) == set(made)
        for key, value in made.items():
            assert f"`{key}: {value}`" in row or value == "", key
    assert rows["exchange `freehold.events`"].count("`topic`") == 1
