"""A consumer's own database of every kind: one for the session, with an empty inbox each time."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from freehold.inbox import create_table_sql
from tests.conftest import DATABASES, POSTGRES, fresh_url
from tests.holds.hotel import connect, dialect_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Servers


@dataclass
class Shop:
    """A consumer's database with an inbox and a table for what events do; opens connections."""

    url: str
    _open: ExitStack

    @property
    def dialect(self) -> Any:
        return dialect_of(self.url)

    @property
    def is_sqlite(self) -> bool:
        return dialect_of(self.url) == "sqlite"

    @property
    def mark(self) -> str:
        """The driver's mark of a parameter."""
        return "?" if self.is_sqlite else "%s"

    def open(self) -> Any:
        """Open one more connection, as an application does; closed with the test."""
        return self._open.enter_context(closing(connect(self.url)))

    def see(self, statement: str) -> list[tuple[Any, ...]]:
        """Read what is committed, through a connection of its own."""
        with closing(connect(self.url)) as connection:
            return list(connection.execute(statement).fetchall())

    def clear(self) -> None:
        """Make both tables anew."""
        with closing(connect(self.url)) as connection:
            for name in ("freehold_inbox", "effect"):
                connection.execute(f"drop table if exists {name}")
            for statement in create_table_sql(self.dialect).split(";"):
                connection.execute(statement)
            connection.execute("create table effect (event_key text)")
            connection.commit()


@pytest.fixture(scope="session", params=DATABASES)
def shop_url(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    yield from fresh_url(request.param, servers, tmp_path_factory.mktemp("inbox"))


@pytest.fixture(scope="session", params=POSTGRES)
def postgres_shop_url(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    yield from fresh_url(request.param, servers, tmp_path_factory.mktemp("inbox"))


@pytest.fixture
def shop(shop_url: str) -> Iterator[Shop]:
    """A consumer's empty tables, on every database in turn."""
    yield from _shop(shop_url)


@pytest.fixture
def postgres_shop(postgres_shop_url: str) -> Iterator[Shop]:
    """The same on each PostgreSQL."""
    yield from _shop(postgres_shop_url)


def _shop(url: str) -> Iterator[Shop]:
    with ExitStack() as stack:
        shop = Shop(url, stack)
        shop.clear()
        yield shop
