"""A person's mistake gets one sentence, the documented exit code, and loses nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.e2e.command import freehold
from tests.e2e.shop import make_shop, statuses

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers import PostgresServer


def upgraded(folder: Path, url: str) -> None:
    make_shop(folder, url)
    assert freehold("db", "upgrade", cwd=folder).code == 0


def test_a_url_of_no_known_database(tmp_path: Path) -> None:
    ended = freehold("status", cwd=tmp_path, FREEHOLD_DATABASE__URL="mysql://root:secret@host/x")
    assert ended.code == 2
    assert "sqlite:///" in ended.sentence
    assert "secret" not in ended.err + ended.out


def test_an_argument_that_is_no_text(tmp_path: Path) -> None:
    ended = freehold("plan", "--tenant", "\udcff", cwd=tmp_path)
    assert ended.code == 2
    assert ended.sentence == "freehold: Argument 3 is no UTF-8 text; write it in UTF-8."


def test_an_id_that_no_database_can_hold(tmp_path: Path) -> None:
    ended = freehold("review", "show", "9" * 30, cwd=tmp_path)
    assert ended.code == 2
    assert "9223372036854775807" in ended.sentence


def test_a_missing_settings_file(tmp_path: Path) -> None:
    ended = freehold("--config", "nowhere.toml", "status", cwd=tmp_path)
    assert ended.code == 2
    assert "nowhere.toml" in ended.sentence


def test_a_missing_sqlite_file_is_not_made(tmp_path: Path) -> None:
    ended = freehold("status", cwd=tmp_path)
    assert ended.code == 5
    assert "cannot be reached" in ended.sentence
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    url = "postgresql://nobody:secret@127.0.0.1:1/none"
    ended = freehold("status", cwd=tmp_path, FREEHOLD_DATABASE__URL=url)
    assert ended.code == 5
    assert "cannot be reached" in ended.sentence
    assert "secret" not in ended.err


@pytest.mark.postgres
def test_a_database_that_is_not_there(tmp_path: Path, postgres: PostgresServer) -> None:
    ended = freehold("status", cwd=tmp_path, FREEHOLD_DATABASE__URL=postgres.url("nowhere"))
    assert ended.code == 5
    assert "nowhere" in ended.sentence


def test_tables_that_were_never_made(tmp_path: Path, sqlite_url: str) -> None:
    make_shop(tmp_path, sqlite_url)
    ended = freehold("run", "--until-idle", cwd=tmp_path)
    assert ended.code == 6
    assert "freehold db upgrade" in ended.sentence
    assert statuses(sqlite_url)["held"] == 11


def test_a_sqlite_file_locked_by_another_program(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    upgraded(tmp_path, url)
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as host:
        host.execute("begin immediate")
        ended = freehold("scan", cwd=tmp_path, FREEHOLD_DATABASE__LOCK_TIMEOUT="200ms")
        host.execute("rollback")
    assert ended.code == 5
    assert "locked by another program" in ended.sentence
    assert freehold("run", "--until-idle", cwd=tmp_path).code == 0
    assert statuses(url) == {"expired": 10, "held": 1, "paid": 1}


def test_an_unknown_rule(tmp_path: Path, sqlite_url: str) -> None:
    upgraded(tmp_path, sqlite_url)
    ended = freehold("scan", "--rule", "basket", cwd=tmp_path)
    assert ended.code == 2
    assert "basket" in ended.sentence
    assert "cart" in ended.sentence


def test_an_unknown_key(tmp_path: Path, sqlite_url: str) -> None:
    upgraded(tmp_path, sqlite_url)
    ended = freehold("why", "987654321", cwd=tmp_path)
    assert ended.code == 2
    assert "987654321" in ended.sentence


def test_a_tampered_migration(tmp_path: Path, database_url: str) -> None:
    upgraded(tmp_path, database_url)
    if database_url.startswith("sqlite"):
        with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as lite:
            lite.execute("update freehold_migration set checksum = 'other'")
            lite.commit()
    else:
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("update freehold.migration set checksum = 'other'")
    for arguments in (("db", "upgrade"), ("run", "--until-idle")):
        ended = freehold(*arguments, cwd=tmp_path)
        assert ended.code == 6
        assert "applied with another text" in ended.sentence
    assert freehold("db", "check", cwd=tmp_path).code == 3
    assert statuses(database_url)["held"] == 11


def test_an_unknown_option_and_an_unknown_command(tmp_path: Path) -> None:
    for arguments in (("run", "--fast"), ("runn",)):
        ended = freehold(*arguments, cwd=tmp_path)
        assert ended.code == 2
        assert "Traceback" not in ended.err


def test_a_limit_of_a_service(tmp_path: Path, sqlite_url: str) -> None:
    upgraded(tmp_path, sqlite_url)
    for option in (("--limit", "5"), ("--deadline", "5s")):
        ended = freehold("run", *option, cwd=tmp_path)
        assert ended.code == 2
        assert "--until-idle" in ended.sentence


def test_a_review_that_matches_nothing(tmp_path: Path, sqlite_url: str) -> None:
    upgraded(tmp_path, sqlite_url)
    who = ("--by", "ann", "--reason", "test", "--rule", "cart")
    ended = freehold("review", "discard", "--matching", "x", *who, cwd=tmp_path)
    assert ended.code == 6
    assert "Nothing in review matches" in ended.sentence


def test_a_folder_that_cannot_be_made_for_the_demonstration(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = freehold("demo", "--for", "1", "--folder", "file/below", cwd=tmp_path)
    assert ended.code == 2
    assert "--folder" in ended.sentence


@pytest.mark.postgres
def test_a_table_that_the_role_may_not_read(tmp_path: Path, postgres_url: str) -> None:
    make_shop(tmp_path, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("revoke all on carts from current_user")
    ended = freehold("plan", cwd=tmp_path)
    assert ended.code == 6
    assert "permission denied for table carts" in ended.sentence
    assert "freehold doctor" in ended.sentence


def test_an_unreadable_duration(tmp_path: Path, sqlite_url: str) -> None:
    upgraded(tmp_path, sqlite_url)
    ended = freehold("run", "--until-idle", "--deadline", "soon", cwd=tmp_path)
    assert ended.code == 2
    assert "soon" in ended.sentence
