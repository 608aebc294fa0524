"""Tenants, units and holds of our own, inside one transaction.

*Invariants*: every change of a hold is one conditional statement that compares its token; stays of
one unit never overlap, whoever writes; nothing here commits.
*Not here*: expiring (`ports.holds`, under the built-in rule), the order of steps of a granting
(`application.granting`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from freehold.domain.events import EventType
from freehold.domain.inventory import (
    Hold,
    HoldStatus,
    ImportedHold,
    NewHold,
    NewUnit,
    Renewal,
    Stay,
    Tenant,
    Unit,
)


class Written(StrEnum):
    """What writing one thing did.

    EXISTS: it is there already, just so. DIFFERS: it is there with other values, which stay as they
    are. MISSING: what it belongs to, or is to replace, is not there.
    """

    NEW = "new"
    EXISTS = "exists"
    CHANGED = "changed"
    DIFFERS = "differs"
    MISSING = "missing"


class ImportRefusal(StrEnum):
    """Why one row of an import stays out."""

    UNKNOWN_UNIT = "there is no such unit"
    OTHER_HOLD = "its reference names another hold already"
    OVERLAP = "its stay overlaps another of the same unit"


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one row: NEW, EXISTS (a rerun), or refused for a reason."""

    written: Written
    refusal: ImportRefusal | None = None


class Tenants(Protocol):
    """The tenants."""

    def add(self, tenants: Sequence[Tenant]) -> Sequence[Written]:
        """Write tenants that are not there yet; one answer each: NEW, EXISTS or DIFFERS.

        Again: EXISTS. An id that stands twice in one call counts in order.
        """
        ...

    def set(self, tenants: Sequence[Tenant]) -> Sequence[Written]:
        """Write tenants whole, there or not; one answer each: NEW, EXISTS or CHANGED."""
        ...

    def find(self, after_id: str, limit: int) -> Sequence[Tenant]:
        """Return tenants in id order, behind `after_id`; the empty text is before all."""
        ...

    def read(self, ids: Sequence[str]) -> Sequence[Tenant]:
        """Return those of the tenants that are there, in id order."""
        ...

    def lock(self, ids: Sequence[str]) -> Sequence[Tenant]:
        """Read tenants as they are then, and keep others from changing them until the end.

        Units and holds may be written meanwhile.
        """
        ...


class Units(Protocol):
    """The units."""

    def add(self, units: Sequence[NewUnit]) -> Sequence[Written]:
        """Write units that are not there yet; NEW, EXISTS, DIFFERS, or MISSING without its tenant."""
        ...

    def set(self, units: Sequence[Unit]) -> Sequence[Written]:
        """Write name and active of units by tenant and id; EXISTS, CHANGED or MISSING.

        Raises:
            RowRefused: another unit of the tenant has that name; the transaction is lost.
        """
        ...

    def find(self, tenant: str | None, after_id: int, limit: int) -> Sequence[Unit]:
        """Return units in id order, behind `after_id`; of one tenant, or of all for None."""
        ...

    def read(self, ids: Sequence[int]) -> Sequence[Unit]:
        """Return those of the units that are there, in id order."""
        ...

    def named(self, tenant: str, names: Sequence[str]) -> Sequence[Unit]:
        """Return those of a tenant's units that have one of the names, in id order."""
        ...


class OwnHolds(Protocol):
    """The holds of our own table. A list of holds is in id order unless said otherwise."""

    def place(self, new: NewHold) -> Hold | None:
        """Write a held hold, unless something is in its way.

        What may be in the way: an overlapping held or confirmed hold, lapsed or not; a hold of the
        same reference; a unit that is not there, not the tenant's, or not active; a tenant that is
        not active. None never harms the caller's transaction. Waits for a transaction that is
        placing, or ending, an overlapping hold.

        Raises:
            DatabaseBusy: a deadlock or the caller's lock time-out; the transaction is lost.
        """
        ...

    def in_way(self, unit_id: int, stay: Stay | None, limit: int) -> Sequence[Hold]:
        """Return held and confirmed holds that overlap the stay, in the order of their ends."""
        ...

    def lock(self, hold_ids: Sequence[int]) -> Sequence[Hold]:
        """Lock holds in id order, waiting for others, and return them as they are then."""
        ...

    def renew(self, renewal: Renewal) -> Hold | None:
        """Give a hold that is held and not due a new end and a new token; None when it is not so."""
        ...

    def confirm(self, token: UUID) -> Hold | None:
        """Confirm a hold that is held and not due; None when it is not so.

        What expired is never flipped back.
        """
        ...

    def cancel(self, token: UUID) -> Hold | None:
        """Cancel a hold that is held, lapsed or not, or confirmed; None when it is not so."""
        ...

    def tell(self, event: EventType, rule: str, hold: Hold) -> None:
        """Write the event of a change that this transaction made to the outbox, as kept.

        Its operation id is drawn from the operations' own sequence; no operation is behind it.
        """
        ...

    def still_held(self, tokens: Sequence[UUID]) -> set[UUID]:
        """Return those of the tokens whose hold is held and not due at this transaction's now."""
        ...

    def read(self, hold_ids: Sequence[int]) -> Sequence[Hold]:
        """Return those of the holds that are there."""
        ...

    def granted(self, tokens: Sequence[UUID]) -> Sequence[Hold]:
        """Return the holds that have one of the tokens now."""
        ...

    def referenced(self, tenant: str, references: Sequence[str]) -> Sequence[Hold]:
        """Return the holds of a tenant that have one of the references."""
        ...

    def find(
        self,
        after_id: int,
        limit: int,
        *,
        tenant: str | None = None,
        unit_id: int | None = None,
        statuses: Sequence[HoldStatus] = (),
    ) -> Sequence[Hold]:
        """Return holds in id order, behind `after_id`.

        Args:
            tenant: of one tenant, or of all.
            unit_id: of one unit; goes before `tenant`.
            statuses: with these only; empty for all. Needs a tenant or a unit.

        Raises:
            UsageError: statuses without tenant and unit: no index serves that.
        """
        ...

    def take_over(self, rows: Sequence[ImportedHold]) -> Sequence[Imported]:
        """Write holds that were granted elsewhere; one answer each, in order.

        One refused row refuses only itself; rows of one call count in order. No event is written:
        nothing was granted here. Inactive units and tenants take imports.

        Again: EXISTS for every row, since its reference is there.
        """
        ...
