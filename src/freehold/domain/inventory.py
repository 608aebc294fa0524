"""Holds of our own, for those without a table: tenants, units, stays, and the rule over them.

*Invariants*: instants are aware; a stay is half-open and never empty; a unit has at most one held or
confirmed hold at any instant (the database refuses the second).
*Not here*: expiring (the rule of `built_in_rule` goes the way of every rule), SQL (`adapters/sql`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from freehold.domain.due import DueKind, DueSpec
from freehold.domain.errors import UnknownUnit, UsageError
from freehold.domain.rules import (
    Condition,
    Now,
    Predicate,
    Rule,
    SetColumns,
    TableName,
    TenantSource,
    Test,
)

RULE_NAME = "holds"
TEXT_LENGTH_MAX = 200  # characters; ids, names and references stand in indexes
ID_MAX = 2**63 - 1  # of a bigint
REPORT_HOUR_MAX = 23
_UNWRITABLE = re.compile(r"[\0\ud800-\udfff]")  # NUL, and what no encoding can write
_TABLES = {"postgres": TableName("hold", "freehold"), "sqlite": TableName("freehold_hold")}


class HoldStatus(StrEnum):
    """Where a hold of our own stands; only HELD and CONFIRMED keep others out."""

    HELD = "held"
    CONFIRMED = "confirmed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Stay:
    """The time that a hold takes of its unit: from `starts_at` up to, but not with, `ends_at`.

    Both are kept in UTC: Python compares two times of one zone by their clock faces, and calls two
    of different zones unequal within the hour that a clock shows twice.
    """

    starts_at: datetime
    ends_at: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts_at", _in_utc("starts_at", self.starts_at))
        object.__setattr__(self, "ends_at", _in_utc("ends_at", self.ends_at))
        if self.starts_at >= self.ends_at:
            raise UsageError("A stay must end after it starts; give a later end.")


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whom units and reports belong to.

    Attributes:
        zone: a name of the tz database; None for the installation's.
        report_hour: local hour of the daily report, 0 to 23; None for the installation's.
        recipients: mail addresses of the daily report.
        locale: a BCP 47 name; None for the installation's.
    """

    id: str
    name: str
    zone: str | None = None
    report_hour: int | None = None
    recipients: tuple[str, ...] = ()
    locale: str | None = None
    active: bool = True

    def __post_init__(self) -> None:
        check_text("tenant id", self.id)
        check_text("tenant name", self.name)
        if self.report_hour is not None and not 0 <= self.report_hour <= REPORT_HOUR_MAX:
            raise UsageError("A report hour is a number from 0 to 23.")


@dataclass(frozen=True, slots=True)
class NewUnit:
    """A unit about to be written; a tenant's units have different names."""

    tenant: str
    name: str
    active: bool = True

    def __post_init__(self) -> None:
        check_text("unit name", self.name)


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that can be held: a room, a seat, a pitch. No new holds while it is not active."""

    id: int
    tenant: str
    name: str
    active: bool


@dataclass(frozen=True, slots=True)
class NewHold:
    """A hold about to be granted.

    Attributes:
        stay: None for the unit itself, for ever.
        token: the hold token of this granting.
        reference: the caller's own key, unique in its tenant: it makes granting idempotent.
    """

    tenant: str
    unit_id: int
    hold_until: datetime
    token: UUID
    stay: Stay | None = None
    reference: str | None = None

    def __post_init__(self) -> None:
        _in_utc("hold_until", self.hold_until)
        check_text("tenant id", self.tenant)
        if isinstance(self.unit_id, bool) or not 0 <= self.unit_id <= ID_MAX:
            raise UnknownUnit("No unit has this id; see `freehold unit list`.")
        if self.reference is not None:
            check_text("reference", self.reference)


@dataclass(frozen=True, slots=True)
class ImportedHold:
    """A hold that was granted elsewhere, about to be taken over; its unit is told by name."""

    tenant: str
    unit: str
    hold_until: datetime
    token: UUID
    reference: str
    stay: Stay | None = None
    status: HoldStatus = HoldStatus.HELD

    def __post_init__(self) -> None:
        _in_utc("hold_until", self.hold_until)
        check_text("tenant id", self.tenant)
        check_text("unit name", self.unit)
        check_text("reference", self.reference)


@dataclass(frozen=True, slots=True)
class Renewal:
    """More time for a hold, under a new token."""

    token: UUID
    new_token: UUID
    hold_until: datetime

    def __post_init__(self) -> None:
        _in_utc("hold_until", self.hold_until)


@dataclass(frozen=True, slots=True)
class Hold:
    """One row of our own table of holds.

    Attributes:
        identity: packed texts of due and token, exactly as the database writes them.
    """

    id: int
    tenant: str
    unit_id: int
    status: HoldStatus
    stay: Stay | None
    hold_until: datetime
    token: UUID
    reference: str | None
    created_at: datetime
    changed_at: datetime
    expired_at: datetime | None
    identity: str

    @property
    def keeps_out(self) -> bool:
        """Tell whether the database refuses others beside it, lapsed or not."""
        return self.status in (HoldStatus.HELD, HoldStatus.CONFIRMED)

    def is_live(self, now: datetime) -> bool:
        """Tell whether it keeps others out by right: confirmed, or held and not yet due."""
        if self.status is HoldStatus.HELD:
            return now < self.hold_until
        return self.status is HoldStatus.CONFIRMED


def built_in_rule(dialect: str, **options: Any) -> Rule:
    """Return the rule over our own table of holds.

    Args:
        dialect: `postgres` or `sqlite`.
        options: fields of `Rule` that an installation may choose: name, schedule, mode, promise,
            companions and so on; the mapping itself is ours.
    """
    sqlite = dialect == "sqlite"
    kind = DueKind.NAIVE if sqlite else DueKind.INSTANT
    mapping: dict[str, Any] = {
        "table": _TABLES[dialect],
        "key": ("id",),
        "held": _status(HoldStatus.HELD),
        "due": DueSpec("hold_until", kind, "UTC" if sqlite else None),
        "action": SetColumns((("status", HoldStatus.EXPIRED.value), ("expired_at", Now()))),
        "tenant": TenantSource("tenant"),
        "fence": ("hold_token",),
        "confirmed": _status(HoldStatus.CONFIRMED),
        "cancelled": _status(HoldStatus.CANCELLED),
        "carry": ("unit_id", "reference", "starts_at", "ends_at"),
        "one_holder": True,
        "unit": "unit_id",
    }
    return Rule(**{"name": RULE_NAME, **options, **mapping})


def is_built_in(rule: Rule) -> bool:
    """Tell whether a rule is the one over our own table of holds, whatever its name."""
    return rule.table in _TABLES.values() and rule.unit == "unit_id"


def _status(status: HoldStatus) -> Predicate:
    return Predicate(((Condition("status", Test.EQUALS, (status.value,)),),))


def _in_utc(name: str, instant: datetime) -> datetime:
    """Return the same instant in UTC.

    Raises:
        UsageError: it is a bare local time, or beyond what Python can say in UTC.
    """
    if instant.utcoffset() is None:
        raise UsageError(f"{name} must carry a time zone; a bare local time can mean two instants.")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise UsageError(f"{name} is outside the years 1 to 9999 in UTC.") from None


def check_text(name: str, text: object) -> None:
    """Refuse what an index or a text column cannot hold.

    Raises:
        UsageError: says what it may be.
    """
    fits = isinstance(text, str) and 0 < len(text) <= TEXT_LENGTH_MAX
    if not fits or _UNWRITABLE.search(str(text)):
        raise UsageError(
            f"A {name} is a text of 1 to {TEXT_LENGTH_MAX} characters, none of them NUL or half a "
            "surrogate pair."
        )
