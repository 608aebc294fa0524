"""CSV as it comes: records out of bytes, in bounded memory, and each bad one on its own.

*Invariants*: whatever the bytes, every line of the source is part of exactly one record, good or
bad; a quote that is never closed spoils its own line and not the rest of the file.
*Not here*: what the columns mean (`csv_table`).
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import IO

RECORD_BYTES = 65_536  # far above any booking; a record may span lines inside quotes
_BOM = b"\xef\xbb\xbf"
_UNQUOTED = "a quote is opened and not closed, or stands inside a field without quotes around it"


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `line` is the number of its first line, from 1."""

    line: int
    fields: list[str]
    raw: bytes


@dataclass(frozen=True, slots=True)
class BadRecord:
    """Lines that are no record, and why; of a very long line `raw` is the beginning."""

    line: int
    reason: str
    raw: bytes


def records(source: IO[bytes]) -> Iterator[Record | BadRecord]:
    """Read records one by one; blank lines are passed over, a byte order mark is dropped."""
    lines = _Lines(source)
    while (first := lines.take()) is not None:
        if len(first) > RECORD_BYTES:
            yield BadRecord(lines.number, f"longer than {RECORD_BYTES} bytes", first[:200])
        elif first.strip(b"\r\n"):
            yield _record(lines, first)


class _Lines:
    """Lines of the source, with those that were read ahead and given back."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._ahead: deque[bytes] = deque()
        self.number = 0

    def take(self) -> bytes | None:
        """Return the next line and count it; of one that is too long, the beginning."""
        line = self._ahead.popleft() if self._ahead else self._read()
        if line:
            self.number += 1
        return line or None

    def give_back(self, lines: list[bytes]) -> None:
        """Put lines back to be taken again, in their order."""
        self._ahead.extendleft(reversed(lines))
        self.number -= len(lines)

    def _read(self) -> bytes:
        line = self._source.readline(RECORD_BYTES + 1)
        if self.number == 0:
            line = line.removeprefix(_BOM)
        last = line
        while len(last) > RECORD_BYTES and not last.endswith(b"\n"):
            last = self._source.readline(RECORD_BYTES + 1)
        return line


def _record(lines: _Lines, first: bytes) -> Record | BadRecord:
    number = lines.number
    try:
        fields = _fields(first)
    except ValueError as error:
        return BadRecord(number, str(error), first)
    if fields is not None:
        return Record(number, fields, first)
    return _joined(lines, number, first)


def _joined(lines: _Lines, number: int, first: bytes) -> Record | BadRecord:
    """Take further lines until the open quote is closed; give them back if it never is."""
    taken: list[bytes] = []
    raw, is_open = first, first.count(b'"') % 2 == 1
    while is_open and len(raw) <= RECORD_BYTES and (line := lines.take()) is not None:
        taken.append(line)
        raw += line
        is_open = line.count(b'"') % 2 == 0
    try:
        fields = None if is_open or len(raw) > RECORD_BYTES else _fields(raw)
    except ValueError:
        fields = None
    if fields is not None:
        return Record(number, fields, raw)
    lines.give_back(taken)
    return BadRecord(number, _UNQUOTED, first)


def _fields(raw: bytes) -> list[str] | None:
    """Return the fields of one record, or None where the quotes do not fit.

    Raises:
        ValueError: the bytes are no text that a database could keep.
    """
    if b"\0" in raw:
        raise ValueError("holds a NUL character")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise ValueError("is no UTF-8 text") from None
    bare = text.rstrip("\r\n")
    if '"' not in bare:
        if "\r" in bare:
            raise ValueError("holds a carriage return inside the line")
        return bare.split(",")
    try:
        found = list(csv.reader(StringIO(bare, newline=""), strict=True))
    except csv.Error:
        return None
    return found[0] if len(found) == 1 else None
