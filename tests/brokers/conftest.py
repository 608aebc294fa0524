"""The private brokers of one test session, each started when first asked for."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.brokers.nats_server import NatsServer
from tests.brokers.rabbit_server import RabbitServer

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    """Return a NATS server that tests may restart, never leave down."""
    server = NatsServer()
    yield server.start()
    server.remove()


@pytest.fixture(scope="session")
def rabbit_server() -> Iterator[RabbitServer]:
    """Return a RabbitMQ that tests may restart, never leave down."""
    server = RabbitServer()
    yield server.start()
    server.remove()


@pytest.fixture
def stream() -> str:
    """Return the name of a stream that nobody has."""
    return f"hints-{next(_NUMBERS)}"
