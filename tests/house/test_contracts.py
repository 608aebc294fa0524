"""No method of a port without a contract: a suite calls it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.house import source

if TYPE_CHECKING:
    from collections.abc import Iterator

PORTS = source.PACKAGE / "ports"
CONTRACTS = source.PACKAGE / "testing" / "contracts"
# Reading for people is shown on what a whole service left behind, in tests of its own.
READ_ONLY = {
    "audit.py",
    "event_insight.py",
    "insight.py",
    "inspection.py",
    "queue_facts.py",
    "report_insight.py",
}


def _port_methods() -> Iterator[tuple[str, str]]:
    for path in sorted(PORTS.glob("*.py")):
        if path.name in READ_ONLY:
            continue
        for node in source.tree(path).body:
            if isinstance(node, ast.ClassDef) and _is_protocol(node):
                for method in node.body:
                    if isinstance(method, ast.FunctionDef):
                        yield f"{path.stem}.{node.name}", method.name


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)


def test_every_method_of_a_port_has_a_contract() -> None:
    used = {
        node.attr
        for path in source.python_files(CONTRACTS)
        for node in ast.walk(source.tree(path))
        if isinstance(node, ast.Attribute)
    }
    methods = list(_port_methods())
    assert methods
    assert not [f"{port}.{method}" for port, method in methods if method not in used]
