"""Sessions that ask for the plan of each statement just before they run it, by its name."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

from freehold.adapters.sql.postgres import PostgresSession
from freehold.adapters.sql.sqlite import SqliteSession, encode
from freehold.adapters.sql.statements import load, to_psycopg
from freehold.adapters.system import SystemClock
from tests.behaviour.place import SHORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from freehold.adapters.sql.session import Row
    from tests.behaviour.place import Place

Plans = dict[str, set[str]]


@cache
def _patterns(dialect: str) -> dict[str, re.Pattern[str]]:
    """Turn each named statement into a pattern, its slots standing for anything."""
    found = {}
    for name, text in load(dialect).items():
        parts = re.split(r"\{\w+\}", text)
        found[name] = re.compile(".*?".join(re.escape(part) for part in parts), re.DOTALL)
    return found


@cache
def name_of(dialect: str, sql: str) -> str | None:
    """Return the name of a filled statement."""
    names = [name for name, pattern in _patterns(dialect).items() if pattern.fullmatch(sql)]
    return min(names, key=lambda name: -len(load(dialect)[name]), default=None)


def _walk(node: Any) -> Iterator[str]:
    """Name the indexes of a plan, its sorts, and what it reads from end to end."""
    if isinstance(node, list):
        for one in node:
            yield from _walk(one)
    elif isinstance(node, dict):
        if "Index Name" in node:
            yield node["Index Name"]
            if node["Node Type"].startswith("Index") and "Index Cond" not in node:
                yield f"all of {node['Index Name']}"
        yield from node.get("Conflict Arbiter Indexes", ())
        if "Sort" in node.get("Node Type", ""):
            yield "a sort"
        if node.get("Node Type") == "Seq Scan":
            yield f"all of {node['Relation Name']}"
        for value in node.values():
            yield from _walk(value)


class ExplainedPostgres(PostgresSession):
    """A PostgreSQL session that gathers plans."""

    plans: Plans

    def run(self, sql: str, parameters: Mapping[str, Any]) -> tuple[list[Row], int]:
        name = name_of("postgres", sql)
        if name is not None and sql.startswith(("select", "insert", "update", "delete", "with")):
            text = f"explain (format json) {to_psycopg(sql)}"
            rows = self._open().execute(text.encode(), parameters).fetchall()
            self.plans[name].update(_walk(rows[0][0]))
        return super().run(sql, parameters)


class ExplainedSqlite(SqliteSession):
    """A SQLite session that gathers plans."""

    plans: Plans

    def _explain(self, sql: str, parameters: Mapping[str, Any]) -> None:
        name = name_of("sqlite", sql)
        if name is None or sql.startswith("explain"):
            return
        encoded = {key: encode(value) for key, value in parameters.items()}
        for row in self._open().execute(f"explain query plan {sql}", encoded):
            index = re.search(r"USING (?:COVERING )?INDEX (\w+)", row[3])
            if index:
                self.plans[name].add(index[1])
            elif "INTEGER PRIMARY KEY" in row[3]:
                self.plans[name].add(f"rowid of {row[3].split()[1]}")
            elif row[3].startswith("SCAN") and "VIRTUAL TABLE" not in row[3]:
                self.plans[name].add(f"all of {row[3].split()[1]}")

    def run(self, sql: str, parameters: Mapping[str, Any]) -> tuple[list[Row], int]:
        self._explain(sql, parameters)
        return super().run(sql, parameters)

    def run_many(self, sql: str, rows: Sequence[Row], parameters: Mapping[str, Any]) -> int:
        first = {f"c{n}": value for n, value in enumerate(rows[0])}
        self._explain(sql, {**parameters, **first})
        return super().run_many(sql, rows, parameters)


def explained(place: Place) -> ExplainedPostgres | ExplainedSqlite:
    """Open a session of the place's that gathers plans."""
    session: ExplainedPostgres | ExplainedSqlite
    if place.dialect == "postgres":
        session = ExplainedPostgres(place.target, limits=SHORT, clock=place.clock)
    else:
        session = ExplainedSqlite(place.target, SystemClock(), limits=SHORT, clock=place.clock)
    session.plans = defaultdict(set)
    place._opened.append(session)
    return session
