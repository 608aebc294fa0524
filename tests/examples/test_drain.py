"""From a due hold to a consumer's inbox: when all is drained, each event is there exactly once."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.e2e.command import freehold
from tests.e2e.shop import make_shop, statuses
from tests.examples.consuming import consuming
from tests.examples.events import offers, received
from tests.examples.patience import wait_for
from tests.examples.receiving import HOOK, SECRET, receiving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.examples.brokers import Broker

DUE_COUNT = 30
TARGET = """
[[targets]]
name = "waiting-list"
kind = "webhook"
url = "{url}"
secret = "{secret}"
ports = [{port}]
allow = ["127.0.0.0/8"]
insecure = true

[targets.retry]
delays = ["100ms", "100ms"]
"""
BROKER_TARGET = """
[[targets]]
name = "waiting-list"
kind = "{kind}"
url = "{url}"
"""
EVENT_KEYS = """
select rule || ':' || digest || ':' || generation || ':' || type, state from freehold_outbox
"""


def test_each_event_is_in_the_inbox_once_after_a_drain(tmp_path: Path, consumer_url: str) -> None:
    file = tmp_path / "shop.db"
    with receiving(consumer_url, "--import", str(HOOK)) as receiver:
        port = receiver.port
        target = TARGET.format(url=receiver.url, secret=SECRET, port=port)
        make_shop(tmp_path, f"sqlite:///{file}", due_count=DUE_COUNT, more=target)
        assert freehold("db", "upgrade", cwd=tmp_path).code == 0
        freehold("run", "--until-idle", cwd=tmp_path)
        assert receiver.process.wait(30) == -signal.SIGKILL
    assert 0 < len(received(consumer_url)) < DUE_COUNT
    with receiving(consumer_url, port=port):
        wait_for(lambda: _drained(tmp_path, file))
    assert statuses(f"sqlite:///{file}")["expired"] == DUE_COUNT
    events = _events(file)
    assert received(consumer_url) == offers(consumer_url) == sorted(events)
    assert len(events) == DUE_COUNT
    assert freehold("audit", cwd=tmp_path).code == 0


@pytest.mark.parametrize("broker", ["nats"], indirect=True)
def test_each_event_is_in_the_inbox_once_by_way_of_a_broker(
    tmp_path: Path, consumer_url: str, broker: Broker
) -> None:
    file = tmp_path / "shop.db"
    target = BROKER_TARGET.format(kind=broker.kind, url=broker.url)
    make_shop(tmp_path, f"sqlite:///{file}", due_count=DUE_COUNT, more=target)
    assert freehold("db", "upgrade", cwd=tmp_path).code == 0
    with consuming(broker, consumer_url):
        wait_for(lambda: _drained(tmp_path, file))
        events = _events(file)
        wait_for(lambda: received(consumer_url) == sorted(events))
    assert offers(consumer_url) == sorted(events)
    assert len(events) == DUE_COUNT


def _drained(folder: Path, file: Path) -> bool:
    """Let Freehold do what it can now; tell whether every event was taken."""
    assert freehold("run", "--until-idle", cwd=folder).code == 0
    return set(_events(file).values()) == {"published"}


def _events(file: Path) -> dict[str, str]:
    """Return the state of each event by its key, past every layer of ours."""
    with closing(sqlite3.connect(file)) as connection:
        return dict(connection.execute(EVENT_KEYS).fetchall())
