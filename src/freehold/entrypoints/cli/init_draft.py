"""The text that `freehold init` writes: settings with their defaults, and a drafted rule.

*Invariants*: what is guessed stands in a comment that asks for a check; what cannot be guessed is
left open, and says so; the text is valid settings as it stands, and again once the draft is
uncommented and its open places are filled.
*Not here*: reading the catalogue (`init`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from freehold.settings.sentences import toml_text
from freehold.settings.shape import DatabaseShape, LoopsShape, Shape
from freehold.settings.shape_file import HoldsShape
from freehold.settings.url import masked
from freehold.settings.values import DEFAULT_URL

if TYPE_CHECKING:
    from freehold.adapters.sql.catalogue import Column
    from freehold.domain.rules import TableName

_NO_LINE = (
    "zone",
    "also",
    "retry",
    "handler",
    "handler_timeout",
)  # keys of [holds] that have no default of one line
OPEN = '"?"'  # a place that only a person can fill
_DUE = ("hold_until", "held_until", "reserved_until", "due_at", "release_at", "expires_at")
_DUE_WORDS = re.compile(r"until|expir|releas|due|deadline|valid_to|hold|held|reserv", re.IGNORECASE)
_STATUS = re.compile(r"^(.*_)?(status|state)$", re.IGNORECASE)
_TOKEN = re.compile(r"token|nonce|(^|_)version$|^uid$|^uuid$", re.IGNORECASE)
_TENANT = re.compile(
    r"^(tenant|organi[sz]ation|account|company|merchant|shop|client)_?(id|key)?$", re.IGNORECASE
)
_ENDED = re.compile(r"^(confirmed|paid|purchased|completed|booked|sold)_?at$", re.IGNORECASE)
_WHOLE = re.compile(r"(big|small|tiny|medium)?int(eger|[248])?\b|numeric|real")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_EPOCH_NOTE = 'CHECK: seconds since 1970; milliseconds are "epoch_ms"'
_ZONE_NOTE = "CHECK: the zone that these local times are in"

HEAD = """\
# Settings of Freehold. Every setting: docs/reference/settings.md, or `freehold config schema`.
# Environment variables win over this file: FREEHOLD_DATABASE__URL, FREEHOLD_LOOPS__LEASE, ...
# Check: `freehold config check` (without the database), `freehold doctor` (with it).
"""
URL_LEFT_OUT = """\
# The URL holds a password, so it is not written here. Set FREEHOLD_DATABASE__URL, or put it into
# a file and set FREEHOLD_DATABASE__URL_FILE to that file's path; till then the default, an
# SQLite file, counts. The URL reads like this:
"""
HOLDS_OFF = """\
# No table of your own? Remove the # sign, and Freehold keeps the holds (`freehold hold --help`).
# [holds]
"""
EXAMPLE = """\
# One [[rules]] table for each table with holds; remove the # signs and fill it in.
# `freehold init --table NAME` drafts one from a live table.
#
# [[rules]]
# name = "cart"
# table = 'public."SelectedSlots"'        # exact names; quotes only where a dot or blank is inside
# key = ["id"]
# held = [{ status = "held" }]            # absent: every row is a hold
# due = { column = "hold_until", kind = "timestamptz" }
# expire = { set = { status = "expired" } }   # or { delete = true }
# fence = ["hold_token"]                  # what names one granting of a hold
"""


def page(
    url: str | None,
    table: TableName | None,
    columns: Mapping[str, Column] | None,
    variable: str = "",
    *,
    holds: bool = False,
) -> str:
    """Return the whole file.

    Args:
        url: what to write; None writes the default.
        columns: None where the table could not be read.
        variable: the environment variable that sets the URL already; empty where none does.
        holds: turn the built-in holds on.
    """
    built_in = f"[holds]\n{_defaults(HoldsShape, _NO_LINE)}" if holds else HOLDS_OFF
    rule = EXAMPLE if table is None or columns is None else draft(table, columns)
    database = f"# url is set by {variable}\n" if variable else _url(url or DEFAULT_URL)
    database += _defaults(DatabaseShape, ("url",))
    return f"{HEAD}\n[database]\n{database}\n[loops]\n{_defaults(LoopsShape)}\n{built_in}\n{rule}"


def _url(url: str) -> str:
    line = f"url = {toml_text(masked(url))}\n"
    return line if masked(url) == url else f"{URL_LEFT_OUT}# {line}"


def _defaults(shape: type[Shape], without: tuple[str, ...] = ()) -> str:
    """Write every setting with its default, as comments."""
    lines = []
    for name, field in shape.model_fields.items():
        if name not in without:
            line = f"# {name} = {toml_text(field.default)}"
            lines.append(f"{line:<32}  # {field.description}\n")
    return "".join(lines)


def draft(table: TableName, columns: Mapping[str, Column]) -> str:
    """Draft a rule from names and types, which is a guess and says so."""
    return f"{_commented(_notes(table, columns))}#\n{_commented(_rule(table, columns))}"


def _commented(lines: Iterable[str]) -> str:
    """Write lines as comments; a control character in a name must not end one."""
    return "".join(f"# {_CONTROL.sub('?', line)}".rstrip() + "\n" for line in lines)


def _notes(table: TableName, columns: Mapping[str, Column]) -> Iterator[str]:
    yield f"DRAFT for {table}, guessed from names and types of its columns. Check every line, fill"
    yield f"what is {OPEN}, remove the # signs from [[rules]] on, then run `freehold config check`"
    yield "and `freehold doctor`. Its columns:"
    for column in columns.values():
        null = "" if column.nullable else ", not null"
        yield f"  {column.name}: {column.type or 'no type'}{null}"


def _rule(table: TableName, columns: Mapping[str, Column]) -> Iterator[str]:
    yield "[[rules]]"
    yield f'name = "{_rule_name(table.name)}"'
    yield f"table = {_literal(_written(table))}"
    yield from _key(columns)
    yield from _tenant(columns)
    yield from _held(columns)
    yield from _due(columns)
    yield from _fence(columns)


def _rule_name(name: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "_", name.lower())[:64].strip("_") or "holds"


def _written(table: TableName) -> str:
    parts = [table.name] if table.schema is None else [table.schema, table.name]
    return ".".join(
        part if re.fullmatch(r"\w+", part) else '"' + part.replace('"', '""') + '"'
        for part in parts
    )


def _literal(text: str) -> str:
    return toml_text(text) if "'" in text or '"' not in text else f"'{text}'"


def _key(columns: Mapping[str, Column]) -> Iterator[str]:
    for name in ("id", "uuid", "key"):
        if found := next((one for one in columns if one.lower() == name), None):
            yield f"key = [{toml_text(found)}]  # CHECK: the primary key, all of its columns"
            return
    yield f"key = [{OPEN}]  # OPEN: the columns of the primary key"


def _tenant(columns: Mapping[str, Column]) -> Iterator[str]:
    if found := next((one for one in columns if _TENANT.search(one)), None):
        yield f"tenant = {{ column = {toml_text(found)} }}  # CHECK: who a hold belongs to"


def _held(columns: Mapping[str, Column]) -> Iterator[str]:
    """Propose what held means, and an action that ends it; a delete is never proposed."""
    status = next((one for one in columns if _STATUS.search(one)), None)
    ended = next(
        (one for one in columns.values() if _ENDED.search(one.name) and one.nullable), None
    )
    if status is not None:
        yield from _status(columns[status])
        return
    if ended is not None:
        yield f"held = [{toml_text({ended.name: {'is': 'null'}})}]  # CHECK: what a held row has"
    else:
        yield f"held = [{{ {OPEN} = {OPEN} }}]  # OPEN: what only a held row has"
    yield f"expire = {{ set = {{ {OPEN} = {OPEN} }} }}  # OPEN: what to write, or {{ delete = true }}"


def _status(column: Column) -> Iterator[str]:
    """Propose words for a column of words; what a number means nobody can guess."""
    if _WHOLE.match(column.type):
        name = toml_text(column.name)
        yield f"held = [{{ {name} = {OPEN} }}]  # OPEN: the number that a held row has"
        yield f"expire = {{ set = {{ {name} = {OPEN} }} }}  # OPEN: the number after it"
        return
    held, expired = toml_text({column.name: "held"}), toml_text({column.name: "expired"})
    yield f"held = [{held}]  # CHECK: the value that a held row has"
    yield f"expire = {{ set = {expired} }}  # CHECK: the value after it"


def _due(columns: Mapping[str, Column]) -> Iterator[str]:
    found = _due_column(columns)
    if found is None:
        yield f"due = {{ column = {OPEN}, kind = {OPEN} }}  # OPEN: no column looks like a due"
        return
    kind, note = _kind(found)
    zone = ', zone = "UTC"' if kind in ("naive", "date") else ""
    yield f'due = {{ column = {toml_text(found.name)}, kind = "{kind}"{zone} }}  # {note}'


def _due_column(columns: Mapping[str, Column]) -> Column | None:
    """Return the column with the likeliest name among those that can hold an instant."""
    able = [one for one in columns.values() if _kind(one)[0]]
    exact = [one for name in _DUE for one in able if one.name.lower() == name]
    likely = [one for one in able if _DUE_WORDS.search(one.name)]
    return next(iter([*exact, *likely]), None)


def _kind(column: Column) -> tuple[str, str]:
    """Return the due kind that fits the column's type, and what to check; empty where none does."""
    kind = column.type
    if kind.startswith("timestamp with time zone"):
        return "timestamptz", "CHECK: when the hold is due"
    if kind.startswith(("timestamp", "datetime")):
        return "naive", _ZONE_NOTE
    if kind == "date":
        return "date", _ZONE_NOTE + "; due when that local day ends"
    if _WHOLE.match(kind):
        return "epoch_s", _EPOCH_NOTE
    if kind.startswith(("text", "character varying", "varchar")):
        return "iso", "CHECK: text; local times of one shape are better read as naive"
    return "", ""


def _fence(columns: Mapping[str, Column]) -> Iterator[str]:
    found = [one for one in columns if _TOKEN.search(one)]
    if found:
        yield f"fence = {toml_text(found[:1])}  # CHECK: changes with each granting of a hold"
    else:
        yield "fence = []  # a column that changes with each granting would go here"
