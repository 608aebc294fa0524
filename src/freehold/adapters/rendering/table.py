"""The attached table: every listed release as CSV (RFC 4180), for people with a spreadsheet.

It begins with a byte order mark: without one Excel reads UTF-8 as the machine's old code page, and
every name with an accent is spoilt; all else that reads CSV skips it. The comma is RFC 4180's; where
a spreadsheet wants semicolons, its import asks. Instants are RFC 3339 with the tenant's own offset.

*Invariants*: no cell of text is a formula in any spreadsheet; a number is a number.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata

from freehold.adapters.rendering.shown import clean
from freehold.adapters.rendering.texts import Wording
from freehold.domain.facts import Facts, ReleasedItem

NAME = "released-holds-{date}.csv"
COLUMNS = ("rule", "unit", "hold_key", "due_at", "released_at", "lag_seconds")
_MARK = "\ufeff"
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_STARTS = "=+-@"  # of a formula
_MINUS = "\N{MINUS SIGN}"
_QUOTES = "'\"`\N{REPLACEMENT CHARACTER}"
# A reader with another separator begins a cell in the middle of ours.
_INSIDE = re.compile(r"([,;|][\s'\"`]*)(?=[=+@\uff1d\uff0b\uff20]|[-\uff0d\u2212](?![0-9]))")


def table_of(facts: Facts, wording: Wording) -> bytes:
    """Return the table of the listed releases."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows(_row(item, wording) for item in facts.items)
    return (_MARK + out.getvalue()).encode()


def _row(item: ReleasedItem, wording: Wording) -> tuple[str, ...]:
    return (
        safe(item.rule),
        safe(item.unit or ""),
        safe(item.hold_key),
        wording.local(item.due_at).isoformat(timespec="seconds"),
        wording.local(item.released_at).isoformat(timespec="milliseconds"),
        f"{item.lag_seconds:.3f}",
    )


def safe(text: str) -> str:
    """Return a cell that every spreadsheet shows as text; a plain number stays one."""
    cell = clean(text)
    if _NUMBER.fullmatch(cell):
        return cell
    cell = _INSIDE.sub(r"\1'", cell)
    return f"'{cell}" if _begins_formula(cell) or text[:1] in ("\t", "\r", "\n") else cell


def _begins_formula(cell: str) -> bool:
    """Tell whether the first character that counts begins a formula, its wide forms included."""
    bare = cell.lstrip(_QUOTES + " \N{NO-BREAK SPACE}\N{IDEOGRAPHIC SPACE}")
    first = unicodedata.normalize("NFKC", bare[:1])
    return first in (*_STARTS, _MINUS)
