"""What the house tests read: the modules, functions and statements below src/freehold."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "freehold"
TESTS = ROOT / "tests"

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """One function and its length in lines, docstring and decorators left out."""

    place: str
    lines: int


@dataclass(frozen=True)
class Statement:
    """One named SQL statement: its header's comment lines and its body without comments."""

    place: str
    folder: str
    name: str
    header: str
    body: str


def python_files(*folders: Path) -> list[Path]:
    """Return the Python files below the folders, in order."""
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def sql_files() -> list[Path]:
    """Return the SQL files of the package, in order."""
    return sorted(PACKAGE.rglob("*.sql"))


@cache
def tree(path: Path) -> ast.Module:
    """Return the parsed module."""
    return ast.parse(path.read_text(), str(path))


def relative(path: Path) -> str:
    """Return the path as a finding shows it."""
    return path.relative_to(ROOT).as_posix()


def functions(*folders: Path) -> list[Function]:
    """Return every function, methods and nested ones included."""
    return [
        Function(f"{relative(path)}:{node.lineno} {node.name}", _length(node))
        for path in python_files(*folders)
        for node in ast.walk(tree(path))
        if isinstance(node, FunctionNode)
    ]


def _length(node: FunctionNode) -> int:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node, clean=False) is None:
        return lines
    docstring = node.body[0]
    return lines - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def is_statement_file(path: Path) -> bool:
    """Tell named statements from the schema's ordered scripts."""
    return "schema" not in path.relative_to(PACKAGE).parts


def statements() -> Iterator[Statement]:
    """Yield every named statement of the package."""
    for path in filter(is_statement_file, sql_files()):
        parts = re.split(r"^-- name: ?(.*)$", path.read_text(), flags=re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            lines = text.strip().splitlines()
            count = next(
                (i for i, line in enumerate(lines) if not line.startswith("--")), len(lines)
            )
            yield Statement(
                place=f"{relative(path)} {name}",
                folder=relative(path.parent),
                name=name,
                header="\n".join(lines[:count]),
                body=strip_sql_comments("\n".join(lines[count:])),
            )


def strip_sql_comments(text: str) -> str:
    """Return SQL without its comments; a `--` inside quotes is none."""
    pattern = r"""('(?:[^']|'')*'|"(?:[^"]|"")*")|--[^\n]*|/\*.*?\*/"""
    return re.sub(pattern, lambda match: match[1] or "", text, flags=re.DOTALL)


def strip_sql_quotes(text: str) -> str:
    """Return SQL without the insides of its string literals."""
    return re.sub(r"'(?:[^']|'')*'", "''", text)
