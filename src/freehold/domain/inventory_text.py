"""Tenants, units and holds as a person or a file writes them: texts become values, or say why not.

*Invariants*: a reader raises `ValueError` with a clause that names the column and never repeats
its text, which may be guest data.
*Not here*: files (`entrypoints.cli.csv_table`), what is stored already (`application.takeover`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from uuid import UUID

from freehold.domain.addresses import read_addresses
from freehold.domain.due_walls import check_zone
from freehold.domain.errors import UsageError
from freehold.domain.instants import read_instant
from freehold.domain.inventory import HoldStatus, ImportedHold, NewUnit, Stay, Tenant

Values = Mapping[str, str]  # by column; an absent column and an empty text mean the same

REQUIRED = {"tenant": ("id",), "unit": ("tenant", "name"), "hold": ("tenant", "unit", "hold_until")}
OPTIONAL = {
    "tenant": ("name", "zone", "report_hour", "recipients", "locale", "active"),
    "unit": ("active",),
    "hold": ("starts_at", "ends_at", "reference", "status", "token"),
}
DEFAULT_ZONE = "UTC"  # of tenants that name none
_LINE_KEY = "line:"  # begins a reference that was made from a line's content
_LINE_DIGITS = 32  # of SHA-256, in hex

_LOCALE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_YES, _NO = ("", "true", "yes", "1"), ("false", "no", "0")


def read_tenant(values: Values) -> Tenant:
    """Read a tenant; without a name it is called by its id."""
    identity = values.get("id", "")
    return Tenant(
        id=identity,
        name=values.get("name") or identity,
        zone=read_zone(values.get("zone")),
        report_hour=_read_hour(values.get("report_hour", "")),
        recipients=read_recipients(values.get("recipients", "")),
        locale=read_locale(values.get("locale")),
        active=_read_active(values.get("active", "")),
    )


def read_unit(values: Values) -> NewUnit:
    """Read a unit."""
    return NewUnit(
        values.get("tenant", ""), values.get("name", ""), _read_active(values.get("active", ""))
    )


def read_hold(values: Values, zone: str, draw: Callable[[], UUID]) -> ImportedHold:
    """Read a hold that was granted elsewhere.

    Args:
        zone: of times without an offset.
        draw: makes the hold token where the line names none.
    """
    return ImportedHold(
        tenant=values.get("tenant", ""),
        unit=values.get("unit", ""),
        hold_until=_read_time("hold_until", values.get("hold_until", ""), zone),
        token=_read_token(values.get("token", "")) or draw(),
        reference=values.get("reference") or line_reference(values),
        stay=read_stay(values.get("starts_at"), values.get("ends_at"), zone),
        status=_read_status(values.get("status", "")),
    )


def line_reference(values: Values) -> str:
    """Return a reference made from the line's known columns: the same line gets the same one."""
    text = "\n".join(f"{name}={value}" for name, value in sorted(values.items()) if value)
    return _LINE_KEY + hashlib.sha256(text.encode()).hexdigest()[:_LINE_DIGITS]


def read_stay(start: str | None, end: str | None, zone: str) -> Stay | None:
    """Read a stay; two absent ends mean the unit itself, for ever."""
    if not start and not end:
        return None
    if not start or not end:
        raise ValueError("starts_at and ends_at must both be there, or neither")
    stay = _read_time("starts_at", start, zone), _read_time("ends_at", end, zone)
    if stay[0] >= stay[1]:
        raise ValueError("ends_at must be later than starts_at")
    return Stay(*stay)


def read_zone(text: str | None) -> str | None:
    """Check a zone's name; an empty text is none."""
    try:
        check_zone(text or DEFAULT_ZONE)
    except ValueError:
        raise ValueError("zone must be a name such as Europe/Berlin or UTC") from None
    return text or None


def read_recipients(text: str) -> tuple[str, ...]:
    """Read mail addresses with commas, semicolons or blanks between them."""
    found = re.split(r"[\s,;]+", text.strip()) if text.strip() else ()
    try:
        return read_addresses(found)
    except ValueError as error:
        raise ValueError(f"recipients {error}; blanks or semicolons stand between two") from None


def read_locale(text: str | None) -> str | None:
    """Check a locale's shape; an empty text is none."""
    if text and not _LOCALE.fullmatch(text):
        raise ValueError("locale must be a name such as en, de-AT or pt-BR")
    return text or None


def _read_time(column: str, text: str, zone: str) -> datetime:
    try:
        return read_instant(text, zone)
    except ValueError as error:
        raise ValueError(f"{column} {'is empty' if not text else error}") from None


def _read_token(text: str) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        raise ValueError("token must be a UUID") from None


def _read_status(text: str) -> HoldStatus:
    try:
        return HoldStatus(text.lower() or HoldStatus.HELD)
    except ValueError:
        raise ValueError(f"status must be one of {', '.join(HoldStatus)}") from None


def _read_hour(text: str) -> int | None:
    if text and not (text.isascii() and text.isdigit() and len(text) <= 2):  # noqa: PLR2004
        raise ValueError("report_hour must be a number from 0 to 23")
    return int(text) if text else None


def _read_active(text: str) -> bool:
    if text.lower() not in (*_YES, *_NO):
        raise ValueError("active must be true or false")
    return text.lower() in _YES


def clause(error: ValueError | UsageError) -> str:
    """Return what is wrong, without the full stop of a sentence."""
    return str(error).removesuffix(".")
