"""Places for the tests of reports: one fresh customer's database of each kind in turn.

The statements have their contract on every database; here one PostgreSQL shows what is made of them,
and the newer one with `make proof`.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from freehold.ports.audit import Check, Terms
from tests.behaviour.conftest import lite, pg, place_of
from tests.conftest import DATABASES, fresh_url
from tests.contract.conftest import ground, migrated
from tests.contract.grounds import ground_at, migrate
from tests.crash.conftest import MEMORY
from tests.reports.book import Book
from tests.reports.sending_room import Room

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.behaviour.place import Place
    from tests.servers import PostgresServer, Servers

__all__ = ["ground", "lite", "pg"]
NEWER = [
    pytest.param(*one.values, id=one.id, marks=[*one.marks, pytest.mark.proof])
    for one in DATABASES[2:]
]
EACH = [*DATABASES[:2], *NEWER]


@pytest.fixture(params=EACH)
def database_url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[str]:
    """A fresh database of every kind in turn."""
    yield from fresh_url(request.param, servers, tmp_path)


@pytest.fixture(params=EACH[1:])
def postgres(request: pytest.FixtureRequest, servers: Servers) -> PostgresServer:
    """Each PostgreSQL server in turn."""
    return servers.read(request.param)


@pytest.fixture(params=EACH)
def place(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Place]:
    """A place on every database in turn."""
    yield from place_of(request.param, servers, tmp_path)


@pytest.fixture(scope="module", params=EACH)
def migrated_url(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A migrated database of every kind in turn; shared, so that a test costs milliseconds."""
    yield from migrated(request.param, servers, tmp_path_factory)


@pytest.fixture(scope="module", params=DATABASES[:2])
def book_url(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """SQLite, and one PostgreSQL: the statements themselves have their contract on each."""
    yield from migrated(request.param, servers, tmp_path_factory)


@pytest.fixture
def book(book_url: str) -> Iterator[Book]:
    """An installation in UTC at noon of 2026-03-10; whatever happens, its invariants hold."""
    with ground_at(book_url) as ground:
        book = Book(ground)
        book.at("2026-03-10 12:00")
        yield book
        assert book.broken() == []
        for check in (Check.REPORTED_ONCE, Check.WINDOWS_TILE):
            with book.ledger.reading() as reading:
                assert reading.audit.violations(check, Terms()) == []
        released, accounted_for = book.conserved()
        assert released == accounted_for


@pytest.fixture(scope="module", params=EACH)
def sending_place(request: pytest.FixtureRequest, servers: Servers) -> Iterator[tuple[str, Path]]:
    """A migrated database of every kind in turn, and a folder in memory: kills lose nothing of it."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        url = f"sqlite:///{folder}/freehold.db"
        if request.param != "sqlite":
            url = servers.read(request.param).create_database()
        migrate(url)
        yield url, Path(folder)


@pytest.fixture
def room(sending_place: tuple[str, Path]) -> Iterator[Room]:
    """A room with mails, on every database in turn."""
    room = Room(*sending_place)
    room.fill()
    yield room
    room.close()
