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
WHOLE = ("operation_pkey", "operation_claim", "operation_identity", "hold_pkey")


@cache
def _parts(dialect: str) -> dict[str, list[str]]:
    """Cut each named statement at its slots, which stand for anything."""
    return {name: re.split(r"\{\w+\}", text) for name, text in load(dialect).items()}


def _fits(parts: list[str], sql: str) -> bool:
    """Find the parts in order, from end to end; a regular expression takes seconds for it."""
    if len(parts) == 1:
        return sql == parts[0]
    place, end = len(parts[0]), len(sql) - len(parts[-1])
    if not (sql.startswith(parts[0]) and sql.endswith(parts[-1])):
        return False
    for part in parts[1:-1]:
        found = sql.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return place <= end


@cache
def name_of(dialect: str, sql: str) -> str | None:
    """Return the name of a filled statement."""
    names = [name for name, parts in _parts(dialect).items() if _fits(parts, sql)]
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
        if node.get("Node Type") == "Bitmap Index Scan":
            yield f"a bitmap of {node['Index Name']}"
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
            elif row[3] == "USE TEMP B-TREE FOR ORDER BY":
                self.plans[name].add("a sort")
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


def fill(place: Place, count: int) -> None:
    """Insert so many holds that are due, a millisecond apart."""
    if place.dialect == "postgres":
        place.host.run(
            "insert into hold select n, 't' || n % 7, 'held', 'k' || n, timestamptz "
            "'2026-03-10 11:00+00' + n * interval '1 ms', null, 1, 1 "
            f"from generate_series(1, {count}) n"
        )
        return
    place.host.run(
        f"with recursive s (n) as (select 1 union all select n + 1 from s where n < {count}) "
        "insert into hold select n, 't' || n % 7, 'held', 'k' || n, "
        "printf('2026-03-10 11:00:%02d.%03d', n / 1000, n % 1000), null, 1, 1 from s"
    )


def analyse(place: Place) -> None:
    """Let the planner know what stands in the tables now."""
    place.host.run("vacuum analyze" if place.dialect == "postgres" else "analyze")


def assert_by_index(plans: Plans, wanted: Mapping[str, set[str]]) -> None:
    """Check that each statement uses its indexes, and that none reads one of ours end to end.

    What an old snapshot keeps in an index makes that dear, however few operations are open.
    """
    missing = {n: (indexes, plans[n]) for n, indexes in wanted.items() if not indexes <= plans[n]}
    assert not missing, missing
    whole = {n: p for n, p in plans.items() if any(f"all of {one}" in p for one in WHOLE)}
    assert not whole, whole
