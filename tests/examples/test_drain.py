"""From a due hold to a consumer's inbox: when all is drained, each event is there exactly once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.e2e.command import freehold
from tests.e2e.shop import make_shop, statuses
from tests.examples.events import offers, received
from tests.examples.receiving import SECRET, receiving

if TYPE_CHECKING:
    from pathlib import Path

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
EVENT_KEYS = """
select rule || ':' || digest || ':' || generation || ':' || type, state from freehold_outbox
"""


def test_each_event_is_in_the_inbox_once_after_a_drain(tmp_path: Path, consumer_url: str) -> None:
    file = tmp_path / "shop.db"
    with receiving(consumer_url) as receiver:
        port = urlsplit(receiver.url).port
        target = TARGET.format(url=receiver.url, secret=SECRET, port=port)
        make_shop(tmp_path, f"sqlite:///{file}", due_count=DUE_COUNT, more=target)
        assert freehold("db", "upgrade", cwd=tmp_path).code == 0
        ended = freehold("run", "--until-idle", cwd=tmp_path)
        assert ended.code == 0, ended.err
    assert statuses(f"sqlite:///{file}")["expired"] == DUE_COUNT
    with closing(sqlite3.connect(file)) as connection:
        events = dict(connection.execute(EVENT_KEYS).fetchall())
    assert set(events.values()) == {"published"}
    assert received(consumer_url) == offers(consumer_url) == sorted(events)
    assert len(events) == DUE_COUNT
    assert freehold("audit", cwd=tmp_path).code == 0
