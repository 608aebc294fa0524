"""Who is let in by RabbitMQ, over what, and what is told of it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.rabbitmq import RabbitQueue, link
from freehold.domain.errors import QueueAway, QueueUnfit, UsageError
from freehold.testing.contracts.queue import message
from tests.brokers.rabbit_server import LOGIN, READER, VHOST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.brokers.rabbit_server import RabbitServer


def depth(url: str, name: str, ca_file: str | None = None) -> int | None:
    queue = RabbitQueue(url=url, name=name, ca_file=ca_file)
    try:
        return queue.depth()
    finally:
        queue.close()


def test_a_user_is_let_in_over_tls(rabbit_server: RabbitServer, queue_name: str) -> None:
    assert depth(rabbit_server.tls_url, queue_name, rabbit_server.ca_file) == 0


@pytest.mark.parametrize("trick", ["", "?no_verify_ssl=1"])
def test_a_certificate_that_nobody_vouches_for_is_refused(
    rabbit_server: RabbitServer, queue_name: str, trick: str
) -> None:
    with pytest.raises(QueueUnfit, match="not trusted: see ca_file"):
        depth(f"{rabbit_server.tls_url}{trick}", queue_name)


@pytest.mark.parametrize(
    ("login", "vhost", "told"),
    [
        ("holder:wr0ng", VHOST, "refuses this user"),
        ("nobody:wr0ng", VHOST, "refuses this user"),
        (LOGIN, "wr0ng", "has no virtual host wr0ng"),
        (LOGIN, "", "has no virtual host /, or not for this user"),
        (READER, VHOST, "does not let us: ACCESS_REFUSED"),
    ],
)
def test_who_is_not_let_in_is_told_why_without_the_password(
    rabbit_server: RabbitServer, queue_name: str, login: str, vhost: str, told: str
) -> None:
    with pytest.raises(QueueUnfit, match=told) as caught:
        depth(rabbit_server.url_of(login, vhost), queue_name)
    assert login.partition(":")[2] not in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_who_may_publish_nothing_is_told(rabbit_server: RabbitServer, queue_name: str) -> None:
    depth(rabbit_server.url, queue_name)
    queue = RabbitQueue(url=rabbit_server.url_of(READER), name=queue_name)
    assert queue.depth() == 0
    with pytest.raises(QueueUnfit, match="does not let us: ACCESS_REFUSED"):
        queue.publish([message(1)])
    queue.close()


def test_a_server_that_says_nothing_is_away(
    monkeypatch: pytest.MonkeyPatch, queue_name: str
) -> None:
    monkeypatch.setattr(link, "CONNECT_SECONDS", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as mute,
        pytest.raises(QueueAway, match="no answer in time"),
    ):
        depth(f"amqp://127.0.0.1:{mute.getsockname()[1]}", queue_name)


def test_a_server_of_another_kind_is_away(queue_name: str, rabbit_server: RabbitServer) -> None:
    url = f"amqp://{LOGIN}@127.0.0.1:{rabbit_server.tls_port}/{VHOST}"
    with pytest.raises(QueueAway, match="cannot be reached"):
        depth(url, queue_name)


@pytest.mark.parametrize(
    "url",
    ["http://h", "amqp://", "amqp://h:port", "amqp://a:b:c@", "amqp://a:12/s@h", "amqp://a:12?s@h"],
)
def test_what_is_no_url_of_rabbitmq_is_a_mistake(url: str) -> None:
    with pytest.raises(UsageError, match="a URL of RabbitMQ is"):
        RabbitQueue(url=url, name="x")


def test_a_file_without_certificates_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("no certificate")
    with pytest.raises(UsageError, match="cannot be read as certificates"):
        RabbitQueue(url="amqps://h", name="x", ca_file=str(tmp_path / "ca"))
