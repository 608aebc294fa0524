"""Closing: a tenant's day is over, and its report gets its tallies for ever.

*Invariants*: nothing closes before its end by the database's clock, nor while a guard of the clock
stands; a window whose zone or tz database changed is computed again before anybody asks whether it is
over; one transaction closes few tenants, and assigns few tallies. That each tally gets one report does
not rest on waiting: what commits late is in the next report.
*Not here*: how long a day is (`domain.days`), the facts (`freezing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from shlex import quote

from freehold.application.guards import lift_clock_guard, watch_clock
from freehold.application.prune import frozen
from freehold.application.reporting.calendar import Calendar, closing_of
from freehold.domain.errors import (
    DatabaseAway,
    DatabaseBusy,
    DatabaseError,
    RefusedByState,
    StatementTimedOut,
    UsageError,
)
from freehold.domain.reports import ReportPolicy, Window
from freehold.ports.ledger import Ledger, Transaction
from freehold.ports.report_calendar import Closing, DueGroup
from freehold.ports.system import Boundary, Checkpoint
from freehold.ports.telemetry import UNHEARD, DatabaseTrouble, ReportsClosed, Telemetry

PAGE = 2_000  # tenants of one transaction, at most
FIRST_PAGE = 50
PAGE_SECONDS = (1, 4)  # a page that is quicker, or slower, is made larger, or smaller
ROWS_A_TENANT = 10  # reckoned with where the size of a transaction is bounded
LOOK = 20_000  # rows of the calendar read at once
ASK_AGAIN_AFTER = timedelta(seconds=5)
TRY_AGAIN_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Closed:
    """What one pass did.

    Attributes:
        waiting_until: when to try again, since some window is over but may not close yet; None when
            none is.
        doubt: why the clock that calls a day over cannot be trusted, so that it stays open.
    """

    report_count: int
    waiting_until: datetime | None = None
    doubt: str | None = None


@dataclass(slots=True)
class _Pass:
    """A pass in hand: what it did so far, and what it has to wait for."""

    now: datetime
    watermark: datetime
    report_count: int = 0
    moved_count: int = 0
    waiting_until: datetime | None = None
    doubt: str | None = None

    def wait_until(self, instant: datetime) -> None:
        """Note an instant; the earliest one counts."""
        self.waiting_until = min(self.waiting_until or instant, instant)


class Closer:
    """Closes windows on one ledger connection."""

    def __init__(
        self,
        ledger: Ledger,
        policy: ReportPolicy,
        checkpoint: Checkpoint,
        telemetry: Telemetry = UNHEARD,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ledger = ledger
        self._policy = policy
        self._checkpoint = checkpoint
        self._telemetry = telemetry
        self._is_stopping = is_stopping
        batch_limit = ledger.batch_limit
        self._page = PAGE if batch_limit is None else max(batch_limit // ROWS_A_TENANT, 1)
        self._calendar = Calendar(ledger, policy)

    def close(self, until: datetime | None = None) -> Closed:
        """Close every window that is over, and may close, page by page.

        Args:
            until: leave windows alone that end after this.

        Again: closes what is over by then. Crash: what committed stays, the rest is done next time.

        Raises:
            DatabaseAway: the database cannot be reached; try again later.
            DatabaseBusy: others are in the way; try again at once.
        """
        with self._ledger.transaction() as tx:
            watch_clock(tx)  # what a jump that comes before the next pass is told by
        self._calendar.follow()
        report_count = 0
        while True:
            done = self._pass(until)
            report_count += done.report_count
            if self._is_stopping() or not (done.report_count or done.moved_count):
                return Closed(report_count, done.waiting_until, done.doubt)

    def next_end(self) -> datetime | None:
        """Return when the next window ends; None without an active tenant."""
        with self._ledger.glance() as tx:
            return tx.report_calendar.next_end()

    def build(self, tenant: str, report_date: date) -> int:
        """Close the windows of one tenant up to a date; return how many.

        Raises:
            RefusedByState: the day is not over, or may still get releases, or nobody reports.
            UsageError: nobody has heard of the tenant.
        """
        self._calendar.follow(every=timedelta(0))
        count = 0
        self._assign_parts()
        while self._build_one(tenant, report_date):
            self._assign_parts()
            count += 1
        return count

    # --------------------------------------------------------------------------------- one pass

    def _pass(self, until: datetime | None) -> _Pass:
        with self._ledger.glance() as tx:
            calendar = tx.report_calendar
            groups = calendar.due(min(until or tx.now, tx.now), LOOK)
            done = _Pass(tx.now, calendar.watermark() if groups else tx.now)
            in_parts = calendar.in_parts()
        if groups and (doubt := self._doubt()) is not None:
            done.doubt = doubt
            done.wait_until(done.now + TRY_AGAIN_AFTER)
            return done
        if in_parts:
            self._take(self._assign_parts, done)
        for group in groups:
            if self._is_stopping():
                break
            self._take(partial(self._do, group, done), done)
        return done

    def _doubt(self) -> str | None:
        """Return why the clock that said what is over cannot be trusted; None when it can.

        Asked after it was read: a jump before that is seen, and one since made nothing look over.
        """
        with self._ledger.transaction() as tx:
            if watch_clock(tx) and lift_clock_guard(tx, tx.guards.standing()):
                return None
            return frozen(tx)

    def _take(self, step: Callable[[], None], done: _Pass) -> None:
        """Take a step; what the database refuses of it keeps no other from closing."""
        try:
            step()
        except (DatabaseAway, DatabaseBusy):
            raise
        except DatabaseError as error:
            told = DatabaseTrouble("close reports", type(error).__name__, error.code)
            self._telemetry.tell(told)
            done.wait_until(done.now + TRY_AGAIN_AFTER)

    def _do(self, group: DueGroup, done: _Pass) -> None:
        """Do what a group needs."""
        if (window := self._calendar.as_it_is_now(group)) is not None:
            done.moved_count += self._adjust(group, window)
        elif self._may_close(group.window, done):
            done.report_count += self._close_group(group, done.now)

    def _assign_parts(self) -> None:
        """Assign what is left where a tenant had too many tallies for one transaction."""
        while not self._is_stopping():
            with self._ledger.transaction() as tx:
                if not tx.report_calendar.assign_part(self._calendar.tallies_max):
                    return
                self._checkpoint.reach(Boundary.REPORTS_ASSIGNED)

    def _may_close(self, window: Window, done: _Pass) -> bool:
        if _is_closable(window, done.now, done.watermark, self._policy.close_delay):
            return True
        latest = window.end_at + self._policy.close_delay
        done.wait_until(min(latest, done.now + ASK_AGAIN_AFTER))
        return False

    def _adjust(self, group: DueGroup, window: Window) -> int:
        total = 0
        while not self._is_stopping():
            with self._ledger.transaction() as tx:
                count = tx.report_calendar.adjust(group, window, self._page)
            total += count
            if count < self._page:
                break
        return total

    def _close_group(self, group: DueGroup, now: datetime) -> int:
        closing = closing_of(group, self._policy, now)
        total = 0
        for count in self._pages(closing):
            total += count
            if total >= group.tenant_count:  # whoever came since is found by the next pass
                break
        if total:
            self._tell(closing, total)
        return total

    def _pages(self, closing: Closing) -> Iterator[int]:
        """Close page after page, each so large that it keeps nobody waiting for long."""
        limit, before = min(self._page, FIRST_PAGE), None
        while not self._is_stopping():
            try:
                count, began_at = self._close_page(closing, limit)
            except StatementTimedOut:
                if limit == 1:
                    raise
                limit, before = max(limit // 8, 1), None
                continue
            if not count:
                return
            yield count
            limit, before = self._fitting(limit, before, began_at), began_at

    def _fitting(self, limit: int, before: datetime | None, now: datetime) -> int:
        """Return the size of the next page, by the time since the one before began."""
        if before is None:
            return limit
        quick, slow = PAGE_SECONDS
        seconds = (now - before).total_seconds()
        if seconds > slow:
            return max(limit // 4, 1)
        return min(limit * 2, self._page) if seconds < quick else limit

    def _close_page(
        self, closing: Closing, limit: int, only: str | None = None
    ) -> tuple[int, datetime]:
        """Close a page; return how many tenants it had, and when it began."""
        with self._ledger.transaction() as tx:
            if tx.now < closing.window.end_at:  # the clock was set back since
                return 0, tx.now
            count = tx.report_calendar.close(closing, limit, only, self._calendar.tallies_max)
            if count:
                self._checkpoint.reach(Boundary.REPORTS_ASSIGNED)
        return count, tx.now

    def _tell(self, closing: Closing, count: int) -> None:
        window, reason = closing.window, closing.reason
        told = None if reason is None else reason.value
        day = window.report_date.isoformat()
        self._telemetry.tell(ReportsClosed(day, window.zone, count, told))

    # ------------------------------------------------------------------------------- one tenant

    def _build_one(self, tenant: str, report_date: date) -> bool:
        """Close one window of a tenant; False when its calendar is past the date."""
        with self._ledger.transaction() as tx:
            group = tx.report_calendar.group_of(tenant)
            if group is None:
                raise nobody(tx, tenant)
            if (anew := self._calendar.as_it_is_now(group)) is not None:
                tx.report_calendar.reckon({tenant: anew}, {tenant: group.active})
            window = anew or group.window
            if window.report_date > report_date:
                return False
            self._refuse_open(tx, tenant, window, report_date)
            group = tx.report_calendar.group_of(tenant)
        if group is None:
            return True  # inactive since a moment ago; the next call says so
        asked_at = window.end_at if report_date == window.report_date else tx.now
        closing = closing_of(group, self._policy, asked_at)
        if (doubt := self._doubt()) is not None:
            raise RefusedByState(
                f"The day {window.report_date} of tenant {tenant!r} does not close: {doubt}."
            )
        if not self._close_page(closing, 1, tenant)[0]:
            raise RefusedByState(
                f"The day {window.report_date} of tenant {tenant!r} is in the hands of another "
                "process; try again in a moment."
            )
        self._tell(closing, 1)
        return True

    def _refuse_open(self, tx: Transaction, tenant: str, window: Window, report_date: date) -> None:
        day = f"The day {window.report_date} of tenant {tenant!r}"
        if window.end_at > tx.now:
            when = f"at {window.end_at:%Y-%m-%d %H:%M} UTC"
            if report_date > window.report_date:
                day = f"The day {report_date} of tenant {tenant!r}"
                when = f"later, as {window.report_date} ends {when}"
            raise RefusedByState(
                f"{day} is not over and ends {when}; `freehold report preview` shows the running "
                "one so far."
            )
        watermark = tx.report_calendar.watermark()
        if not _is_closable(window, tx.now, watermark, self._policy.close_delay):
            until = f"{window.end_at + self._policy.close_delay:%H:%M} UTC"
            raise RefusedByState(
                f"{day} may still get releases that began before its end; try again in a minute, "
                f"or after {until}."
            )


def _is_closable(
    window: Window, now: datetime, watermark: datetime, close_delay: timedelta
) -> bool:
    """Tell whether no earlier tally can appear any more, or was waited for long enough."""
    if now < window.end_at:
        return False
    return watermark >= window.end_at or now >= window.end_at + close_delay


def nobody(tx: Transaction, tenant: str) -> RefusedByState | UsageError:
    """Say why a tenant is not in the calendar."""
    if tx.tenants.read([tenant]):
        return RefusedByState(
            f"Tenant {tenant!r} is not active and gets no reports; "
            f"`freehold tenant set {quote(tenant)} --active --by NAME` lets it report again."
        )
    if not tenant:
        return UsageError(
            "No hold without a tenant was released, so that nobody's days are reported; name a "
            "tenant of `freehold tenant list`."
        )
    return UsageError(
        f"There is no tenant {tenant!r}, and no hold of it was released; "
        "`freehold tenant list` shows those there are."
    )
