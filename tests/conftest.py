"""Fixtures for every test: databases of each kind, fresh for each test.

`database_url` runs a test on every database; `postgres_url` on each PostgreSQL; `sqlite_url` on
SQLite. `postgres` gives the server itself, to be killed and restarted. `nats_server` and
`rabbit_server` are the session's brokers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.brokers.nats_server import NatsServer
from tests.brokers.rabbit_server import RabbitServer
from tests.servers import PostgresServer, Servers, find_debian_major

if TYPE_CHECKING:
    from collections.abc import Iterator

POSTGRES = [
    pytest.param(name, id=name, marks=pytest.mark.postgres)
    for name in sorted({f"postgres{find_debian_major()}", "postgres18"})
]
DATABASES = [pytest.param("sqlite", id="sqlite", marks=pytest.mark.sqlite), *POSTGRES]
# What differs between the two servers is met by the contracts and the plans, which `make test` runs
# on both; the rest runs on the newer one in the proof, and the longest sweeps in the long one.
NEWER = "postgres18"
HERE = Path(__file__).parent
NEWER_IS_PROOF = tuple(
    HERE / name
    for name in ("behaviour", "crash", "e2e", "holds", "insight", "mapping", "scenarios")
)
NEWER_IS_LONG = (HERE / "crash" / "test_kill_sweep.py", HERE / "e2e" / "test_crossing_rules.py")
IS_LONG = os.environ.get("FREEHOLD_PROOF") == "long"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the newer server to the proof, but for contracts and plans."""
    if len(POSTGRES) == 1:
        return
    newer = [one for one in items if NEWER in one.name]
    long = {one for one in newer if one.path in NEWER_IS_LONG and one.get_closest_marker("proof")}
    if long and not IS_LONG:
        items[:] = [one for one in items if one not in long]
        config.hook.pytest_deselected(items=sorted(long, key=lambda one: one.nodeid))
    for item in newer:
        if "plans" not in item.path.name and _is_moved(item.path):
            item.add_marker(pytest.mark.proof)


def _is_moved(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in NEWER_IS_PROOF)


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The session's private servers; none runs before it is asked for."""
    servers = Servers()
    yield servers
    servers.remove()


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    """Return a NATS server that tests may restart, never leave down."""
    server = NatsServer()
    yield server.start()
    server.remove()


@pytest.fixture(scope="session")
def rabbit_server() -> Iterator[RabbitServer]:
    """Return a RabbitMQ that tests may restart, never leave down."""
    server = RabbitServer()
    yield server.start()
    server.remove()


@pytest.fixture(params=POSTGRES)
def postgres(request: pytest.FixtureRequest, servers: Servers) -> PostgresServer:
    """Each PostgreSQL server in turn, running; a test may kill it and need not start it again."""
    return servers.read(request.param)


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """A fresh database of the ordinary role, on each PostgreSQL server in turn."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'freehold.db'}"


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[str]:
    """A fresh database of every kind in turn."""
    yield from fresh_url(request.param, servers, tmp_path)


def fresh_url(kind: str, servers: Servers, folder: Path) -> Iterator[str]:
    """Yield the URL of a fresh database of a kind, and drop it."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'freehold.db'}"
        return
    server = servers.read(kind)
    url = server.create_database()
    yield url
    server.drop_database(url)
