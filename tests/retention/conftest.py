"""The stage that these tests play on: SQLite, and the machine's PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import stage as making
from tests.conftest import DATABASES, POSTGRES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import Servers
    from tests.stage import Stage


@pytest.fixture(params=DATABASES[:2])
def stage(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Stage]:
    """A stage on each kind of database in turn."""
    if request.param == "sqlite":
        yield from making.sqlite_stage(tmp_path)
    else:
        yield from making.postgres_stage(servers.read(request.param), tmp_path)


@pytest.fixture(params=POSTGRES[:1])
def postgres_stage(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> Iterator[Stage]:
    """A stage on PostgreSQL."""
    yield from making.postgres_stage(servers.read(request.param), tmp_path)
