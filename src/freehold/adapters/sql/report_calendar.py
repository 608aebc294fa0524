"""The calendar of reports, and the assignment of tallies, in SQL; implements `ports.report_calendar`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from freehold.adapters.sql.inventory import written_instant
from freehold.adapters.sql.session import Row, Runner, Session
from freehold.domain.reports import NOBODY, Window
from freehold.ports.report_calendar import Closing, DueGroup, Moved, Newcomer

# Longer than any two clocks of one server's sessions lie apart; a commit takes moments.
MARGIN = timedelta(seconds=60)
MANY = 2**31  # more tallies than one tenant has
_TENANTS, _OWNERS = "t", "o"  # the two walks for newcomers, one after the other
_WINDOW = "c.next_date, c.start_at, c.end_at, c.zone, c.tz_version"
# A partial index serves only what is spelled as its own condition.
_SLOTS = {
    "postgres": {"is_active": "c.active", "window": _WINDOW},
    "sqlite": {"is_active": "c.active = 1", "window": _WINDOW},
}


class SqlReportCalendar:
    """Calendar and assignment inside one transaction."""

    def __init__(self, session: Session, now: datetime) -> None:
        self._session = session
        self._sql = Runner(session, _SLOTS[session.dialect])
        self._now = now

    # ------------------------------------------------------------------------------ calendar

    def newcomers(self, after: str, limit: int) -> tuple[Sequence[Newcomer], str | None]:
        """Walk the tenants, then the owners of unreported tallies."""
        walk, place = after[:1] or _TENANTS, after[1:]
        name = "walk_tenants" if walk == _TENANTS else "walk_owners"
        rows = self._sql.rows(name, after=place, limit=limit)
        found = [row[0] for row in rows if row[2]]
        if walk == _OWNERS and not place:
            found.append(NOBODY)  # who stands before every owner
        newcomers = self._read_newcomers(found) if found else []
        if rows and rows[-1][1] == limit:
            return newcomers, walk + str(rows[-1][0])
        return newcomers, _OWNERS if walk == _TENANTS else None

    def _read_newcomers(self, tenants: Sequence[str]) -> list[Newcomer]:
        rows = self._sql.rows("read_newcomers", tenants=list(tenants))
        instant = self._session.instant
        return [
            Newcomer(row[0], row[1], instant(row[2]), self._window(row[3:8]) if row[3] else None)
            for row in rows
        ]

    def enrol(self, windows: Mapping[str, Window]) -> int:
        """Write first windows."""
        return self._sql.many("enrol", [_row(*one) for one in sorted(windows.items())])

    def moved(self, since: datetime, after: str, zone: str, limit: int) -> Sequence[Moved]:
        """Return tenants that are no longer as the calendar has them."""
        written = written_instant(self._session, since)
        self._sql.rows("keep_order")
        rows = self._sql.rows("moved_tenants", since=written, after=after, zone=zone, limit=limit)
        return [
            Moved(
                row[0],
                row[1],
                bool(row[2]),
                self._own_instant(row[3]),
                self._window(row[4:9]),
                bool(row[9]),
            )
            for row in rows
        ]

    def outdated(self, tz_version: str, after: str, limit: int) -> Sequence[tuple[str, Window]]:
        """Return active rows that another tz database computed."""
        self._sql.rows("keep_order")
        rows = self._sql.rows("outdated_windows", tz_version=tz_version, after=after, limit=limit)
        return [(row[0], self._window(row[1:6])) for row in rows]

    def reckon(self, windows: Mapping[str, Window], active: Mapping[str, bool]) -> int:
        """Write windows anew."""
        rows = [(*_row(*one), active.get(one[0])) for one in sorted(windows.items())]
        return self._sql.many("reckon", rows)

    def adjust(self, group: DueGroup, window: Window, limit: int) -> int:
        """Write the window of a group anew, and whether it is active."""
        tenants = self._take(group, limit, None)
        if tenants:
            self._move(tenants, window, group.active)
        return len(tenants)

    def next_end(self) -> datetime | None:
        """Return the earliest end."""
        rows = self._sql.rows("next_report_end")
        return self._session.instant(rows[0][0]) if rows else None

    def watermark(self) -> datetime:
        """Return the instant before which no tally can still appear."""
        if self._session.one_writer:
            return self._now
        (age_seconds,) = self._sql.rows("oldest_transaction")[0]
        return self._now - max(MARGIN, timedelta(seconds=age_seconds))

    # ---------------------------------------------------------------------------- assignment

    def due(self, until: datetime, limit: int) -> Sequence[DueGroup]:
        """Return groups whose window is over."""
        return [self._group(row) for row in self._sql.rows("due_windows", until=until, limit=limit)]

    def group_of(self, tenant: str) -> DueGroup | None:
        """Return the group of one row."""
        rows = self._sql.rows("window_of_tenant", tenant=tenant)
        return self._group(rows[0]) if rows else None

    def close(
        self,
        closing: Closing,
        limit: int,
        only: str | None = None,
        tallies_max: int | None = None,
    ) -> int:
        """Write reports, assign their tallies, and move the calendar on."""
        tenants = self._take(closing.group, limit, only)
        if not tenants:
            return 0
        end_at, most = closing.window.end_at, MANY if tallies_max is None else tallies_max
        tenants = tenants[: self._fitting(tenants, end_at, most) or 1]
        made = self._make(closing, tenants)
        self._assign([row[0] for row in made], [row[1] for row in made], end_at, most)
        self._move(tenants, closing.next, closing.group.active)
        return len(tenants)

    def _fitting(self, tenants: Sequence[str], end_at: datetime, tallies_max: int) -> int:
        """Return how many of the tenants, from the first on, have fewer tallies together."""
        asked = {"tenants": list(tenants), "end_at": end_at, "limit": tallies_max}
        ((count, last_place),) = self._sql.rows("weigh_page", **asked)
        return len(tenants) if count < tallies_max else last_place - 1

    def _make(self, closing: Closing, tenants: Sequence[str]) -> list[Row]:
        return self._sql.rows(
            "make_reports",
            tenants=list(tenants),
            **_bounds(closing.window),
            watermark_at=self.watermark(),
            due_at=closing.due_at,
            reason=None if closing.reason is None else closing.reason.value,
            now=self._now,
        )

    def _assign(
        self, ids: Sequence[int], tenants: Sequence[str], end_at: datetime, tallies_max: int
    ) -> None:
        """Assign so many tallies at most, and count them where none is left."""
        asked = {"tenants": list(tenants), "end_at": end_at, "limit": tallies_max}
        if self._sql.count("assign_tallies", **asked) < tallies_max:
            self._sql.count("count_reports", ids=list(ids))

    def in_parts(self) -> bool:
        """Tell whether any report has not got all its tallies."""
        return bool(self._sql.rows("any_in_parts"))

    def assign_part(self, tallies_max: int) -> bool:
        """Assign some more tallies of a report that has not got all."""
        self._sql.rows("keep_order")
        rows = self._sql.rows("take_report_in_parts")
        for report_id, tenant, end_at in rows:
            until = self._session.sure_instant(end_at)
            self._assign([report_id], [tenant], until, tallies_max)
        return bool(rows)

    def _take(self, group: DueGroup, limit: int, only: str | None) -> list[str]:
        self._sql.rows("keep_order")
        rows = self._sql.rows(
            "take_group",
            **_bounds(group.window),
            tenant_zone=group.zone,
            hour=group.hour,
            is_active=group.active,
            only=only,
            limit=limit,
        )
        return [row[0] for row in rows]

    def _move(self, tenants: Sequence[str], window: Window, is_active: bool) -> None:
        asked = {"tenants": list(tenants), "is_active": is_active}
        self._sql.count("move_calendar", **asked, **_bounds(window))

    def _group(self, row: Row) -> DueGroup:
        return DueGroup(self._window(row[:5]), row[5], row[6], bool(row[7]), row[8])

    def _window(self, row: Row) -> Window:
        instant = self._session.sure_instant
        return Window(_date(row[0]), instant(row[1]), instant(row[2]), row[3], row[4])

    def _own_instant(self, value: Any) -> datetime:
        at = self._session.sure_instant(value)
        return at.replace(tzinfo=UTC) if at.utcoffset() is None else at


def _bounds(window: Window) -> dict[str, Any]:
    return {
        "report_date": window.report_date.isoformat(),
        "start_at": window.start_at,
        "end_at": window.end_at,
        "zone": window.zone,
        "tz_version": window.tz_version,
    }


def _row(tenant: str, window: Window) -> Row:
    day = window.report_date.isoformat()
    return (tenant, window.start_at, day, window.end_at, window.zone, window.tz_version)


def _date(value: Any) -> date:
    return date.fromisoformat(value) if isinstance(value, str) else value
