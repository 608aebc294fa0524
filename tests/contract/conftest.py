"""Fixtures of the contract suites: one database of each kind for the session, emptied each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import DATABASES
from tests.contract.grounds import ground_at, migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehold.testing.contracts.ground import Ground
    from tests.servers import Servers


@pytest.fixture(scope="module", params=DATABASES)
def migrated_url(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A migrated database of every kind in turn; shared, so that a test costs milliseconds."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('contract') / 'freehold.db'}"
        migrate(url)
        yield url
        return
    server = servers.read(request.param)
    url = server.create_database()
    migrate(url)
    yield url
    server.drop_database(url)


@pytest.fixture
def ground(migrated_url: str) -> Iterator[Ground]:
    """An empty ledger beside an empty table of holds, on every database in turn."""
    with ground_at(migrated_url) as ground:
        yield ground
