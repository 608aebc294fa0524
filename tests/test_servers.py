"""The tests' own servers do what the crash tests rely on."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.servers import SUPERUSER

if TYPE_CHECKING:
    from tests.servers import PostgresServer


def test_each_database_is_fresh(database_url: str) -> None:
    if database_url.startswith("sqlite:"):
        connection = sqlite3.connect(urlsplit(database_url).path[1:])
        connection.execute("CREATE TABLE marker (id INTEGER)")
        connection.close()
        return
    with psycopg.connect(database_url) as session:
        session.execute("CREATE TABLE marker (id INTEGER)")


def test_the_ordinary_role_is_no_superuser(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as session:
        row = session.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        assert row.fetchone() == (False,)


def test_the_server_is_durable(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.url(user=SUPERUSER)) as session:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert session.execute(f"SHOW {setting}").fetchone() == ("on",)


def test_a_committed_row_survives_a_kill(postgres: PostgresServer, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as session:
        session.execute("CREATE TABLE kept (id INTEGER)")
        postgres.kill9()
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    assert not postgres.is_running
    postgres.start()
    with psycopg.connect(postgres_url) as session:
        assert session.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_a_restart_keeps_the_url(postgres: PostgresServer, postgres_url: str) -> None:
    postgres.restart()
    with psycopg.connect(postgres_url) as session:
        assert session.execute("SELECT 1").fetchone() == (1,)
