"""One word per thing: words.toml says which, and where an exception holds."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.house import source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOUSE: dict[str, Any] = tomllib.loads((source.TESTS / "house" / "words.toml").read_text())


@dataclass(frozen=True)
class Name:
    """An identifier where it is defined, with its annotation as text."""

    path: Path
    line: int
    text: str
    annotation: str = ""

    @property
    def words(self) -> str:
        """The name in snake case, between underscores: `ClaimedHold` is `_claimed_hold_`."""
        return f"_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', self.text).lower().strip('_')}_"

    def __str__(self) -> str:
        return f"{source.relative(self.path)}:{self.line} {self.text}"


def _annotation(node: ast.expr | None) -> str:
    return "" if node is None else ast.unparse(node)


def _name_of(node: ast.AST) -> tuple[str, str] | None:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name, ""
        case ast.arg(arg=name, annotation=annotation):
            return name, _annotation(annotation)
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
            return name, _annotation(annotation)
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name, ""
    return None


def python_names() -> Iterator[Name]:
    for path in source.python_files(source.PACKAGE):
        for node in ast.walk(source.tree(path)):
            if found := _name_of(node):
                yield Name(path, getattr(node, "lineno", 0), *found)


def sql_names() -> Iterator[Name]:
    for path in source.sql_files():
        text = source.strip_sql_quotes(source.strip_sql_comments(path.read_text()))
        for word in sorted(set(re.findall(r"[A-Za-z_]\w*", text))):
            yield Name(path, 0, word)


def _is_allowed(name: Name, entry: dict[str, Any]) -> bool:
    place = name.path.relative_to(source.PACKAGE).as_posix()
    return any(place.startswith(allowed) for allowed in entry.get("but", []))


def _broken_by(name: Name) -> Iterator[str]:
    for entry in HOUSE["word"]:
        found = any(f"_{word}_" in name.words for word in entry["never"])
        if found and not _is_allowed(name, entry):
            yield f"{name}: say {entry['say']}"
    for entry in HOUSE["ending"]:
        found = any(name.words.endswith(f"_{word}_") for word in entry["never"])
        if found and not _is_allowed(name, entry):
            yield f"{name}: end it in {entry['say']}"


def test_definitions_use_the_house_words() -> None:
    assert not [finding for name in python_names() for finding in _broken_by(name)]


def test_sql_uses_the_house_words() -> None:
    assert not [finding for name in sql_names() for finding in _broken_by(name)]


def test_bare_numbers_end_in_their_unit() -> None:
    rule = HOUSE["bare_numbers"]
    numbers = {"int", "float", "int | None", "float | None"}
    assert not [
        f"{name}: {rule['say']}"
        for name in python_names()
        if name.annotation in numbers
        and any(name.words.endswith(f"_{word}_") for word in rule["last_words"])
    ]


def test_no_module_is_named_for_nothing() -> None:
    paths = [*source.python_files(source.PACKAGE, source.TESTS), *source.sql_files()]
    banned = set(HOUSE["modules"])
    assert not [
        source.relative(path)
        for path in paths
        if banned & set(path.relative_to(source.ROOT).with_suffix("").parts)
    ]


def test_exceptions_have_a_reason() -> None:
    for entry in [*HOUSE["word"], *HOUSE["ending"]]:
        assert bool(entry.get("but")) == bool(entry.get("why")), entry
