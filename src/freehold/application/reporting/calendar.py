"""The calendar of reports follows the tenants, the owners of releases, and the tz database.

*Invariants*: whoever is active gets a window, and nobody else; a window begins where the one before
ended, whatever moved. *Not here*: closing (`closing`), how long a day is (`domain.days`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from freehold.domain.days import (
    day_at,
    due_at,
    is_missed,
    is_zone,
    tz_version,
    window_after,
    window_anew,
    window_of,
    window_up_to,
)
from freehold.domain.due_walls import zone_info
from freehold.domain.reports import ReportPolicy, ReportReason, Window
from freehold.ports.ledger import Ledger, Transaction
from freehold.ports.report_calendar import Closing, DueGroup, Moved, Newcomer

PAGE = 2_000  # rows of one reading
TALLIES = 20_000  # of one transaction: some tenths of a second, far from its time limit
LOOK_FOR_NEW_EVERY = timedelta(seconds=60)
OVERLAP = timedelta(seconds=60)  # a tenant may be changed by a transaction that commits late
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class Calendar:
    """Keeps the calendar right on one ledger connection.

    Attributes:
        tallies_max: that one transaction assigns.
    """

    def __init__(self, ledger: Ledger, policy: ReportPolicy) -> None:
        self._ledger = ledger
        self._policy = policy
        self.tallies_max = ledger.batch_limit or TALLIES
        self._looked_at: datetime | None = None
        self._followed_since = _BEGINNING
        self._tz_version: str | None = None

    def follow(self, every: timedelta = LOOK_FOR_NEW_EVERY) -> None:
        """Let the calendar follow the tenants and the tz database.

        Args:
            every: look no more often than so for what changed.
        """
        with self._ledger.glance() as tx:
            now = tx.now
        if self._looked_at is not None and timedelta(0) <= now - self._looked_at < every:
            return
        if self._tz_version != tz_version():
            self._follow_tz_database()
        self._follow_tenants(now)
        self._enrol()
        self._looked_at = now

    def _enrol(self) -> None:
        after: str | None = ""
        while after is not None:
            with self._ledger.glance() as tx:
                newcomers, after = tx.report_calendar.newcomers(after, PAGE)
                firsts = {one.tenant: self._first(one, tx.now) for one in newcomers}
            if firsts:
                with self._ledger.transaction() as tx:
                    tx.report_calendar.enrol(firsts)

    def _first(self, newcomer: Newcomer, now: datetime) -> Window:
        """Return the first window: where the last one ended, else the day of the first tally.

        A tally from long before is told with the first report, as from before it.
        """
        zone = self._known(newcomer.zone, self._policy.zone)
        if newcomer.last is not None:
            return window_after(newcomer.last, zone)
        info = zone_info(zone)
        today = day_at(now, info)
        day = today if newcomer.first_tally_at is None else day_at(newcomer.first_tally_at, info)
        if not today - timedelta(days=self._policy.catch_up) <= day <= today:
            day = today
        first = window_of(day, zone)
        assert first is not None, "an instant lies in a day that exists"
        return first

    def _follow_tz_database(self) -> None:
        after, version = "", tz_version()
        while True:
            with self._ledger.glance() as tx:
                page = tx.report_calendar.outdated(version, after, PAGE)
            if not page:
                break
            anew = {tenant: window_anew(window, window.zone) for tenant, window in page}
            with self._ledger.transaction() as tx:
                tx.report_calendar.reckon(anew, {})
            after = page[-1][0]
        self._tz_version = version

    def _follow_tenants(self, now: datetime) -> None:
        since, after = self._followed_since, ""
        while True:
            with self._ledger.glance() as tx:
                page = tx.report_calendar.moved(since, after, self._policy.zone, PAGE)
            if not page:
                break
            self._move(page)
            since, after = page[-1].changed_at, page[-1].tenant
        self._followed_since = now - OVERLAP

    def _move(self, moved: Sequence[Moved]) -> None:
        back = [one for one in moved if one.active and not one.was_active]
        others = [one for one in moved if one not in back]
        with self._ledger.transaction() as tx:
            tx.report_calendar.reckon(
                {one.tenant: self._anew(one) for one in others},
                {one.tenant: one.active for one in others},
            )
        for one in back:
            with self._ledger.transaction() as tx:
                self._bring_back(tx, one)

    def _anew(self, moved: Moved) -> Window:
        if not moved.active:
            return moved.window
        return window_anew(moved.window, self._known(moved.zone, moved.window.zone))

    def _bring_back(self, tx: Transaction, moved: Moved) -> None:
        """Let a tenant report again; the days in between become one window that is only recorded."""
        window = self._anew(moved)
        is_over = window.end_at <= tx.now
        if is_over:
            window = window_up_to(window, tx.now, window.zone)
        tx.report_calendar.reckon({moved.tenant: window}, {moved.tenant: True})
        group = tx.report_calendar.group_of(moved.tenant)
        if is_over and group is not None and group.window == window:
            closing = closing_of(group, self._policy, tx.now, ReportReason.INACTIVE)
            tx.report_calendar.close(closing, 1, moved.tenant, self.tallies_max)

    def _known(self, zone: str | None, otherwise: str) -> str:
        """Return a tenant's zone, the installation's for none, and another for one unheard of."""
        if zone is None:
            return self._policy.zone
        return zone if is_zone(zone) else otherwise

    def as_it_is_now(self, group: DueGroup) -> Window | None:
        """Return what the calendar must have first; None where it is right."""
        if not group.active:
            return group.window
        zone = self._known(group.zone, group.window.zone)
        is_right = (group.window.zone, group.window.tz_version) == (zone, tz_version())
        return None if is_right else window_anew(group.window, zone)


def closing_of(
    group: DueGroup, policy: ReportPolicy, now: datetime, reason: ReportReason | None = None
) -> Closing:
    """Return what becomes of a group whose window is over.

    Args:
        reason: not to be sent, and why; a day that was missed long ago finds its own.
    """
    window = group.window
    hour = policy.hour if group.hour is None else group.hour
    if reason is None and is_missed(window, now, policy.catch_up, window.zone):
        reason = ReportReason.MISSED
    after = window_after(window, window.zone)
    return Closing(group, window, after, due_at(window, hour), reason)
