"""Crash tests fork, so their time limit comes by a signal: the other kind is a thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from freehold.adapters.sql.migrations import upgrade
from freehold.bootstrap import open_session
from freehold.settings import DatabaseSettings, Settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.tables import StandardTable


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.timeout(method="signal"), append=False)


def prepare(url: str) -> str:
    """Make the standard table and the ledger in a fresh database; nothing stays connected."""
    with BackDoor(url) as door:
        StandardTable(door).create()
    session = open_session(Settings(DatabaseSettings(url)))
    upgrade(session)
    session.close()
    return url


@pytest.fixture
def shop(database_url: str) -> str:
    """The URL of a database with standard table and ledger, of every kind in turn."""
    return prepare(database_url)


@pytest.fixture
def postgres_shop(postgres_url: str) -> Iterator[str]:
    """The same on each PostgreSQL only."""
    yield prepare(postgres_url)
