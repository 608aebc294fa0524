"""The inbox in a transaction of the consumer's: what is new, once, and never apart from its effect."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import dict_row

from freehold.adapters.sql.statements import fill, load, to_psycopg
from freehold.domain.events import Event, EventType
from freehold.domain.names import digest
from freehold.inbox import KEPT_FOR, Inbox, UsageError, create_table_sql

if TYPE_CHECKING:
    from pathlib import Path

    from tests.inbox.conftest import Shop

KEPT = "select consumer, event_key from freehold_inbox order by 1, 2"


def test_an_event_is_new_once(shop: Shop) -> None:
    connection = shop.open()
    inbox = Inbox(connection, consumer="billing")
    assert inbox.first("a")
    assert not inbox.first("a")
    connection.commit()
    assert not Inbox(shop.open(), "billing").first("a")
    assert shop.see(KEPT) == [("billing", "a")]


def test_consumers_know_nothing_of_each_other(shop: Shop) -> None:
    connection = shop.open()
    assert Inbox(connection, "billing").first("a")
    assert Inbox(connection, "mailing").first("a")


def test_a_batch_gives_the_new_ones_once_and_in_order(shop: Shop) -> None:
    connection = shop.open()
    inbox = Inbox(connection, "billing")
    assert inbox.new_of(["m", "z"]) == ["m", "z"]
    assert inbox.new_of(["z", "b", "m", "a", "b", "é"]) == ["b", "a", "é"]
    assert inbox.new_of([]) == []
    many = [f"key-{number}" for number in range(10_000)]
    assert inbox.new_of(many) == many
    assert inbox.new_of(many) == []


def test_nothing_is_remembered_without_the_callers_commit(shop: Shop) -> None:
    connection = shop.open()
    inbox = Inbox(connection, "billing")
    assert inbox.first("a")
    assert shop.see(KEPT) == []
    connection.rollback()
    assert inbox.first("a")
    connection.execute("savepoint here")
    assert inbox.first("b")
    connection.execute("rollback to savepoint here")
    connection.commit()
    assert shop.see(KEPT) == [("billing", "a")]


def test_the_connections_ways_do_not_matter(shop: Shop) -> None:
    connection = shop.open()
    if shop.is_sqlite:
        connection.row_factory, connection.text_factory = sqlite3.Row, bytes
    else:
        connection.row_factory = dict_row
        connection.cursor_factory = psycopg.ClientCursor
    inbox = Inbox(connection, "billing")
    assert inbox.new_of(["a", "%s", ":x", "a"]) == ["a", "%s", ":x"]
    assert inbox.prune() == 0


def test_it_asks_for_a_transaction(shop: Shop) -> None:
    connection = shop.open()
    if shop.is_sqlite:
        connection.isolation_level = None
    else:
        connection.autocommit = True
    inbox = Inbox(connection, "billing")
    for act in (lambda: inbox.first("a"), inbox.prune):
        with pytest.raises(UsageError, match="autocommit"):
            act()
    connection.execute("begin")
    assert inbox.first("a")
    connection.execute("commit")
    assert shop.see(KEPT) == [("billing", "a")]


def test_a_prune_forgets_the_oldest_first_and_some_at_a_time(shop: Shop) -> None:
    connection = shop.open()
    inbox = Inbox(connection, "billing")
    keys = [f"key-{number}" for number in range(5)]
    inbox.new_of(keys)
    Inbox(connection, "mailing").first("key-0")
    for days, key in enumerate(keys):
        at: Any = datetime.now(UTC) - KEPT_FOR - timedelta(days=days, hours=-1)
        if shop.is_sqlite:
            at = at.strftime("%Y-%m-%d %H:%M:%S.%f")
        change = "update freehold_inbox set received_at = {0} where event_key = {0}"
        connection.execute(change.format(shop.mark), (at, key))
    assert inbox.prune(limit=3) == 3
    assert inbox.prune(limit=3) == 1
    assert inbox.prune() == 0
    connection.commit()
    assert shop.see(KEPT) == [("billing", "key-0"), ("mailing", "key-0")]
    assert inbox.prune(older_than=timedelta(days=1)) == 1
    connection.rollback()
    assert inbox.new_of(keys) == keys[1:]


def test_what_was_just_received_is_not_old(shop: Shop) -> None:
    inbox = Inbox(shop.open(), "billing")
    inbox.first("a")
    assert inbox.prune(older_than=timedelta(minutes=10)) == 0


@pytest.mark.parametrize(
    "odd", ["", "x" * 256, "a\0b", "\ud800", None, 7, b"a"], ids=lambda odd: repr(odd)[:9]
)
def test_an_odd_key_is_refused_and_costs_nothing(shop: Shop, odd: Any) -> None:
    connection = shop.open()
    inbox = Inbox(connection, "billing")
    assert inbox.first("a")
    with pytest.raises(UsageError, match="event's key"):
        inbox.new_of(["b", odd])
    with pytest.raises(UsageError, match="consumer's name"):
        Inbox(connection, odd)
    connection.commit()
    assert shop.see(KEPT) == [("billing", "a")]


def test_bounds(shop: Shop) -> None:
    inbox = Inbox(shop.open(), "c" * 64)
    assert inbox.first("é" * 255)
    with pytest.raises(UsageError, match="at most 10000"):
        inbox.new_of(["a"] * 10_001)
    for odd in ({"older_than": timedelta(0)}, {"limit": 0}):
        with pytest.raises(UsageError):
            inbox.prune(**odd)


def test_every_key_of_ours_fits() -> None:
    at = datetime(2031, 5, 6, tzinfo=UTC)
    for type_ in EventType:
        event = Event(
            sequence=1,
            type=type_,
            rule="r" * 64,
            tenant=None,
            hold_key="1",
            digest=digest("r", "1", "[]"),
            generation=2**31 - 1,
            due_at=at,
            at=at,
            tokens={},
            carry={},
        )
        assert len(event.event_key) <= 255


@pytest.mark.parametrize("odd", ["", "a b", 'a"b', "a.b.c", "x" * 53, "1a", "é", "a;drop", None])
def test_a_table_needs_a_plain_name(odd: Any) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        for act in (lambda: Inbox(connection, "c", odd), lambda: create_table_sql("sqlite", odd)):
            with pytest.raises(UsageError, match="plain name"):
                act()


def test_a_table_may_have_a_schema_and_a_name_of_its_own(shop: Shop) -> None:
    connection = shop.open()
    table = f"{'main' if shop.is_sqlite else 'public'}.Seen"
    for statement in create_table_sql(shop.dialect, table).split(";") * 2:
        connection.execute(statement)
    assert Inbox(connection, "billing", table).new_of(["a"]) == ["a"]
    assert not Inbox(connection, "billing", "Seen").first("a")
    connection.execute('drop table "Seen"')


def test_a_connection_of_another_kind_is_refused(postgres_shop: Shop) -> None:
    with pytest.raises(UsageError, match="neither"):
        Inbox(object(), "billing")
    with pytest.raises(UsageError, match="dialect"):
        create_table_sql("mysql")  # type: ignore[arg-type]

    async def wrong() -> None:
        async with await psycopg.AsyncConnection.connect(postgres_shop.url) as connection:
            with pytest.raises(UsageError, match="asynchronous"):
                Inbox(connection, "billing")

    asyncio.run(wrong())


def test_two_batches_of_other_order_wait_and_never_in_a_circle(postgres_shop: Shop) -> None:
    keys = [f"key-{number}" for number in range(200)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            postgres_shop.clear()
            orders = (keys, keys[::-1], keys[50:] + keys[:50], keys[::-3])
            found = pool.map(lambda order: _in_one_go(postgres_shop, order), orders)
            assert sorted(key for new in found for key in new) == sorted(keys)


def _in_one_go(shop: Shop, keys: list[str]) -> list[str]:
    with psycopg.connect(shop.url) as connection:
        return Inbox(connection, "billing").new_of(keys)


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_the_second_waits_for_the_firsts_ending_and_says_the_right_thing(
    postgres_shop: Shop, ending: str
) -> None:
    one, other, watcher = (postgres_shop.open() for _ in range(3))
    assert Inbox(one, "billing").first("a")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(Inbox(other, "billing").new_of, ["b", "a"])
        _wait_until_blocked(watcher, other.info.backend_pid, one.info.backend_pid)
        assert not answer.done()
        getattr(one, ending)()
        assert answer.result(30) == (["b"] if ending == "commit" else ["b", "a"])
    other.commit()
    assert postgres_shop.see(KEPT) == [("billing", "a"), ("billing", "b")]


def _wait_until_blocked(watcher: Any, waiting: int, by: int) -> None:
    """Ask the server until one session waits for the other."""
    watcher.autocommit = True
    give_up_at = time.monotonic() + 30
    while watcher.execute("select pg_blocking_pids(%s)", (waiting,)).fetchone() != ([by],):
        assert time.monotonic() < give_up_at, "the second session never waited"


def test_a_stricter_isolation_ends_the_second_instead_of_lying(postgres_shop: Shop) -> None:
    one, other = postgres_shop.open(), postgres_shop.open()
    other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    other.execute("select 1 from effect")  # its snapshot is older than the first's commit
    assert Inbox(one, "billing").first("a")
    one.commit()
    with pytest.raises(psycopg.errors.SerializationFailure):
        Inbox(other, "billing").first("a")
    other.rollback()
    assert not Inbox(other, "billing").first("a")


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_on_sqlite_one_writes_at_a_time(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as one, closing(sqlite3.connect(file, timeout=0)) as other:
        one.executescript(create_table_sql("sqlite"))
        assert Inbox(one, "billing").first("a")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            Inbox(other, "billing").first("a")
        getattr(one, ending)()
        assert Inbox(other, "billing").first("a") is (ending == "rollback")


def test_a_prune_by_two_passes_over_what_the_other_deletes(postgres_shop: Shop) -> None:
    one, other = postgres_shop.open(), postgres_shop.open()
    Inbox(one, "billing").new_of(["a", "b", "c"])
    one.execute("update freehold_inbox set received_at = now() - interval '1 year'")
    one.commit()
    assert Inbox(one, "billing").prune(limit=2) == 2
    assert Inbox(other, "billing").prune(limit=2) == 1


def test_the_statements_use_their_indexes(postgres_shop: Shop) -> None:
    connection = postgres_shop.open()
    keys = [f"key-{number}" for number in range(5_000)]
    Inbox(connection, "billing").new_of(keys)
    connection.execute("analyze freehold_inbox")
    slots = {"inbox": "freehold_inbox"}
    given = {"consumer": "billing", "before": datetime.now(UTC), "limit": 10}
    text = to_psycopg(fill(load("postgres")["inbox_prune"], slots))
    plan = "\n".join(row[0] for row in connection.execute(f"explain {text}", given))
    assert "freehold_inbox_received" in plan
    assert "Seq Scan" not in plan
