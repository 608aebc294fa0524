"""The shop that these tests look at, on every database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import DATABASES
from tests.insight.shop import copied_shop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.insight.shop import Shop
    from tests.servers import Servers


@pytest.fixture(params=DATABASES)
def every_shop(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Shop]:
    """A copy of the worked shop, on every database in turn."""
    yield from copied_shop(request.param, servers, tmp_path)


@pytest.fixture(params=DATABASES[:2])
def shop(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Shop]:
    """A copy of the worked shop, on SQLite and on the machine's PostgreSQL."""
    yield from copied_shop(request.param, servers, tmp_path)


@pytest.fixture
def sqlite_shop(servers: Servers, tmp_path: Path) -> Iterator[Shop]:
    """A copy of the worked shop on SQLite."""
    yield from copied_shop("sqlite", servers, tmp_path)


@pytest.fixture(params=DATABASES[:2])
def a_url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[str]:
    """A fresh database on SQLite and on the machine's PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'shop.db'}"
        return
    server = servers.read(request.param)
    url = server.create_database()
    yield url
    server.drop_database(url)
