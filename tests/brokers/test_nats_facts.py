"""What `doctor` is told of a NATS server, as the server has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.adapters.nats import NatsFacts, NatsQueue
from freehold.domain.errors import QueueAway
from freehold.ports.queue import Disposition
from freehold.testing.contracts.queue import message, take
from tests.brokers.nats_door import NatsDoor
from tests.brokers.nats_server import NatsServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def syncing() -> Iterator[NatsServer]:
    """A server that syncs each publish."""
    server = NatsServer(sync_interval="always")
    yield server.start()
    server.remove()


def test_a_queue_that_is_not_made_yet_is_told_and_not_made(
    nats_server: NatsServer, stream: str
) -> None:
    facts = NatsFacts(url=nats_server.url, name=stream).read()
    assert (facts.kind, facts.is_made, facts.is_persistent) == ("nats", False, None)
    assert "error" in NatsDoor(nats_server.url).ask(f"STREAM.INFO.{stream}")


def test_a_queue_as_we_make_it(nats_server: NatsServer, stream: str) -> None:
    queue = NatsQueue(url=nats_server.url, name=stream)
    queue.publish([message(1), message(2), message(3)])
    queue.settle(take(queue, 1), Disposition.DEAD_LETTER)
    facts = NatsFacts(url=nats_server.url, name=stream).read()
    queue.close()
    assert facts.version.startswith("2.")
    assert (facts.is_made, facts.queue_type, facts.is_persistent) == (True, "workqueue", True)
    assert (facts.replicas, facts.is_clustered, facts.delivery_limit) == (1, False, None)
    assert facts.dead_letter_target == f"{stream}-dead"
    assert (facts.waiting_count, facts.dead_count) == (2, 1)
    assert (facts.sync_seconds, facts.is_monitored) == (None, False)


def test_the_monitoring_tells_how_often_files_are_synced(
    nats_server: NatsServer, syncing: NatsServer, stream: str
) -> None:
    for server, seconds in ((nats_server, 120.0), (syncing, 0.0)):
        facts = NatsFacts(url=server.url, name=stream, monitor=server.monitor).read()
        assert (facts.sync_seconds, facts.is_monitored) == (seconds, True)


def test_a_monitoring_that_cannot_be_read_is_told(nats_server: NatsServer, stream: str) -> None:
    for monitor in (f"{nats_server.monitor}/nothing", "http://127.0.0.1:1", nats_server.url):
        with pytest.raises(QueueAway, match="NATS's monitoring"):
            NatsFacts(url=nats_server.url, name=stream, monitor=monitor).read()


@pytest.mark.parametrize(
    ("url", "is_in_clear"),
    [("nats://127.0.0.1:{}", False), ("nats://localhost:{},nats://[::1]:1", False)],
)
def test_the_loopback_is_no_place_to_listen_in(
    nats_server: NatsServer, stream: str, url: str, is_in_clear: bool
) -> None:
    facts = NatsFacts(url=url.format(nats_server.port), name=stream).read()
    assert facts.is_in_clear is is_in_clear


def test_another_host_in_clear_is_told(nats_server: NatsServer, stream: str) -> None:
    facts = NatsFacts(url=f"{nats_server.url},nats://broker.example:1", name=stream).read()
    assert facts.is_in_clear
