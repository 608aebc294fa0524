"""`freehold.inbox` as a consumer's type checker sees it; mypy reads this, nothing runs it.

A line with an ignored error is the proof that mypy would say something: an ignore that is not
needed is an error too.
"""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from typing import Any, assert_type

import psycopg

from freehold.inbox import KEPT_FOR, Inbox, create_table_sql


def over_psycopg(connection: psycopg.Connection[Any]) -> None:
    inbox = Inbox(connection, consumer="billing")
    assert_type(inbox.first("a"), bool)
    assert_type(inbox.new_of(["a", "b"]), list[str])
    assert_type(inbox.new_of(("a", "b")), list[str])
    assert_type(inbox.prune(), int)
    assert_type(inbox.prune(older_than=KEPT_FOR + timedelta(days=1), limit=10), int)
    inbox.first(7)  # type: ignore[arg-type]
    inbox.prune(90)  # type: ignore[arg-type]


def over_sqlite(connection: sqlite3.Connection) -> None:
    assert_type(Inbox(connection, "billing", "billing.seen").first("a"), bool)
    Inbox(connection)  # type: ignore[call-arg]
    assert_type(create_table_sql("sqlite"), str)
    create_table_sql("mysql")  # type: ignore[arg-type]
