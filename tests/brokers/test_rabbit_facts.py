"""What `doctor` is told of a RabbitMQ server, as the server has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.adapters.rabbitmq import RabbitFacts, RabbitQueue
from freehold.adapters.rabbitmq.topology import DELIVERY_LIMIT
from freehold.domain.errors import QueueAway, QueueUnfit
from freehold.ports.queue import Disposition
from freehold.testing.contracts.queue import message, take
from tests.brokers.rabbit_door import RabbitDoor
from tests.brokers.rabbit_server import READER, USER, VHOST, RabbitServer
from tests.e2e.command import freehold

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from freehold.ports.queue_facts import QueueFacts


@pytest.fixture(scope="module")
def managed() -> Iterator[RabbitServer]:
    """A server with its management."""
    server = RabbitServer(managed=True)
    yield server.start()
    server.remove()


def fill(server: RabbitServer, name: str) -> None:
    """Leave two messages waiting, and none unsettled."""
    queue = RabbitQueue(url=server.url, name=name)
    queue.publish([message(1), message(2), message(3)])
    queue.settle(take(queue, 3)[:1], Disposition.ACK)
    queue.close()


def look(server: RabbitServer, name: str, **how: str) -> QueueFacts:
    return RabbitFacts(**{"url": server.url, "name": name, **how}).read()


def test_a_queue_that_is_not_made_yet_is_told_and_not_made(
    rabbit_server: RabbitServer, queue_name: str
) -> None:
    for _ in range(2):
        facts = look(rabbit_server, queue_name)
        assert (facts.kind, facts.is_made, facts.queue_type) == ("rabbitmq", False, None)


def test_a_queue_as_we_make_it_is_known_without_a_monitor(
    rabbit_server: RabbitServer, queue_name: str
) -> None:
    fill(rabbit_server, queue_name)
    facts = look(rabbit_server, queue_name)
    assert facts.version.startswith("3.")
    assert (facts.is_made, facts.queue_type, facts.is_persistent) == (True, "quorum", True)
    assert (facts.delivery_limit, facts.overflow) == (DELIVERY_LIMIT, "reject-publish")
    assert facts.dead_letter_target == f"{queue_name}.dead"
    assert (facts.waiting_count, facts.dead_count) == (2, 0)
    assert (facts.user, facts.vhost, facts.is_in_clear) == (USER, VHOST, False)
    assert (facts.is_monitored, facts.replicas, facts.is_clustered) == (False, None, None)


def test_who_may_make_nothing_learns_less(rabbit_server: RabbitServer, queue_name: str) -> None:
    fill(rabbit_server, queue_name)
    facts = look(rabbit_server, queue_name, url=rabbit_server.url_of(READER))
    assert (facts.is_made, facts.waiting_count, facts.queue_type) == (True, 2, None)


def test_a_queue_that_is_made_otherwise_is_unfit(
    rabbit_server: RabbitServer, queue_name: str
) -> None:
    RabbitDoor(rabbit_server.url).make(queue_name)
    with pytest.raises(QueueUnfit, match="exists and is made otherwise"):
        look(rabbit_server, queue_name)


def test_who_cannot_be_reached_is_away(rabbit_server: RabbitServer, queue_name: str) -> None:
    for how in ({"url": "amqp://127.0.0.1:1"}, {"monitor": "http://u:s3cret@127.0.0.1:1"}):
        with pytest.raises(QueueAway) as told:
            look(rabbit_server, queue_name, **how)
        assert "s3cret" not in str(told.value)


def test_the_command_shows_what_it_found_and_no_password(
    rabbit_server: RabbitServer, queue_name: str, tmp_path: Path
) -> None:
    database = f'[database]\nurl = "sqlite:///{tmp_path}/h.db"\n'
    config = f'[queue]\nkind = "rabbitmq"\nname = "{queue_name.replace(".", "-")}"\nurl = "{{}}"\n'
    (tmp_path / "freehold.toml").write_text(database + config.format(rabbit_server.url))
    (tmp_path / "h.db").touch(0o600)
    sound = freehold("doctor", cwd=tmp_path)
    assert sound.code == 0
    assert "ok\tbroker\t-\tqueue\tRabbitMQ 3." in sound.out
    wrong = config.format(rabbit_server.url_of("holder:wr0ng"))
    (tmp_path / "freehold.toml").write_text(database + wrong)
    ended = freehold("doctor", cwd=tmp_path)
    assert ended.code == 3
    assert "refuse\tbroker-unfit\t-\tqueue\t" in ended.out
    assert "wr0ng" not in ended.out + ended.err


@pytest.mark.proof
def test_the_management_tells_how_any_queue_is_kept(managed: RabbitServer, queue_name: str) -> None:
    fill(managed, queue_name)
    facts = look(managed, queue_name, monitor=managed.monitor)
    assert (facts.is_monitored, facts.is_clustered, facts.replicas) == (True, False, 1)
    assert (facts.queue_type, facts.delivery_limit) == ("quorum", DELIVERY_LIMIT)
    assert facts.dead_letter_target == f"{queue_name}.dead"
    RabbitDoor(managed.url).make(f"{queue_name}.classic")
    other = look(managed, f"{queue_name}.classic", monitor=managed.monitor)
    assert (other.queue_type, other.overflow, other.is_persistent) == ("classic", "drop-head", True)
    assert (other.delivery_limit, other.dead_letter_target) == (None, None)


@pytest.mark.proof
def test_a_management_that_refuses_is_told(managed: RabbitServer, queue_name: str) -> None:
    for monitor in (f"http://u:s3cret@127.0.0.1:{managed.monitor_port}", f"{managed.monitor}/x"):
        with pytest.raises(QueueAway, match="RabbitMQ's management"):
            look(managed, queue_name, monitor=monitor)
