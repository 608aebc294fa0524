"""The statements of examples/inbox do what their comments say, run as they stand in the files."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.sql.statements import to_psycopg
from freehold.inbox import Inbox, create_table_sql
from tests.house.source import strip_sql_comments

if TYPE_CHECKING:
    from tests.inbox.conftest import Shop

FOLDER = Path(__file__).parents[2] / "examples" / "inbox"
FILES = {"postgres": FOLDER / "postgresql.sql", "sqlite": FOLDER / "sqlite.sql"}
# The places of the parameters in the PostgreSQL file, by what its comments call them.
PLACES = ("consumer", "two", "three", "sequence", "type")


class Statements:
    """The statements of one file by their first words, run with parameters by name."""

    def __init__(self, connection: Any, dialect: str) -> None:
        self._connection = connection
        self._is_sqlite = dialect == "sqlite"
        text = strip_sql_comments(FILES[dialect].read_text())
        self.texts = [part.strip() for part in text.split(";") if part.strip()]

    def run(self, first_words: str, place: int = 0, **given: Any) -> list[Any]:
        """Run the n-th statement that begins so."""
        found = [text for text in self.texts if text.startswith(first_words)]
        return self.ask(found[place], **given)

    def ask(self, text: str, **given: Any) -> list[Any]:
        if not self._is_sqlite:
            spelled = re.sub(r"\$(\d)", lambda match: f":{PLACES[int(match[1]) - 1]}", text)
            values = {**given, **dict(zip(PLACES, _by_place(given), strict=False))}
            cursor = self._connection.execute(to_psycopg(spelled), values)
            return list(cursor.fetchall()) if cursor.description else []
        return list(self._connection.execute(text, given).fetchall())


def _by_place(given: dict[str, Any]) -> list[Any]:
    if "rule" in given:
        return [None, given["rule"], given["hold_key"], given["sequence"], given["type"]]
    return [given.get("consumer"), given.get("event_key", given.get("event_keys"))]


@pytest.fixture
def plain(shop: Shop) -> Statements:
    return _statements(shop)


def _statements(shop: Shop) -> Statements:
    """Open the file's statements over a connection that commits each one, and run its step 1."""
    connection = shop.open()
    if shop.is_sqlite:
        connection.isolation_level = None
    else:
        connection.autocommit = True
    statements = Statements(connection, shop.dialect)
    for text in statements.texts:
        if text.startswith("create"):
            statements.ask(text)
    statements.ask("delete from hold_seen")
    return statements


@pytest.mark.parametrize("dialect", FILES)
def test_the_table_is_the_helpers(dialect: Any) -> None:
    text = FILES[dialect].read_text()
    assert create_table_sql(dialect).replace('"', "").strip() in text


def test_the_examples_table_is_the_helpers() -> None:
    text = (FOLDER.parent / "consumer-node" / "schema.sql").read_text()
    assert create_table_sql("postgres").replace('"', "").strip() in text


def test_an_event_is_new_once_and_to_the_helper_too(plain: Statements, shop: Shop) -> None:
    for expected in (1, 0):
        plain.run("begin")
        rows = plain.run("insert into freehold_inbox", consumer="billing", event_key="a")
        assert len(rows) == expected
        plain.run("commit")
    assert not Inbox(shop.open(), "billing").first("a")


def test_a_batch(postgres_shop: Shop) -> None:
    plain, insert = _statements(postgres_shop), "insert into freehold_inbox"
    plain.run(insert, consumer="billing", event_key="a")
    rows = plain.run(insert, 1, consumer="billing", event_keys=["c", "a", "b", "b"])
    assert rows == [("b",), ("c",)]


def test_only_a_later_event_of_a_hold_changes_what_is_known(plain: Statements) -> None:
    big = 2**63 - 9
    for order in itertools.permutations([9, 10, big]):
        plain.ask("delete from hold_seen")
        highest = 0
        for sequence in order:
            rows = plain.run(
                "insert into hold_seen",
                rule="r",
                hold_key="7",
                sequence=sequence,
                type=f"{sequence}",
            )
            assert bool(rows) == (sequence > highest)
            highest = max(highest, sequence)
        assert plain.ask("select type from hold_seen") == [(str(big),)]


def test_a_prune_keeps_what_is_young(plain: Statements, shop: Shop) -> None:
    for key in ("old", "young"):
        plain.run("insert into freehold_inbox", consumer="billing", event_key=key)
    old = "'2020-01-01 00:00:00.000'"
    plain.ask(f"update freehold_inbox set received_at = {old} where event_key = 'old'")
    plain.run("delete", consumer="billing")
    assert shop.see("select event_key from freehold_inbox") == [("young",)]
