"""The stage that every test here plays on: one fresh customer's database of each kind in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import stage as making
from tests.conftest import DATABASES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import PostgresServer, Servers
    from tests.stage import Stage


@pytest.fixture(params=DATABASES)
def stage(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Stage]:
    """A stage on every database in turn."""
    if request.param == "sqlite":
        yield from making.sqlite_stage(tmp_path)
    else:
        yield from making.postgres_stage(servers.read(request.param), tmp_path)


@pytest.fixture
def postgres_stage(postgres: PostgresServer, tmp_path: Path) -> Iterator[Stage]:
    """A stage on each PostgreSQL server in turn."""
    yield from making.postgres_stage(postgres, tmp_path)


@pytest.fixture
def sqlite_stage(tmp_path: Path) -> Iterator[Stage]:
    """A stage on SQLite."""
    yield from making.sqlite_stage(tmp_path)
