"""A table of the customer's that names the tenants: which column says what, and how a row is read.

*Invariants*: a value that cannot be used is an error of its row alone, in a clause that names the
column and never repeats the value.
*Not here*: reading the file (`freehold.settings`), what becomes of the rows
(`application.tenants_sync`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from freehold.domain.addresses import read_addresses
from freehold.domain.errors import UsageError
from freehold.domain.inventory import check_text
from freehold.domain.inventory_text import read_locale, read_recipients, read_zone
from freehold.domain.rules import Predicate, TableName

_HOUR = re.compile(r"(\d{1,2})(:00(:00)?)?", re.ASCII)
HOURS_A_DAY = 24


@dataclass(frozen=True, slots=True)
class TenantMapping:
    """Where tenants are read from; what has no column is kept as it is in Freehold.

    Attributes:
        id: the column whose text is what the holds name their tenant by.
        recipients: a column of text with addresses, a JSON array, or an array.
        active: what a row of a tenant in business looks like; None: every row.
        every: how often the table is read.
    """

    table: TableName
    id: str
    name: str | None = None
    zone: str | None = None
    report_hour: str | None = None
    recipients: str | None = None
    locale: str | None = None
    active: Predicate | None = None
    every: timedelta = timedelta(minutes=10)

    @property
    def fields(self) -> Mapping[str, str]:
        """Return the columns that are read as values, by field; the id is none of them."""
        named = {
            "name": self.name,
            "zone": self.zone,
            "report_hour": self.report_hour,
            "recipients": self.recipients,
            "locale": self.locale,
        }
        return {field: column for field, column in named.items() if column is not None}

    @property
    def columns(self) -> tuple[str, ...]:
        """Return all columns, each once."""
        tested = self.active.columns if self.active is not None else ()
        return tuple(dict.fromkeys((self.id, *self.fields.values(), *tested)))


@dataclass(frozen=True, slots=True)
class TenantRow:
    """One row of the customer's table, its values as text; None for NULL.

    Attributes:
        values: by field, those that are mapped.
        active: what the mapping's predicate says of it.
    """

    id: str
    values: Mapping[str, str | None]
    active: bool


def read_row(row: TenantRow) -> dict[str, Any]:
    """Read what a row says of a tenant, by the fields of `Tenant`.

    An empty name is the id; any other empty value is the installation's, or no recipient.

    Raises:
        ValueError: a value cannot be used; the clause names the field.
    """
    found: dict[str, Any] = {"id": _text("tenant id", row.id), "active": row.active}
    for field, value in row.values.items():
        found[field] = _READERS[field](value or "")
    if "name" in found:
        found["name"] = _text("tenant name", found["name"] or row.id)
    return found


def _text(name: str, text: str) -> str:
    try:
        check_text(name, text)
    except UsageError as error:
        raise ValueError(str(error).rstrip(".")) from None
    return text


def _read_hour(text: str) -> int | None:
    if not text.strip():
        return None
    found = _HOUR.fullmatch(text.strip())
    if found is None or int(found[1]) >= HOURS_A_DAY:
        raise ValueError("report_hour must be a whole hour from 0 to 23")
    return int(found[1])


def _read_recipients(text: str) -> tuple[str, ...]:
    if not text.lstrip().startswith("["):
        return read_recipients(text)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str | None) for one in found):
        raise ValueError("recipients must be a JSON array of texts, or addresses with commas")
    try:
        return read_addresses(one.strip() for one in found if one and one.strip())
    except ValueError as error:
        raise ValueError(f"recipients {error}") from None


_READERS: Mapping[str, Any] = {
    "name": str.strip,
    "zone": lambda text: read_zone(text.strip()),
    "report_hour": _read_hour,
    "recipients": _read_recipients,
    "locale": lambda text: read_locale(text.strip().replace("_", "-")),
}
