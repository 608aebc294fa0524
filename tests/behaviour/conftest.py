"""The place where every test here happens: one fresh customer's database of each kind in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour import place as places
from tests.conftest import DATABASES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.behaviour.place import Place
    from tests.servers import PostgresServer, Servers


@pytest.fixture(params=DATABASES)
def place(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Place]:
    """A place on every database in turn."""
    yield from place_of(request.param, servers, tmp_path)


def place_of(kind: str, servers: Servers, folder: Path) -> Iterator[Place]:
    """Yield a place on a database of a kind."""
    if kind == "sqlite":
        yield from places.sqlite_place(folder)
    else:
        yield from places.postgres_place(servers.read(kind))


@pytest.fixture
def pg(postgres: PostgresServer) -> Iterator[Place]:
    """A place on each PostgreSQL server in turn."""
    yield from places.postgres_place(postgres)


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Place]:
    """A place on SQLite."""
    yield from places.sqlite_place(tmp_path)
