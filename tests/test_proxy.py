"""The cutting proxy loses exactly what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.proxy import CuttingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[CuttingProxy]:
    with psycopg.connect(postgres_url) as session:
        session.execute("CREATE TABLE entry (id INTEGER)")
    with CuttingProxy.for_url(postgres_url) as proxy:
        yield proxy


def insert(url: str) -> None:
    with psycopg.connect(url) as session:
        session.execute("INSERT INTO entry VALUES (1)")


def count(url: str) -> int:
    with psycopg.connect(url) as session:
        row = session.execute("SELECT count(*) FROM entry").fetchone()
        assert row is not None
        return int(row[0])


def test_bytes_pass(proxy: CuttingProxy, postgres_url: str) -> None:
    insert(proxy.url(postgres_url))
    assert count(proxy.url(postgres_url)) == 1
    with psycopg.connect(proxy.url(postgres_url)) as session:
        row = session.execute("SELECT repeat('x', 1000000)").fetchone()
        assert row is not None
        assert len(row[0]) == 1_000_000


def test_a_lost_commit_is_not_done(proxy: CuttingProxy, postgres_url: str) -> None:
    proxy.lose_commit()
    with pytest.raises(psycopg.OperationalError):
        insert(proxy.url(postgres_url))
    proxy.wait_until_cut()
    assert count(postgres_url) == 0


def test_a_lost_answer_is_done(proxy: CuttingProxy, postgres_url: str) -> None:
    proxy.lose_commit_answer()
    with pytest.raises(psycopg.OperationalError):
        insert(proxy.url(postgres_url))
    proxy.wait_until_cut()
    assert count(postgres_url) == 1


def test_a_cut_happens_once_and_at_its_occurrence(proxy: CuttingProxy, postgres_url: str) -> None:
    url = proxy.url(postgres_url)
    proxy.lose_commit(occurrence=2)
    insert(url)
    with pytest.raises(psycopg.OperationalError):
        insert(url)
    insert(url)
    assert count(postgres_url) == 2


def test_down_refuses_until_up(proxy: CuttingProxy, postgres_url: str) -> None:
    url = proxy.url(postgres_url)
    with psycopg.connect(url) as session:
        proxy.go_down()
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    proxy.come_up()
    assert count(url) == 0
