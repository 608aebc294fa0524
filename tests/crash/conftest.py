"""Crash tests fork, so their time limit comes by a signal: the other kind is a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from freehold.adapters.sql.migrations import upgrade
from freehold.bootstrap import open_session
from freehold.settings import DatabaseSettings, Settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.tables import StandardTable
from tests.conftest import DATABASES, POSTGRES
from tests.crash.script import empty
from tests.servers import Servers

MEMORY = Path("/dev/shm")  # noqa: S108 -- a folder of its own is made in it


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


@pytest.fixture(scope="session")
def prepared(servers: Servers) -> Iterator[Callable[[str, int], str]]:
    """Databases with standard table and ledger by kind and number, made once.

    SQLite files lie in memory where the machine can do that: a killed process loses nothing that
    it wrote, so a disk would only add time.
    """
    memory = MEMORY if MEMORY.is_dir() else None
    with TemporaryDirectory(dir=memory, prefix="freehold-") as folder:

        @cache
        def make(kind: str, number: int) -> str:
            if kind == "sqlite":
                return prepare(f"sqlite:///{folder}/shop{number}.db")
            return prepare(servers.read(kind).create_database())

        yield make


@pytest.fixture(params=DATABASES)
def shop(request: pytest.FixtureRequest, prepared: Callable[[str, int], str]) -> str:
    """The URL of an empty shop with its ledger, on a database of every kind in turn."""
    return _emptied(prepared(request.param, 0))


@pytest.fixture(params=DATABASES)
def lanes(request: pytest.FixtureRequest, prepared: Callable[[str, int], str]) -> list[str]:
    """Two such shops of one kind, for a sweep that runs in two lanes."""
    return [_emptied(prepared(request.param, number)) for number in (0, 1)]


@pytest.fixture(params=POSTGRES)
def postgres_shop(request: pytest.FixtureRequest, prepared: Callable[[str, int], str]) -> str:
    """The same on each PostgreSQL only."""
    return _emptied(prepared(request.param, 0))


def _emptied(url: str) -> str:
    with BackDoor(url) as door:
        door.wait_until_alone()
        with door.together():
            empty(door)
    return url
