"""Tenants that a table of the customer's names: its rows, and ours that came from there.

*Invariants*: the customer's table is only read; a value there never stops the reading of others.
*Not here*: what a row says (`domain.tenant_mapping`), when too much is gone
(`application.tenants_sync`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from freehold.domain.inventory import Tenant
from freehold.domain.tenant_mapping import TenantRow


class Taken(StrEnum):
    """What became of one tenant of the source. TAKEN_OVER: a person had added it here before."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    TAKEN_OVER = "taken over"


class TenantRows(Protocol):
    """The customer's table under one mapping.

    Raises:
        RuleRefused: the table or a column is not there, or may not be read.
    """

    def find(self, after_id: str | None, limit: int) -> Sequence[TenantRow]:
        """Return rows in the order of the id column, behind an id; None is before all."""
        ...

    def standing(self, ids: Sequence[str]) -> Mapping[str, bool]:
        """Tell of those ids that have a row whether they are active."""
        ...


class SourcedTenants(Protocol):
    """Our own tenants that came from there, inside one transaction."""

    def find(self, after_id: str, limit: int) -> Sequence[str]:
        """Return the ids of active ones in order, behind an id; the empty text is before all."""
        ...

    def among(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that came from there, active or not."""
        ...

    def write(self, tenants: Sequence[Tenant]) -> Sequence[Taken]:
        """Write tenants whole, there or not, as coming from there; one answer each, in order.

        Each id once. Again: SAME.
        """
        ...

    def retire(self, ids: Sequence[str]) -> int:
        """Make those of the ids inactive that came from there; return how many were active."""
        ...
