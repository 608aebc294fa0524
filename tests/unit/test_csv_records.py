"""Records out of bytes: whatever comes, each line is read once, and a bad one spoils only itself."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.domain.errors import UsageError
from freehold.entrypoints.cli.csv_records import RECORD_BYTES, BadRecord, Record, records
from freehold.entrypoints.cli.csv_table import Columns, CsvTable, Line

FIELD = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)
ROWS = st.lists(st.lists(FIELD, min_size=2, max_size=4), max_size=20)
SPICE = st.sampled_from([b'"', b",", b"\n", b"\r\n", b"\0", b"\xff", b"a", '"é"'.encode(), b'""'])
COLUMNS = Columns(("unit", "tenant"), ("reference",))


def read(raw: bytes) -> list[Record | BadRecord]:
    return list(records(io.BytesIO(raw)))


@given(ROWS, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), st.booleans())
def test_what_was_written_is_read(rows: list[list[str]], quoting: int, mark: bool) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting)  # type: ignore[arg-type]
    writer.writerows(rows)
    found = read(text.getvalue().encode("utf-8-sig" if mark else "utf-8"))
    assert [one.fields for one in found if isinstance(one, Record)] == rows
    assert len(found) == len(rows)


@given(st.lists(SPICE, max_size=60).map(b"".join))
def test_any_bytes_are_read_once_and_in_order(raw: bytes) -> None:
    found = read(raw)
    kept = b"".join(line for line in raw.splitlines(keepends=True) if line.strip(b"\r\n"))
    blank_inside = b"".join(one.raw for one in found)
    assert blank_inside.replace(b"\r", b"").replace(b"\n", b"") == kept.replace(b"\r", b"").replace(
        b"\n", b""
    )
    lines = raw.split(b"\n")
    for one in found:
        assert lines[one.line - 1] == one.raw.split(b"\n")[0]


def test_a_quote_that_is_never_closed_spoils_its_own_line() -> None:
    found = read(b'a,b\n1,"open\n' + b"2,fine\n" * 5 + b'3,"two\nlines"\n')
    assert [type(one) for one in found] == [Record, BadRecord, *[Record] * 6]
    assert isinstance(found[1], BadRecord)
    assert (found[1].line, found[1].raw) == (2, b'1,"open\n')
    assert "never" not in found[1].reason
    assert "a quote is opened and not closed" in found[1].reason
    assert isinstance(found[-1], Record)
    assert found[-1] == Record(8, ["3", "two\nlines"], b'3,"two\nlines"\n')


def test_an_open_quote_before_a_long_file_is_looked_at_for_a_bounded_stretch() -> None:
    found = read(b'"open\n' + b"1,2\n" * RECORD_BYTES)
    assert isinstance(found[0], BadRecord)
    assert len(found) == 1 + RECORD_BYTES


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"a\0b,c\n", "holds a NUL character"),
        (b"\xff,c\n", "is no UTF-8 text"),
        (b"a\rb,c\n", "holds a carriage return inside the line"),
        (b'"a"b,c\n', "a quote is opened and not closed"),
        (b"x" * (3 * RECORD_BYTES) + b"\n", f"longer than {RECORD_BYTES} bytes"),
    ],
)
def test_a_bad_line_says_why_and_the_next_is_read(line: bytes, says: str) -> None:
    bad, good = read(line + b"1,2\n")
    assert isinstance(bad, BadRecord)
    assert says in bad.reason
    assert good == Record(2, ["1", "2"], b"1,2\n")


def test_inches_need_no_quotes() -> None:
    assert read(b'5" pipe,2\n') == [Record(1, ['5" pipe', "2"], b'5" pipe,2\n')]


def table(raw: bytes) -> CsvTable:
    return CsvTable(io.BytesIO(raw), "f.csv", COLUMNS)


def test_known_columns_are_read_in_any_order_and_others_are_not() -> None:
    found = table(b" Tenant,guest, unit\nharbour, Ann , 12 \nx\n")
    assert found.ignored_count == 1
    good, bad = found.lines()
    assert isinstance(good, Line)
    assert (good.number, good.values) == (2, {"tenant": "harbour", "unit": "12"})
    assert isinstance(bad, BadRecord)
    assert bad.reason == "has 1 field where the header has 3"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "f.csv is empty; the first line must name the columns: unit, tenant"),
        (b"Ann Smith,12\n", "f.csv has no column unit, tenant"),
        (b"unit;tenant\n1;2\n", "separate columns by commas, not semicolons"),
        (b"unit,unit,tenant\n", "f.csv has the column unit twice; remove one."),
        (b"unit,tenant,refernce\n", "did you mean 'reference'? Rename or remove it."),
        (b"\xff\xfeu\0n\0i\0t\0\n\0", "line 1: holds a NUL character"),
    ],
)
def test_a_bad_header_is_refused_in_a_sentence(raw: bytes, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        table(raw)
    assert says in str(caught.value)
    assert "Ann" not in str(caught.value)
