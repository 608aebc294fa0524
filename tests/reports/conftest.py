"""Places for the tests of reports: one fresh customer's database of each kind in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.ports.audit import Check, Terms
from tests.behaviour.conftest import lite, pg, place
from tests.conftest import DATABASES
from tests.contract.conftest import ground, migrated, migrated_url
from tests.contract.grounds import ground_at
from tests.reports.book import Book

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Servers

__all__ = ["ground", "lite", "migrated_url", "pg", "place"]


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
