"""A hotel on every database in turn: one database of each kind for the session, emptied each time.

The tests fork, so their time limit comes by a signal: the other kind is a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.testing.backdoor import BackDoor
from freehold.testing.pipeline import Pipeline
from tests.conftest import DATABASES, POSTGRES
from tests.holds.hotel import desk_at, empty, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.holds.hotel import Desk
    from tests.servers import Servers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.timeout(method="signal"), append=False)


@pytest.fixture(scope="session", params=DATABASES)
def prepared_url(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A database with a ledger, of every kind in turn; shared."""
    yield from _prepared(request.param, servers, tmp_path_factory.mktemp("holds"))


@pytest.fixture(scope="session", params=POSTGRES)
def prepared_postgres_url(request: pytest.FixtureRequest, servers: Servers) -> Iterator[str]:
    """The same on each PostgreSQL."""
    yield from _prepared(request.param, servers, None)


def _prepared(kind: str, servers: Servers, folder: Path | None) -> Iterator[str]:
    if kind == "sqlite":
        url = f"sqlite:///{folder}/freehold.db"
        prepare(url)
        yield url
        return
    server = servers.read(kind)
    url = server.create_database()
    prepare(url)
    yield url
    server.drop_database(url)


@pytest.fixture
def hotel(prepared_url: str) -> str:
    """The URL of a hotel with three free units: 1, 2 and 3."""
    empty(prepared_url)
    return prepared_url


@pytest.fixture
def postgres_hotel(prepared_postgres_url: str) -> str:
    """The same on each PostgreSQL."""
    empty(prepared_postgres_url)
    return prepared_postgres_url


@pytest.fixture
def door(hotel: str) -> Iterator[BackDoor]:
    """The raw way in."""
    with BackDoor(hotel) as door:
        yield door


@pytest.fixture
def desk(hotel: str) -> Desk:
    """Somebody who grants holds."""
    return desk_at(hotel)


@pytest.fixture
def pipeline(desk: Desk) -> Iterator[Pipeline]:
    """Freehold at work on the holds; the audit must be clean in the end."""
    pipeline = Pipeline(desk.url, desk.rule, desk.clock)
    yield pipeline
    assert pipeline.audit() == []
    pipeline.close()
