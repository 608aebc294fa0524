"""The SQL ledger lends its connection to handlers as the contract says, and what only one can show."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from freehold.domain.errors import (
    DatabaseAway,
    DatabaseBusy,
    HandlerFailed,
    StatementTimedOut,
    TransactionEnded,
)
from freehold.testing.contracts.ground import new_operation
from freehold.testing.contracts.lending import HOLD, NOTE, Calls, LendingContract
from tests.contract.grounds import ground_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freehold.testing.contracts.ground import Ground


class TestLending(LendingContract):
    pass


@pytest.fixture
def postgres_ground(migrated_postgres_url: str) -> Iterator[Ground]:
    with ground_at(migrated_postgres_url) as ground:
        yield ground


def call(ground: Ground, *statements: str) -> None:
    def act(connection: Any) -> None:
        for statement in statements:
            connection.execute(statement)

    with ground.open().transaction() as tx:
        tx.operations.enqueue([new_operation("r", 1)], None)
        tx.call(Calls(act), ground.rule, [HOLD])


RAISE = "do $$ begin raise exception 'x' using errcode = '{}'; end $$"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("40P01", DatabaseBusy),
        ("40001", DatabaseBusy),
        ("57014", StatementTimedOut),
        ("23505", HandlerFailed),
        ("42P01", HandlerFailed),
        ("53300", HandlerFailed),
    ],
)
def test_what_the_database_says_through_a_handler(
    postgres_ground: Ground, code: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as raised:
        call(postgres_ground, RAISE.format(code))
    assert type(raised.value) is kind


def test_a_backend_that_ends_under_a_handler_is_away(postgres_ground: Ground) -> None:
    with pytest.raises(DatabaseAway):
        call(postgres_ground, "select pg_terminate_backend(pg_backend_pid())")


def test_a_commit_behind_another_statement_is_seen_afterwards(postgres_ground: Ground) -> None:
    for statement in ("select 1; commit", "select 1; commit; begin"):
        with pytest.raises(TransactionEnded):
            call(postgres_ground, statement)
        assert len(postgres_ground.back.rows("operation")) == 1


def test_a_handler_may_think_longer_than_we_may_idle(postgres_ground: Ground) -> None:
    def act(connection: Any) -> None:
        (found,) = connection.execute("show idle_in_transaction_session_timeout").fetchone()
        assert found == "12s"

    with postgres_ground.open().transaction() as tx:
        tx.call(Calls(act, seconds_max=12), postgres_ground.rule, [HOLD])


def test_lists_travel_as_the_driver_sends_them(postgres_ground: Ground) -> None:
    def act(connection: Any) -> None:
        (found,) = connection.execute("select %s", ([[b"a"], [b"b"]],)).fetchone()
        assert found == [[b"a"], [b"b"]]

    with postgres_ground.open().transaction() as tx:
        tx.call(Calls(act), postgres_ground.rule, [HOLD])
        tx.operations.claim_these([1, 2])


def test_a_second_connection_to_the_same_file_is_named(ground: Ground) -> None:
    if not ground.open().one_writer:
        return
    path = ground.url.removeprefix("sqlite:///")  # type: ignore[attr-defined]

    def act(_: Any) -> None:
        with closing(sqlite3.connect(path, timeout=0.01)) as second:
            second.execute(NOTE)

    with (
        pytest.raises(HandlerFailed, match="through the connection of the batch"),
        ground.open().transaction() as tx,
    ):
        tx.call(Calls(act), ground.rule, [HOLD])
