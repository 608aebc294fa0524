"""Where settings come from: a file, the environment over it, and defaults below both.

*Invariants*: the first of these files counts, alone: the one that was named, `freehold.toml`,
`[tool.freehold]` of `pyproject.toml`; a value's origin is always known.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from freehold.domain.errors import UsageError
from freehold.settings.build import build
from freehold.settings.consistency import findings
from freehold.settings.effective import Setting, effective
from freehold.settings.environment import FILE_NAME, Environment
from freehold.settings.notation import Finding
from freehold.settings.sentences import sentences
from freehold.settings.shape_file import FileShape
from freehold.settings.values import Settings

PROJECT_FILE = "pyproject.toml"
_RULE = re.compile(r"rules\[([0-9]+)\]")


@dataclass(frozen=True, slots=True)
class Document:
    """The settings as they were written.

    Attributes:
        tables: the file's content with the environment's values set over it.
        file: the file's name as it was given; empty without a file.
        variables: the environment variable behind a dotted name.
        readable: False where the file could not be read, so that nothing can be said of its keys.
    """

    tables: dict[str, Any] = field(repr=False)
    file: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    readable: bool = True

    def place(self, dotted: str) -> str:
        """Name the variable or the file and key that a dotted name was read from."""
        if dotted in self.variables:
            return self.variables[dotted]
        return f"{self.file}: {dotted}" if self.file else dotted


def load_settings(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read file and environment.

    Args:
        path: the file that was asked for; None looks in the current folder.

    Raises:
        UsageError: something is wrong; one sentence a line, all findings at once.
    """
    document, shape = read_settings(path, environ)
    return build(shape, {one.name: one.origin for one in settings_of(document, shape)})


def settings_of(document: Document, shape: FileShape) -> list[Setting]:
    """Return every setting of a checked document, with its origin."""
    return effective(shape, document.tables, document.file, document.variables)


def read_settings(path: Path | None, environ: Mapping[str, str]) -> tuple[Document, FileShape]:
    """Read file and environment as they were written, and check both.

    Raises:
        UsageError: as `load_settings`.
    """
    document, wrong = _gather(path, environ)
    shape = None
    if document.readable:
        shape, found = _check(document.tables)
        wrong += [f"{document.place(one.place)} {one.text}" for one in found]
    if wrong or shape is None:
        raise UsageError("\n".join(wrong))
    return document, shape


def _check(tables: Mapping[str, Any]) -> tuple[FileShape | None, list[Finding]]:
    """Check shape and consistency; without a right shape, the consistency of what has one."""
    try:
        shape = FileShape.model_validate(tables)
    except ValidationError as error:
        return None, [*sentences(error, tables), *_of_the_rest(error, tables)]
    return shape, findings(shape)


def _of_the_rest(error: ValidationError, tables: Mapping[str, Any]) -> list[Finding]:
    """Return what does not fit together in the tables and rules that have no error of shape."""
    places = [one["loc"] for one in error.errors(include_url=False)]
    wrong_rules = {place[1] for place in places if place[0] == "rules" and len(place) > 1}
    wrong_tables = {place[0] for place in places if place[0] != "rules" or len(place) == 1}
    rest = {name: value for name, value in tables.items() if name not in wrong_tables}
    kept = [index for index in range(len(rest.get("rules", ()))) if index not in wrong_rules]
    if "rules" in rest:
        rest["rules"] = [rest["rules"][index] for index in kept]

    def numbered(text: str) -> str:
        return _RULE.sub(lambda found: f"rules[{kept[int(found[1])]}]", text)

    try:
        found = findings(FileShape.model_validate(rest))
    except ValidationError:  # what was taken out is missed elsewhere
        return []
    return [Finding(numbered(one.place), numbered(one.text)) for one in found]


def _gather(path: Path | None, environ: Mapping[str, str]) -> tuple[Document, list[str]]:
    """Read file and environment without looking at what the keys mean; return what is wrong too."""
    wrong: list[str] = []
    variables: dict[str, str] = {}
    try:
        tables, name = _read_file(path)
    except UsageError as error:
        tables, name = {}, ""
        wrong.append(str(error))
    document = Document(tables, name, variables, readable=not wrong)
    wrong += Environment(environ, tables, variables).overlay()
    return document, wrong


def _read_file(path: Path | None) -> tuple[dict[str, Any], str]:
    if path is not None:
        return _section_of(path, required=True), str(path)
    if Path(FILE_NAME).exists():
        return _parse(Path(FILE_NAME)), FILE_NAME
    if Path(PROJECT_FILE).exists():
        tables = _section_of(Path(PROJECT_FILE), required=False)
        return tables, PROJECT_FILE if tables else ""
    return {}, ""


def _section_of(path: Path, *, required: bool) -> dict[str, Any]:
    tables = _parse(path)
    if path.name != PROJECT_FILE:
        return tables
    tools = tables.get("tool")
    section = tools.get("freehold") if isinstance(tools, dict) else None
    if section is None and not required:
        return {}
    if not isinstance(section, dict):
        raise UsageError(f"{path} has no [tool.freehold] table; add it, or name another file.")
    return section


def _parse(path: Path) -> dict[str, Any]:
    text = _read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is no valid TOML: {error}; mend it there.") from None


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")  # some editors put a mark in front
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist; write it with freehold init.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
