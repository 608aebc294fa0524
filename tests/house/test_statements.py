"""Every SQL statement says what it is for, who calls it and which index it needs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import TYPE_CHECKING

from tests.house import source
from tests.house.test_names import HOUSE

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER_LINES = ("-- Purpose:", "-- Caller:", "-- Index:")
CLOCK_STATEMENTS = ("database_now", "join_caller")
# What reads a clock: the instant of a transaction is read once, by one statement, which begins it.
CLOCKS = re.compile(
    r"\b(now|clock_timestamp|transaction_timestamp|statement_timestamp|timeofday)\s*\("
    r"|\b(current_timestamp|current_date|current_time|localtime|localtimestamp)\b"
    r"|'now'|\bunixepoch\s*\(\s*\)",
    re.IGNORECASE,
)


def test_a_file_of_statements_holds_nothing_else() -> None:
    for path in filter(source.is_statement_file, source.sql_files()):
        before, name, _ = path.read_text().partition("-- name:")
        assert name, f"{source.relative(path)} names no statement"
        assert not source.strip_sql_comments(before).strip(), source.relative(path)


def test_names_are_plain() -> None:
    assert not [
        statement.place
        for statement in source.statements()
        if not re.fullmatch(r"[a-z][a-z0-9_]*", statement.name)
    ]


def test_a_statement_opens_with_purpose_caller_and_index() -> None:
    assert not [
        f"{statement.place}: {line} is missing or empty"
        for statement in source.statements()
        for line in HEADER_LINES
        if not re.search(rf"^{line} \S", statement.header, re.MULTILINE)
    ]


def test_a_statement_has_a_body() -> None:
    assert not [statement.place for statement in source.statements() if not statement.body.strip()]


def test_a_name_stands_once_in_a_folder() -> None:
    counts = Counter((statement.folder, statement.name) for statement in source.statements())
    assert not [key for key, count in counts.items() if count > 1]


def test_the_sqlite_statements_say_how_they_differ() -> None:
    assert not [
        statement.place
        for statement in source.statements()
        if statement.folder.endswith("/sqlite")
        and not re.search(r"^-- Differs: \S", statement.header, re.MULTILINE)
    ]


def test_a_statement_is_shared_or_by_dialect() -> None:
    folders: dict[str, set[str]] = {}
    for statement in source.statements():
        folders.setdefault(statement.folder.rpartition("/")[2], set()).add(statement.name)
    shared = folders.pop("shared", set())
    assert not {
        dialect: sorted(shared & names) for dialect, names in folders.items() if shared & names
    }


def test_no_statement_reads_a_clock() -> None:
    assert not [
        statement.place
        for statement in source.statements()
        if statement.name not in CLOCK_STATEMENTS and CLOCKS.search(statement.body)
    ]


def test_statements_named_in_python_exist() -> None:
    names = {statement.name for statement in source.statements()}
    uses = list(_uses())
    assert bool(uses) == bool(names), "words.toml no longer says how Python names a statement"
    assert not [place for place, name in uses if name not in names]


def test_every_statement_is_named_in_python() -> None:
    literals = {
        node.value
        for path in source.python_files(source.PACKAGE)
        for node in ast.walk(source.tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    unused = {statement.name for statement in source.statements()} - literals
    assert not sorted(unused)


def _uses() -> Iterator[tuple[str, str]]:
    for path in source.python_files(source.PACKAGE / "adapters" / "sql"):
        for node in ast.walk(source.tree(path)):
            for name in _names_in(node):
                yield f"{source.relative(path)}:{getattr(node, 'lineno', 0)} {name}", name


def _names_in(node: ast.AST) -> Iterator[str]:
    where = HOUSE["statement_uses"]
    match node:
        case ast.Subscript(value=ast.Call(func=function), slice=ast.Constant(value=str(name))):
            if _last_name(function) in where["subscripts"]:
                yield name
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
            if _last_name(function) in where["calls"]:
                yield name


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
