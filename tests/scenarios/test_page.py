"""The page of the scenarios names every number, and only tests that exist."""

from __future__ import annotations

import ast
import re

from tests.house.source import ROOT

PAGE = ROOT / "docs" / "explanation" / "scenarios.md"
PLAIN = (
    *(1, 3, 4, 6, 7, 9, 10, 11, 12, 13, 14, 16, 18, 19, 20, 22, 23, 25, 27, 28, 29, 30, 31, 32),
    *(34, 35, 36, 38, 39, 40, 41, 43, 44, 45, 47, 48, 49, 50, 51, 53, 54, 56, 57, 59, 61, 62),
    *(63, 65, 66, 67, 69, 70, 73),
)
NASTIEST = (1, 3, 4, 5, 6, 7, 8, 10, 11, 12, 14, 16, 19, 20)
NUMBERS = [f"B{number}" for number in PLAIN] + [f"N{number}" for number in NASTIEST]


def rows() -> dict[str, str]:
    """Return the rows of the page by their number."""
    found = re.findall(r"^\| ([BN]\d+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(found) == len(dict(found))
    return dict(found)


def named(row: str) -> list[tuple[str, str]]:
    """Return the tests that a row names, as path and name."""
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)


def names_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_number_has_its_row() -> None:
    assert list(rows()) == NUMBERS


def test_every_row_names_tests_of_its_own_number() -> None:
    for number, row in rows().items():
        tests = named(row)
        assert tests, number
        for path, name in tests:
            assert name in names_in(path), f"{number}: {path}::{name}"
            assert name.startswith(f"test_{number.lower()}_"), f"{number}: {name}"


def test_every_scenario_test_is_named_on_the_page() -> None:
    folder = ROOT / "tests" / "scenarios"
    written = {
        name
        for path in folder.glob("test_*.py")
        for name in names_in(path.relative_to(ROOT).as_posix())
        if re.match(r"test_[bn]\d", name)
    }
    told = [one for row in rows().values() for one in named(row)]
    assert written == {name for path, name in told if path.startswith("tests/scenarios/")}


def test_what_cannot_be_expressed_yet_quotes_its_sentence() -> None:
    folder = ROOT / "tests" / "scenarios"
    for number, row in rows().items():
        refused = any("test_refused" in path for path, _ in named(row))
        if "*Not yet*" in row:
            assert refused, number
        for quoted in re.findall(r"`([\w.\[\]]+) is unknown; \.\.\.`", row):
            assert quoted.rpartition(".")[2] in (folder / "test_refused.py").read_text(), quoted
