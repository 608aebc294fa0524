"""A CSV file with a header: known columns are read, all others are passed over unseen.

*Invariants*: no message holds a value of the file; a column that we do not know is never kept.
*Not here*: how lines become records (`csv_records`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import IO

from freehold.domain.errors import UsageError
from freehold.entrypoints.cli.csv_records import BadRecord, Record, records

_CLOSE = 0.8  # a column named nearly like one of ours is a slip of the pen


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the file: the known columns that it has, without blanks around the values."""

    number: int
    values: Mapping[str, str]
    raw: bytes


@dataclass(frozen=True, slots=True)
class Columns:
    """What a file must and may have."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """Return all names, required ones first."""
        return self.required + self.optional


class CsvTable:
    """The lines of one file."""

    def __init__(self, source: IO[bytes], name: str, columns: Columns) -> None:
        """Read the header.

        Raises:
            UsageError: there is none, or it lacks a column or has one twice.
        """
        self._records = records(source)
        self._header = _header(next(self._records, None), name, columns)
        known = [(n, column) for n, column in enumerate(self._header) if column in columns.known]
        self._known = known
        self.ignored_count = len(self._header) - len(known)

    def lines(self) -> Iterator[Line | BadRecord]:
        """Read what follows, bad lines among it."""
        width = len(self._header)
        for one in self._records:
            if isinstance(one, BadRecord):
                yield one
            elif len(one.fields) != width:
                count = len(one.fields)
                reason = f"has {count} field{'s' * (count != 1)} where the header has {width}"
                yield BadRecord(one.line, reason, one.raw)
            else:
                values = {column: one.fields[n].strip() for n, column in self._known}
                yield Line(one.line, values, one.raw)


def _header(first: Record | BadRecord | None, name: str, columns: Columns) -> list[str]:
    wanted = f"the first line must name the columns: {', '.join(columns.required)}" + (
        f" (and may name {', '.join(columns.optional)})" if columns.optional else ""
    )
    if first is None:
        raise UsageError(f"{name} is empty; {wanted}.")
    if isinstance(first, BadRecord):
        raise UsageError(f"{name}, line {first.line}: {first.reason}; {wanted}.")
    found = [one.strip().lower() for one in first.fields]
    missing = [one for one in columns.required if one not in found]
    if missing:
        semicolons = "; separate columns by commas, not semicolons" * (b";" in first.raw)
        raise UsageError(f"{name} has no column {', '.join(missing)}; {wanted}{semicolons}.")
    _check_names(found, name, columns)
    return found


def _check_names(found: Sequence[str], name: str, columns: Columns) -> None:
    absent = [one for one in columns.known if one not in found]
    for column in columns.known:
        if found.count(column) > 1:
            raise UsageError(f"{name} has the column {column} twice; remove one.")
    for column in found:
        if close := get_close_matches(column, absent, n=1, cutoff=_CLOSE):
            raise UsageError(
                f"{name} has a column {column!r}; did you mean {close[0]!r}? Rename or remove it."
            )
