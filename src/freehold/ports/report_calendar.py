"""Whose day ends when, and which tallies belong to which report.

*Invariants*: a tally gets its report once, in the transaction that writes the report or, where these
are too many for one, in a later part, and keeps it; no report has facts, and none of its tenant's later
ones is written, before it has all its tallies; a tenant's windows tile the time line. The database
checks these.
*Not here*: how long a local day is (`domain.days`), the facts (`ports.reports`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from freehold.domain.reports import ReportReason, Window


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Somebody who gets reports and is not in the calendar yet.

    Attributes:
        zone: the tenant's own, or None for the installation's.
        first_tally_at: of the oldest tally that is in no report; None without one.
        last: the tenant's newest report, where it was in the calendar before.
    """

    tenant: str
    zone: str | None
    first_tally_at: datetime | None
    last: Window | None


@dataclass(frozen=True, slots=True)
class Moved:
    """A tenant that was changed, and is no longer as the calendar has it.

    Attributes:
        zone: the tenant's own now, or None for the installation's.
        active: whether it is active now.
        window, was_active: as the calendar has it.
    """

    tenant: str
    zone: str | None
    active: bool
    changed_at: datetime
    window: Window
    was_active: bool


@dataclass(frozen=True, slots=True)
class DueGroup:
    """Tenants whose next window is the same: one pass serves them all.

    Attributes:
        window: as the calendar has it; its end was computed with `window.tz_version`.
        zone: the tenants' zone now; None for the installation's. Another than the window's means
            that the end must be computed again.
        hour: the tenants' report hour; None for the installation's.
        active: whether the tenants are active now; those of the data alone are.
        tenant_count: how many of them were read.
    """

    window: Window
    zone: str | None
    hour: int | None
    active: bool
    tenant_count: int


@dataclass(frozen=True, slots=True)
class Closing:
    """What becomes of one group: the window that closes now, and the one that comes next.

    Attributes:
        reason: not None for a report that is only recorded, never sent.
        due_at: when the mail leaves.
    """

    group: DueGroup
    window: Window
    next: Window
    due_at: datetime
    reason: ReportReason | None = None


class ReportCalendar(Protocol):
    """Calendar and assignment, inside one transaction."""

    # ------------------------------------------------------------------------------ calendar

    def newcomers(self, after: str, limit: int) -> tuple[Sequence[Newcomer], str | None]:
        """Return active tenants, and owners of unreported tallies, that the calendar lacks.

        Looks at no more than `limit` tenants or owners.

        Args:
            after: the place that the call before returned; the empty text at the beginning.

        Returns:
            The newcomers, and the place where the next call goes on; None at the end.
        """
        ...

    def enrol(self, windows: Mapping[str, Window]) -> int:
        """Write the first windows of tenants; return how many were new.

        Again: leaves those that are there as they are.
        """
        ...

    def moved(self, since: datetime, after: str, zone: str, limit: int) -> Sequence[Moved]:
        """Return tenants changed since an instant, whose zone or being active is not the row's.

        In the order of (changed_at, id), behind (`since`, `after`).

        Args:
            zone: the installation's, which counts where a tenant has none.
        """
        ...

    def outdated(self, tz_version: str, after: str, limit: int) -> Sequence[tuple[str, Window]]:
        """Return, in the order of ids, active rows that another tz database computed."""
        ...

    def reckon(self, windows: Mapping[str, Window], active: Mapping[str, bool]) -> int:
        """Write windows anew, where the start is still as given; return how many.

        Args:
            active: of the tenants whose being active changed.
        """
        ...

    def adjust(self, group: DueGroup, window: Window, limit: int) -> int:
        """Write the window of at most `limit` of a group's tenants anew; return how many.

        Whether a row is active follows the group. Tenants that another transaction has in hand are
        left to it.
        """
        ...

    def next_end(self) -> datetime | None:
        """Return the earliest end of a window in the calendar; None without an active tenant."""
        ...

    def watermark(self) -> datetime:
        """Return the instant before which no tally can still appear.

        The older of the beginning of the oldest open transaction that may release and, where
        there are several writers, now minus 60 s. A transaction of an application that releases in
        its own (`freehold.holds`) is not seen where it has another name than ours.
        """
        ...

    # ---------------------------------------------------------------------------- assignment

    def due(self, until: datetime, limit: int) -> Sequence[DueGroup]:
        """Return groups whose window ends at or before an instant, the earliest end first.

        Reads no more of the calendar than `limit` tenants.
        """
        ...

    def group_of(self, tenant: str) -> DueGroup | None:
        """Return the group of one active row alone, due or not; None without one."""
        ...

    def close(
        self,
        closing: Closing,
        limit: int,
        only: str | None = None,
        tallies_max: int | None = None,
    ) -> int:
        """Write the reports of at most `limit` of the group's tenants; return how many.

        In one statement each for all of them: the report, its tallies (every one of the tenant's
        before the window's end that is in no report), their count, and the calendar's next row. Tenants that
        another transaction has in hand are left to it, and so are those whose last report has not
        got all its tallies.

        Args:
            only: one tenant of the group; None for any.
            tallies_max: of one call, so that it stays short: fewer tenants are closed where theirs
                are more. A tenant that has so many alone gets its report with the oldest of them,
                and `assign_part` assigns the rest. None for all at once.

        Again: writes nothing for those that are done. Crash: all of one call, or nothing.
        """
        ...

    def in_parts(self) -> bool:
        """Tell whether any report has not got all its tallies."""
        ...

    def assign_part(self, tallies_max: int) -> bool:
        """Assign so many more tallies of a report that has not got all; False where none is left.

        With the last of them it gets its count, and may get its facts. A report that another
        transaction has in hand is left to it.

        Again: assigns the next ones. Crash: all of one call, or nothing.
        """
        ...
