"""Dropping the ledger takes out what is ours, and nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from freehold.adapters.sql.dropping import drop, look
from freehold.adapters.sql.housekeeping import keep_house
from freehold.adapters.sql.migrations import upgrade
from freehold.bootstrap import open_session
from freehold.domain.errors import RefusedByState
from freehold.settings import DatabaseSettings, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehold.adapters.sql.session import Session

AT = "2026-01-01 00:00:00.000000"
OPERATION = (
    "insert into {s}operation (rule, hold_key, digest, identity, guard, due_at, generation, "
    "after_expired, state, available_at, found_at, changed_at) values ('cart', '1', "
    "'0b5f1a52-8f0c-4a47-9d57-5cbb1c7f7a11', '', '', '{at}', 1, {no}, 'dead', '{at}', '{at}', '{at}')"
)
EVENT = (
    "insert into {s}outbox (type, operation_id, rule, hold_key, digest, generation, due_at, at, "
    "tokens, carry, state) values ('hold.expired.v1', 1, 'cart', '1', "
    "'0b5f1a52-8f0c-4a47-9d57-5cbb1c7f7a11', 1, '{at}', '{at}', '[]', '{}', '{state}')"
)
TENANT = (
    "insert into {s}tenant (id, name, created_at, changed_at) values ('t', 't', '{at}', '{at}')"
)
UNIT = (
    "insert into {s}unit (tenant, name, created_at, changed_at) values ('t', 'u', '{at}', '{at}')"
)
HOLD = (
    "insert into {s}hold (tenant, unit_id, status, hold_until, hold_token, created_at, changed_at) "
    "select 't', id, 'expired', '{at}', '0b5f1a52-8f0c-4a47-9d57-5cbb1c7f7a11', '{at}', '{at}' "
    "from {s}unit"
)
REPORT = (
    "insert into {s}report (tenant, report_date, start_at, end_at, zone, tz_version, watermark_at, "
    "due_at, state, facts, expired_count, assigned_at) values ('t', '2026-01-01', '{at}', '{end}', 'UTC', '1', "
    "'{at}', '{at}', 'sending', '{}', 0, '{at}')"
)
MAIL = (
    "insert into {s}mail (report_id, locale, subject, body_digest, byte_count, frozen_at) "
    "select id, 'en', 's', 'd', 1, '{at}' from {s}report"
)
SEND = (
    "insert into {s}send (report_id, recipient, message_key, head, mail_digest, state, "
    "available_at, changed_at) select id, 'a@x', 'k', '', 'd', 'ready', '{at}', '{at}' "
    "from {s}report"
)
BEAT = (
    "insert into {s}worker (worker, roles, host, pid, host_at, started_at, beat_at) values "
    "('w', 'work', 'shop-1', 4711, '{at}', '{at}', '{beat}')"
)


def run(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement past every layer of ours; `{s}` is the place of the ledger."""
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as lite:
            return lite.execute(statement.replace("{s}", "freehold_")).fetchall()
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.replace("{s}", "freehold."))
        return cursor.fetchall() if cursor.description else []


def objects(url: str) -> set[str]:
    """Name everything that the database holds."""
    if url.startswith("sqlite"):
        return {row[0] for row in run(url, "select type || ' ' || name from sqlite_master")}
    query = (
        "select relkind::text || ' ' || oid::regclass::text from pg_class "
        "where relnamespace::regnamespace::text not in ('pg_catalog', 'information_schema', "
        "'pg_toast') union select 'schema ' || nspname from pg_namespace "
        "union select 'function ' || proname from pg_proc where pronamespace::regnamespace::text "
        "not in ('pg_catalog', 'information_schema')"
    )
    return {row[0] for row in run(url, query)}


@pytest.fixture
def session(database_url: str) -> Iterator[Session]:
    """A session on a database with a customer's table and a ledger."""
    session = open_session(Settings(database=DatabaseSettings(url=database_url)))
    run(database_url, "create table carts (id int primary key)")
    upgrade(session)
    keep_house(session)
    yield session
    session.close()


def fill(url: str, statement: str, **parts: str) -> None:
    """Insert a row of the ledger."""
    no = "0" if url.startswith("sqlite") else "false"
    at = (
        AT.replace(" ", "T") + "Z"
        if url.startswith("sqlite") and "{s}hold" not in statement
        else AT
    )
    end = at.replace("01-01", "01-02")
    for name, value in {"at": at, "end": end, "no": no, **parts}.items():
        statement = statement.replace("{" + name + "}", value)
    run(url, statement)


def test_all_that_is_ours_goes_and_nothing_else(database_url: str) -> None:
    run(database_url, "create table carts (id int primary key)")
    before = objects(database_url)
    session = open_session(Settings(database=DatabaseSettings(url=database_url)))
    upgrade(session)
    keep_house(session)
    made = objects(database_url) - before
    dropped = drop(session, force=False)
    assert {"operation", "record", "hold", "migration"} <= {name for _, name in dropped.relations}
    assert objects(database_url) - {"table sqlite_sequence"} == before
    assert drop(session, force=False).relations == []
    upgrade(session)
    keep_house(session)
    session.close()
    assert objects(database_url) - before == made


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([OPERATION], "1 open operations"),
        ([EVENT.replace("{state}", "pending")], "1 events that some target was not told of"),
        ([REPORT, MAIL, SEND], "1 mails to recipients who were not sent them yet"),
        ([TENANT, UNIT, HOLD], "1 rows of the built-in table"),
    ],
)
def test_what_would_be_lost_refuses_until_it_is_forced(
    session: Session, database_url: str, rows: list[str], words: str
) -> None:
    for row in rows:
        fill(database_url, row)
    there = objects(database_url)
    with pytest.raises(RefusedByState, match=words):
        drop(session, force=False)
    assert objects(database_url) == there
    assert drop(session, force=True).work
    assert look(session).relations == []


def test_an_event_that_is_done_refuses_nothing(session: Session, database_url: str) -> None:
    fill(database_url, EVENT, state="kept")
    assert drop(session, force=False).work == []


HUNG = {
    "view": "create view mine as select * from {s}record",
    "table": "create table mine (id bigint references {s}operation (id))",
    "trigger": "create trigger mine after insert on {s}record begin select 1; end",
}
TRIGGER = (
    "create function nothing() returns trigger language plpgsql as 'begin return new; end';"
    "create trigger mine before insert on {s}operation for each row execute function nothing()"
)


@pytest.mark.parametrize("hung", HUNG)
def test_what_the_customer_hung_onto_it_refuses(
    session: Session, database_url: str, hung: str
) -> None:
    foreign = hung == "trigger" and not database_url.startswith("sqlite")
    run(database_url, TRIGGER if foreign else HUNG[hung])
    there = objects(database_url)
    with pytest.raises(RefusedByState, match=r"Something of yours hangs onto the ledger: .*mine"):
        drop(session, force=True)
    assert objects(database_url) == there


def test_a_table_of_the_customer_beside_ours_stays(session: Session, database_url: str) -> None:
    run(database_url, "create table {s}mine (id int)")
    run(database_url, "create table {s}record_2026_1 (id int)")
    drop(session, force=False)
    assert run(database_url, "select count(*) from {s}mine") == [(0,)]
    assert run(database_url, "select count(*) from {s}record_2026_1") == [(0,)]


def test_a_process_that_lives_refuses_and_a_dead_one_does_not(
    session: Session, database_url: str
) -> None:
    fill(database_url, BEAT, beat="2999-01-01T00:00:00.000000Z")
    with pytest.raises(RefusedByState, match=r"shop-1 \(pid 4711\); stop it first"):
        drop(session, force=True)
    run(database_url, "update {s}worker set beat_at = '2026-01-01T00:00:00.000000Z'")
    assert drop(session, force=False).hindrances == []
