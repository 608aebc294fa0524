"""Named SQL statements from `.sql` files: one shared text, and an override where a dialect differs.

*Invariants*: a statement that a dialect overrides is never also taken from `shared`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_SLOT = re.compile(r"\{(\w+)\}")
# Quoted text, comments and casts are passed over, so that only real parameters are found.
_TOKEN = re.compile(
    r"""(?P<pass>"(?:[^"]|"")*"|'(?:[^']|'')*'|--[^\n]*|::)|:(?P<name>[A-Za-z_]\w*)|(?P<percent>%)"""
)
# Where a semicolon ends nothing: quoted text, dollar quotes, comments.
_OPAQUE = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/""", re.DOTALL
)


@cache
def load(dialect: str) -> Mapping[str, str]:
    """Return all statements of a dialect by name, headers taken off."""
    found: dict[str, str] = {}
    for folder in ("shared", dialect):
        for path in sorted(
            files(__package__).joinpath("statements", folder).iterdir(), key=lambda p: p.name
        ):
            found |= _split(path.read_text())
    return found


def _split(text: str) -> dict[str, str]:
    parts = _NAME.split(text)[1:]
    return {name: _body(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _body(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("-- ")).strip()


def fill(text: str, slots: Mapping[str, str]) -> str:
    """Put SQL fragments into their slots, once: braces inside a fragment stay as they are.

    Raises:
        KeyError: a slot has no fragment; a mistake of ours.
    """
    return _SLOT.sub(lambda match: slots[match[1]], text)


def parameters(text: str) -> tuple[str, ...]:
    """Return the names of the parameters in a statement, each once."""
    return tuple(dict.fromkeys(m["name"] for m in _TOKEN.finditer(text) if m["name"]))


def is_several(text: str) -> bool:
    """Tell whether a text of the customer's holds more than one statement."""
    return ";" in _OPAQUE.sub("", text).strip().rstrip(";")


@cache
def to_psycopg(text: str) -> str:
    """Write `:name` parameters the way psycopg wants them."""

    def spell(match: re.Match[str]) -> str:
        if match["name"]:
            return f"%({match['name']})s"
        return "%%" if match["percent"] else match["pass"].replace("%", "%%")

    return _TOKEN.sub(spell, text)
