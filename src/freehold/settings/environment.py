"""The environment over the file: `FREEHOLD_`, the table, two underscores, the key.

*Invariants*: a variable of ours that names no setting is an error; a value's variable is known.
*Not here*: the file (`sources`), what the values may be (`shape`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from freehold.domain.errors import UsageError
from freehold.settings.notation import full_stop, suggestion
from freehold.settings.shape import Shape
from freehold.settings.shape_file import FileShape

FILE_NAME = "freehold.toml"
PREFIX = "FREEHOLD_"
NESTING = "__"
FROM_FILE = "_FILE"
SECTIONS = ("database", "loops", "retention", "logs", "report", "summary", "queue")
FILE_ONLY = {
    "rules": "rules come",
    "holds": "[holds] comes",
    "tenants": "[tenants] comes",
    "targets": "targets come",
}


@dataclass(slots=True)
class Environment:
    """Sets variables over tables.

    Attributes:
        tables: what the file holds; values are set into it.
        variables: the variable behind a dotted name.
    """

    environ: Mapping[str, str] = field(repr=False)
    tables: dict[str, Any] = field(repr=False)
    variables: dict[str, str] = field(default_factory=dict)

    def overlay(self) -> list[str]:
        """Set all values; return a sentence for each variable that could not be."""
        wrong = []
        for variable in sorted(self.environ):
            if variable.startswith(PREFIX):
                try:
                    self._overlay(variable)
                except UsageError as error:
                    wrong.append(str(error))
        return wrong

    def _overlay(self, variable: str) -> None:
        section, *keys = variable.removeprefix(PREFIX).split(NESTING)
        if not keys:
            _check_lone(variable)
            return
        shape = _section(section.lower(), variable)
        path = [section.lower()]
        for key in keys[:-1]:
            inner = _inner(shape, key.lower())
            if inner is None:
                raise UsageError(_unknown(variable, path, key.lower(), [*_tables(shape)]))
            path.append(key.lower())
            shape = inner
        name, value = self._value(variable, keys[-1], shape)
        if name not in shape.model_fields or name in _tables(shape):
            raise UsageError(_unknown(variable, path, name, _values(shape)))
        self._set((*path, name), variable, _typed(value, shape.model_fields[name].annotation))

    def _value(self, variable: str, key: str, shape: type[Shape]) -> tuple[str, str]:
        """Return a variable's key and value; the value of `KEY_FILE` is what its file holds."""
        name, value = key.lower(), self.environ[variable]
        if name in shape.model_fields or not key.endswith(FROM_FILE):
            return name, value
        return key.removesuffix(FROM_FILE).lower(), _read_secret(variable, value)

    def _set(self, path: tuple[str, ...], variable: str, value: Any) -> None:
        place = ".".join(path)
        if place in self.variables:
            both = f"{self.variables[place]} and {variable}"
            raise UsageError(f"{both} are both set; unset one of them.")
        table: Any = self.tables
        for name in path[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):  # the file is wrong there, and says so
                return
        table[path[-1]] = value
        self.variables[place] = variable


def _section(section: str, variable: str) -> type[Shape]:
    if section in FILE_ONLY:
        raise UsageError(
            f"{variable}: {FILE_ONLY[section]} from the file only; set it in {FILE_NAME}."
        )
    found = _inner(FileShape, section) if section in SECTIONS else None
    if found is None:
        close = suggestion(section, [*SECTIONS])
        raise UsageError(full_stop(f"{variable} names no setting: no table [{section}]{close}"))
    return found


def _inner(shape: type[Shape], name: str) -> type[Shape] | None:
    """Return the shape of a table in a table; None where that is no table."""
    found = shape.model_fields.get(name)
    return None if found is None else next(_shapes_in(found.annotation), None)


def _shapes_in(annotation: Any) -> Iterator[type[Shape]]:
    for one in get_args(annotation) or (annotation,):
        if isinstance(one, type) and issubclass(one, Shape):
            yield one


def _tables(shape: type[Shape]) -> list[str]:
    return [name for name in shape.model_fields if _inner(shape, name) is not None]


def _values(shape: type[Shape]) -> list[str]:
    return [name for name in shape.model_fields if _inner(shape, name) is None]


def _typed(text: str, annotation: Any) -> Any:
    """Read a number where one is wanted; what is none stays a text, and the shape refuses it."""
    kinds = (annotation, *get_args(annotation))
    kinds = (*kinds, *(part for one in kinds for part in get_args(one)))
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                return text
    return text


def _unknown(variable: str, path: list[str], name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    front = f"{PREFIX}{NESTING.join(path)}{NESTING}"
    meant = [f"{front}{one}".upper() for one in close or known]
    if close:
        return f"{variable} names no setting; did you mean {meant[0]}?"
    if not meant:
        return f"{variable} names no setting; there is no table in [{'.'.join(path)}]."
    return f"{variable} names no setting; known are {', '.join(meant)}."


def _check_lone(variable: str) -> None:
    """Refuse a single underscore where two were meant; other names are not ours to judge."""
    section, _, key = variable.removeprefix(PREFIX).partition("_")
    if key and section.lower() in (*SECTIONS, *FILE_ONLY):
        raise UsageError(
            f"{variable} names no setting; did you mean {PREFIX}{section}{NESTING}{key}?"
        )


def _read_secret(variable: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise UsageError(f"{variable}: the file cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{variable}: the file is no UTF-8 text.") from None
