"""Fixtures of the contract suites: one database of each kind for the session, emptied each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import DATABASES, POSTGRES
from tests.contract.grounds import ground_at, migrate
from tests.contract.mails import Mails
from tests.contract.ward import Ward

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from freehold.testing.contracts.ground import Ground
    from tests.contract.grounds import SqlGround
    from tests.servers import Servers


@pytest.fixture(scope="module", params=DATABASES)
def migrated_url(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A migrated database of every kind in turn; shared, so that a test costs milliseconds."""
    yield from migrated(request.param, servers, tmp_path_factory)


def migrated(
    kind: str, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the URL of a migrated database of a kind, and drop it."""
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('contract') / 'freehold.db'}"
        migrate(url)
        yield url
        return
    server = servers.read(kind)
    url = server.create_database()
    migrate(url)
    yield url
    server.drop_database(url)


@pytest.fixture
def ground(migrated_url: str) -> Iterator[Ground]:
    """An empty ledger beside an empty table of holds, on every database in turn."""
    with ground_at(migrated_url) as ground:
        yield ground


@pytest.fixture
def mails(ground: SqlGround) -> Mails:
    """Reports with mails, beside the adapter."""
    return Mails(ground.back.door)


@pytest.fixture(scope="module", params=POSTGRES)
def migrated_postgres_url(request: pytest.FixtureRequest, servers: Servers) -> Iterator[str]:
    """A migrated database on each PostgreSQL in turn; shared."""
    server = servers.read(request.param)
    url = server.create_database()
    migrate(url)
    yield url
    server.drop_database(url)


@pytest.fixture
def ward(migrated_url: str) -> Iterator[Ward]:
    """A sound table for doctor to look at, on every database in turn."""
    with Ward.opened(migrated_url) as ward:
        yield ward


@pytest.fixture
def postgres_ward(migrated_postgres_url: str) -> Iterator[Ward]:
    """The same on each PostgreSQL."""
    with Ward.opened(migrated_postgres_url) as ward:
        yield ward


@pytest.fixture
def sqlite_ward(tmp_path: Path) -> Iterator[Ward]:
    """The same in an SQLite file of its own."""
    url = f"sqlite:///{tmp_path / 'freehold.db'}"
    migrate(url)
    with Ward.opened(url) as ward:
        yield ward
