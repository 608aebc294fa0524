"""How the two dialects spell one value, one text, one comparison of a customer's column.

*Invariants*: texts are lossless and the same for equal values; a configured literal reaches
PostgreSQL as a bound parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from freehold.adapters.sql.catalogue import Column, quote
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.rules import Literal

_INTEGERS = ("smallint", "integer", "bigint")
_COMPARED_AS_TEXT = ("json", "xml", "real", "double precision")


class Spelling(Protocol):
    """What `mapping` asks of a dialect; every method returns SQL."""

    true: str
    false: str
    null_text: str

    def text(self, column: Column) -> str:
        """Return the column's value as lossless text."""
        ...

    def pack(self, texts: Sequence[str]) -> str:
        """Return a JSON array of texts, as `domain.names.pack` writes it."""
        ...

    def image(self, named: Sequence[tuple[str, str]]) -> str:
        """Return a JSON object of texts by column name."""
        ...

    def comparable(self, column: Column) -> str:
        """Return the column as it stands on the left of a comparison."""
        ...

    def value(self, column: Column, literal: Literal, parameters: dict[str, Any]) -> str:
        """Return a configured literal in the column's type; may add to the parameters."""
        ...

    def surely(self, predicate: str) -> str:
        """Return the predicate with NULL read as false."""
        ...

    def now(self, column: Column, due: DueSpec) -> str:
        """Return the instant of release in the column's own kind, as the due column writes it."""
        ...

    def text_parameter(self, name: str) -> str:
        """Return a text parameter."""
        ...

    def key_left(self, column: Column) -> str:
        """Return a key column bare, so that its index serves."""
        ...

    def key_part(self, column: Column, source: str, place: int, count: int) -> str:
        """Return one key value out of key text, in the column's type."""
        ...

    def key_equals(self, left: str, value: str) -> str:
        """Return a comparison of a key column that is served by its index, row by row."""
        ...

    def due_bound(self, column: Column, kind: DueKind, name: str) -> str:
        """Return a due bound in the column's type."""
        ...

    def due_cursor(self, column: Column) -> str:
        """Return the cursor's due value in the column's type."""
        ...

    def due_instant(self, column: Column, due: DueSpec) -> str | None:
        """Return a due value within its bounds as an instant; None where that may raise or differ."""
        ...

    def unreadable(self, column: Column, kind: DueKind) -> str:
        """Return ` or ...` for values that no bound can find; empty where types forbid them."""
        ...

    def tenant_out(self, source: str) -> str:
        """Return a tenant's value as it travels, lossless."""
        ...

    def tenant_value(self, column: Column, source: str) -> str:
        """Return a value that travelled in the column's type."""
        ...


def _cast_type(column: Column) -> str:
    return "bigint" if column.type in _INTEGERS else column.type


class PostgresSpelling:
    """Values travel as text and are cast to the column's own type."""

    true = "true"
    false = "false"
    null_text = "null::text"

    def text(self, column: Column) -> str:
        """Cast to text; the pinned settings make it lossless."""
        return f"h.{quote(column.name)}::text"

    def pack(self, texts: Sequence[str]) -> str:
        """Build the array through text[]."""
        return f"array_to_json(array[{', '.join(texts)}]::text[])::text" if texts else "'[]'"

    def image(self, named: Sequence[tuple[str, str]]) -> str:
        """Build the object of two text arrays: half the time of json_build_object."""
        names = (f"'{name.replace(chr(39), chr(39) * 2)}'" for name, _ in named)
        texts = (text for _, text in named)
        arrays = f"array[{', '.join(names)}], array[{', '.join(texts)}]::text[]"
        return f"json_object({arrays})" if named else "'{}'::json"

    def comparable(self, column: Column) -> str:
        """Compare json, xml and float as text, all else in its own type."""
        if column.type in _COMPARED_AS_TEXT:
            return self.text(column)
        return f"h.{quote(column.name)}"

    def value(self, column: Column, literal: Literal, parameters: dict[str, Any]) -> str:
        """Bind the literal untyped and cast it: a constant by the time it is planned.

        Through text it would not be one, and an enum's partial index could not be proven.
        """
        name = f"value_{len(parameters)}"
        parameters[name] = _text_of(literal)
        kind = "text" if column.type in _COMPARED_AS_TEXT else _cast_type(column)
        return f":{name}::{kind}"

    def surely(self, predicate: str) -> str:
        """Read NULL as false."""
        return f"coalesce({predicate}, false)"

    def now(self, column: Column, due: DueSpec) -> str:
        """Turn `:now` into the column's type; local kinds are UTC unless the rule names a zone."""
        if column.type in _INTEGERS or column.category == "N":
            factor = " * 1000" if due.kind is DueKind.EPOCH_MILLIS else ""
            return f"floor(extract(epoch from :now::timestamptz){factor})"
        if column.type.startswith("timestamp without") or column.type == "date":
            literal = (due.zone or "UTC").replace("'", "''")
            return f"(:now::timestamptz at time zone '{literal}')::{column.type}"
        if column.category == "S":
            return """to_char(:now::timestamptz, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
        return ":now::timestamptz"

    def text_parameter(self, name: str) -> str:
        """Bind as text."""
        return f":{name}::text"

    def key_left(self, column: Column) -> str:
        """Leave the column bare."""
        return f"h.{quote(column.name)}"

    def key_part(self, column: Column, source: str, place: int, count: int) -> str:
        """Cast the text, or one element of the JSON array."""
        text = source if count == 1 else f"({source}::json ->> {place})"
        return f"{text}::{_cast_type(column)}"

    def key_equals(self, left: str, value: str) -> str:
        """Write it so that no hash or merge join serves: one would read every held row."""
        return f"{left} = any (array[{value}])"

    def due_bound(self, column: Column, kind: DueKind, name: str) -> str:
        """Cast the bound to the column's type."""
        return f":{name}::text::{_cast_type(column)}"

    def due_cursor(self, column: Column) -> str:
        """Cast the cursor to the column's type."""
        return f":cursor_due::text::{_cast_type(column)}"

    def due_instant(self, column: Column, due: DueSpec) -> str | None:
        """Serve instants, and local times of UTC, which never jump."""
        bare = f"h.{quote(column.name)}"
        if (due.kind, column.type) == (DueKind.INSTANT, "timestamp with time zone"):
            return bare
        is_wall = (due.kind, column.type) == (DueKind.NAIVE, "timestamp without time zone")
        return f"({bare} at time zone 'UTC')" if is_wall and due.zone == "UTC" else None

    def unreadable(self, column: Column, kind: DueKind) -> str:
        """Leave it to the types; an infinity lies above every bound and is never due."""
        return ""

    def tenant_out(self, source: str) -> str:
        """Cast to text."""
        return f"{source}::text"

    def tenant_value(self, column: Column, source: str) -> str:
        """Cast to the column's type."""
        return f"{source}::text::{_cast_type(column)}"


class SqliteSpelling:
    """Values keep their storage class, and literals stand in the text.

    A bound parameter cannot prove a partial index here, and there is no statement log to leak into.
    """

    true = "1"
    false = "0"
    null_text = "null"

    def __init__(self, separator: str = " ") -> None:
        self.separator = separator

    def text(self, column: Column) -> str:
        """Write reals with 17 digits and blobs in hex; all else as it reads."""
        bare = f"h.{quote(column.name)}"
        return (
            f"(case typeof({bare}) when 'real' then printf('%!.17g', {bare}) "
            f"when 'blob' then hex({bare}) else cast({bare} as text) end)"
        )

    def pack(self, texts: Sequence[str]) -> str:
        """Build the array."""
        return f"json_array({', '.join(texts)})"

    def image(self, named: Sequence[tuple[str, str]]) -> str:
        """Build the object."""
        pairs = (f"{_literal(name)}, {text}" for name, text in named)
        return f"json_object({', '.join(pairs)})"

    def comparable(self, column: Column) -> str:
        """Leave the column bare."""
        return f"h.{quote(column.name)}"

    def value(self, column: Column, literal: Literal, parameters: dict[str, Any]) -> str:
        """Write the literal into the text."""
        return _literal(literal)

    def surely(self, predicate: str) -> str:
        """Read NULL as false."""
        return f"coalesce({predicate}, 0)"

    def now(self, column: Column, due: DueSpec) -> str:
        """A count for numeric columns, else text in the rule's zone and the table's own shape."""
        if _is_numeric(column):
            seconds = "cast(strftime('%s', :now) as integer)"
            millis = "cast(substr(strftime('%f', :now), 4) as integer)"
            return f"{seconds} * 1000 + {millis}" if due.kind is DueKind.EPOCH_MILLIS else seconds
        time = "" if column.type == "date" else f"{self.separator}%H:%M:%f"
        return f"strftime('%Y-%m-%d{time}', :now_wall)"

    def text_parameter(self, name: str) -> str:
        """Bind as it is."""
        return f":{name}"

    def key_left(self, column: Column) -> str:
        """Leave the column bare."""
        return f"h.{quote(column.name)}"

    def key_part(self, column: Column, source: str, place: int, count: int) -> str:
        """Let the column's affinity turn the text back; a blob's text is hex."""
        text = source if count == 1 else f"json_extract({source}, '$[{place}]')"
        is_blob = any(part in column.type for part in ("blob", "binary"))
        return f"unhex({text})" if is_blob else f"cast({text} as text)"

    def key_equals(self, left: str, value: str) -> str:
        """Compare; the planner has nested loops only."""
        return f"{left} = {value}"

    def due_bound(self, column: Column, kind: DueKind, name: str) -> str:
        """Bring textual bounds into the table's own shape."""
        if kind is DueKind.NAIVE and self.separator == "T":
            return f"replace(:{name}, ' ', 'T')"
        return f":{name}"

    def due_cursor(self, column: Column) -> str:
        """Numeric kinds compare as numbers."""
        return "cast(:cursor_due as numeric)" if _is_numeric(column) else ":cursor_due"

    def due_instant(self, column: Column, due: DueSpec) -> str | None:
        """Serve none: only Python reads dues here."""
        return None

    def unreadable(self, column: Column, kind: DueKind) -> str:
        """Find what does not begin like a date, or is no number: it sorts above every bound."""
        bare = f"h.{quote(column.name)}"
        if kind in (DueKind.EPOCH_SECONDS, DueKind.EPOCH_MILLIS):
            return f" or typeof({bare}) not in ('integer', 'real')"
        return f" or {bare} not glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"

    def tenant_out(self, source: str) -> str:
        """Write text in hex, for it need not be UTF-8; other classes travel as they are."""
        return f"case typeof({source}) when 'text' then hex({source}) else {source} end"

    def tenant_value(self, column: Column, source: str) -> str:
        """Turn hex back; no cast to the column's type, which need not be that of the value."""
        text = f"cast(unhex({source}) as text)"
        return f"(case typeof({source}) when 'text' then {text} else {source} end)"


def _is_numeric(column: Column) -> bool:
    """Tell whether SQLite lets the column's declared type stand for numbers."""
    return any(part in column.type for part in ("int", "real", "num", "floa", "doub", "dec"))


def _text_of(literal: Literal) -> str | None:
    if isinstance(literal, bool):
        return "true" if literal else "false"
    return None if literal is None else str(literal)


def _literal(literal: Literal) -> str:
    if isinstance(literal, bool):
        return "1" if literal else "0"
    if isinstance(literal, int | float):
        return repr(literal)
    return "null" if literal is None else "'" + str(literal).replace("'", "''") + "'"
