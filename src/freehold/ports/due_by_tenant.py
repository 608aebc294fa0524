"""Due rows read tenant by tenant, where an index (tenant, due) makes that cheap.

*Not here*: reading in the order of due (`holds`), whose turn it is (`application.turns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from freehold.ports.holds import FoundHold, ScanCursor


@dataclass(frozen=True, slots=True)
class TenantKey:
    """One value of the tenant column; only the adapter that made it can read it.

    Attributes:
        value: None is the tenant of the rows that name none.
    """

    value: str | int | float | bytes | None


@dataclass(frozen=True, slots=True)
class TenantPlace:
    """Where reading one tenant's due rows goes on; `after` of None is the beginning."""

    tenant: TenantKey
    after: ScanCursor | None = None


@dataclass(frozen=True, slots=True)
class TenantsFound:
    """One step of a round over the tenants.

    Attributes:
        due: tenants that may have due rows, in the order of the index.
        end: the tenant behind which the round goes on; None where it is over.
    """

    due: Sequence[TenantKey]
    end: TenantKey | None


class DueByTenant(Protocol):
    """One rule's due rows by tenant. Every method belongs to the transaction it was taken from."""

    def is_served(self) -> bool:
        """Tell whether an index that begins (tenant, due) serves; call nothing else where not.

        Asked of the live catalogue, and again within a minute: an index may come and go.
        """
        ...

    def find_tenants(
        self,
        after: TenantKey | None,
        limit: int,
        since: datetime | None = None,
        behind: ScanCursor | None = None,
    ) -> TenantsFound:
        """Find tenants with due rows, in the order of the index, rows without a tenant first.

        Args:
            after: the tenant where the last step ended; None begins the round.
            limit: at most so many are returned, and 1,000 looked at.
            since: leave out what was due at that instant already; None reads from the beginning.
            behind: leave out what stands at or before that place.
        """
        ...

    def find_due(
        self, places: Sequence[TenantPlace], each: int, limit: int, since: datetime | None = None
    ) -> Sequence[Sequence[FoundHold]]:
        """Read due rows of these tenants, each in the order (due, key), open ones included.

        Args:
            each: at most so many rows of one tenant.
            limit: at most so many rows in all.
            since: as in `find_tenants`.

        Returns:
            One list for each place in order. Where the limit ended the reading, the places that
            were not reached are left out, and the last list may be short of rows.
        """
        ...
