"""A consumer's database, made by the script that the examples name; emptied for each test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.examples.brokers import Broker, NatsBroker, RabbitBroker
from tests.servers import find_debian_major

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Servers

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def prepared_consumer_url(servers: Servers) -> Iterator[str]:
    server = servers.read(f"postgres{find_debian_major()}")
    url = server.create_database()
    with psycopg.connect(url) as connection:
        connection.execute((EXAMPLES / "consumer-node" / "schema.sql").read_text())
    yield url
    server.drop_database(url)


@pytest.fixture
def consumer_url(prepared_consumer_url: str) -> str:
    """The URL of a consumer's database that holds nothing yet."""
    with psycopg.connect(prepared_consumer_url) as connection:
        connection.execute("truncate freehold_inbox, offers")
    return prepared_consumer_url


@pytest.fixture(params=["rabbitmq", "nats"])
def broker(request: pytest.FixtureRequest) -> Broker:
    """A broker of each kind, with nothing of the example's in it."""
    found: Broker
    if request.param == "nats":
        found = NatsBroker(request.getfixturevalue("nats_server").url)
    else:
        found = RabbitBroker(request.getfixturevalue("rabbit_server").url)
    found.prepare()
    return found
