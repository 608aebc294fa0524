"""Writes docs/reference/settings.md from the settings' shape: `python -m tests.unit.settings_page`.

The page is committed; a test compares it with what this writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from freehold.settings.schema import json_schema
from freehold.settings.sentences import toml_text
from tests.house.source import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "reference" / "settings.md"
SCHEMA = json_schema()

INTRO = """\
# Settings

<!-- Written by `python -m tests.unit.settings_page`; change the models in src/freehold/settings. -->

Freehold reads one file: the one named with `--config`, else `freehold.toml` in the current folder,
else the table `[tool.freehold]` of `pyproject.toml`. Without any, the defaults below hold.

Environment variables win over the file for all tables but holds and rules: `FREEHOLD_`, the table, two
underscores, the key, as in `FREEHOLD_DATABASE__URL` or, in a table of a table,
`FREEHOLD_REPORT__SMTP__PASSWORD`. With `_FILE` behind it the value is read from
a file, which suits mounted secrets: `FREEHOLD_DATABASE__URL_FILE=/run/secrets/url`. Rules,
`[holds]`, `[tenants]` and targets come from the file only; a target's secrets are better kept in
files of their own, which `url_file` and `secret_file` name.

An unknown key or variable is an error. `freehold config check` finds every mistake that needs no
database, `freehold doctor` the others, `freehold config show --origin` says which value counts and
where it came from, and `freehold config schema` prints a JSON Schema for editors. A password in the
URL is masked wherever the URL is shown; `freehold init` never writes one into a file.

## Notations

- **Duration**: days, hours, minutes, seconds, milliseconds, largest first, in quotes: `"250ms"`,
  `"30s"`, `"1h30m"`.
- **Table**: `name` or `schema.name`. Every name is taken exactly as it stands, capitals included,
  in double quotes or not: `public.SelectedSlots` and `public."SelectedSlots"` are the same table.
  (PostgreSQL itself would fold the first to lower case.) Double quotes are needed only around a
  name with a dot, a blank or a quote in it.
- **Conditions** (`held`, `confirmed`, `cancelled`, `tenants.active`): a list of alternatives; in each, every condition
  must hold. `column = value` compares for equality, `column = ["a", "b"]` with a list,
  `column = { lt = 5 }` with `<`, `column = { is = "null" }` and `{ is = "not null" }` with NULL.
  Values are texts, numbers, `true` or `false`; dates and times are written as text.
- **Assignments** (`expire.set`): `column = value`, `column = { now = true }` for the instant of
  release in the column's own kind, `column = { null = true }`.
- **Row range** (`also.rows`): `"1"` exactly one, `"0-1"`, `"1-"` at least one, `"any"`.

## Example

```toml
[database]
url = "postgresql://app@localhost/app"

[[rules]]
name = "cart"
table = 'public."SelectedSlots"'
key = ["id"]
tenant = { column = "userId" }
held = [{ isSeat = true, paidAt = { is = "null" } }]
due = { column = "releaseAt", kind = "naive", zone = "UTC", grace = "30s" }
fence = ["uid"]
expire = { delete = true }
also = [{ sql = "update stock set free = free + :qty where id = :stock_id", rows = "1", lock_by = ":stock_id" }]
carry = ["eventTypeId"]
when = "precise"
promise = "60s"
hold_window = "15m"
retry = { delays = ["10s", "30s", "90s"], jitter = 0.2 }
```

## What is refused without a database

Two rules of one name, or a rule with the name of the built-in holds. An action that leaves the row
held: its columns still meet every condition of an alternative of `held`, or it names no column of
one, or there is no `held` at all and the row is not deleted. An action that changes a key column.
`naive` and `date` without `due.zone`, and a zone that is not in the tz database. A companion of
several statements, one that begins or ends a transaction, and a `lock_by` that is no parameter of
it. A handler in mode `direct` or `window`, or with a time limit that is not shorter than the lease.
A heartbeat that is not shorter than the lease. A `[report]` whose sender is no bare address, whose
zone is not in the tz database, or that leaves open which transport carries its mails; a transport
without its key; a password that would travel in clear; a `[summary]` without `[report]`. Two
targets of one name, a key that means nothing for the target's kind, a URL whose scheme does not fit
the kind, a webhook over http: that is not `insecure` and bound to the networks of `allow`, a
webhook without a signing secret, and a type of event or a rule that there is none of.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([INTRO, *_sections()])


def names() -> list[str]:
    """Return every setting as the page names it, a rule's without a number: `rules.due.kind`."""
    return [name for name, _, _ in _settings(SCHEMA, "")]


def _sections() -> Iterator[str]:
    for name, found, required in _settings(SCHEMA, ""):
        if "." not in name:
            title = f"[[{name}]]" if name in ("rules", "targets") else f"[{name}]"
            yield f"## {title}\n\n{_description(found)}\n"
            continue
        yield f"### {name}\n\n{_description(found)}\n"
        yield f"{_type(found)}; {_default(found, required)}.{_example(found)}\n"


def _settings(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    for key, found in table["properties"].items():
        yield prefix + key, found, key in table.get("required", [])
        reference = found.get("$ref") or found.get("items", {}).get("$ref")
        if reference:
            inner = SCHEMA["$defs"][reference.rpartition("/")[2]]
            yield from _settings(inner, f"{prefix}{key}.")


def _description(found: dict[str, Any]) -> str:
    """Return the setting's own line, which pydantic drops where the table's says the same."""
    own = (
        found.get("description") or SCHEMA["$defs"][found["$ref"].rpartition("/")[2]]["description"]
    )
    return str(own)


def _type(found: dict[str, Any]) -> str:
    if "enum" in found:
        return "One of " + ", ".join(f"`{toml_text(one)}`" for one in found["enum"])
    if "const" in found:
        return f"Only `{toml_text(found['const'])}`"
    if "ms)" in found.get("pattern", ""):
        return "Duration"
    if "any" in found.get("pattern", ""):
        return "Row range"
    if found.get("type") == "array":
        kinds = {"string": "List of texts", "integer": "List of whole numbers"}
        return kinds.get(found["items"].get("type"), "List of tables")
    return {
        "string": "Text",
        "integer": f"Whole number{_range(found)}",
        "number": f"Number{_range(found)}",
        "boolean": "`true` or `false`",
    }.get(found.get("type", ""), "Table")


def _range(found: dict[str, Any]) -> str:
    least, most = found.get("minimum"), found.get("maximum")
    if most is None:
        return f", {least} or more"
    return f", {least} to {most}"


def _default(found: dict[str, Any], required: bool) -> str:
    if required:
        return "required"
    return f"default `{toml_text(found['default'])}`" if "default" in found else "absent by default"


def _example(found: dict[str, Any]) -> str:
    examples = ", ".join(f"`{toml_text(one)}`" for one in found.get("examples", []))
    return f" Example: {examples}" if examples else ""


if __name__ == "__main__":
    Path(PAGE).write_text(page(), encoding="utf-8")
