"""Guards, pauses and noted clocks in SQL; implements `ports.guards`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from freehold.adapters.sql.session import Row, Runner
from freehold.domain.clocks import ClockReading, NotedClock
from freehold.domain.pauses import Pause, Role
from freehold.ports.guards import Guard, GuardKind

KEPT = timedelta(days=2)  # a note, once another is written


class SqlGuards:
    """Implements `ports.guards.Guards`."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def trip(
        self, kind: GuardKind, rule: str | None, reason: str, figures: Mapping[str, Any]
    ) -> bool:
        """Freeze a rule, or all."""
        values = {"kind": kind.value, "rule": rule, "reason": reason, "now": self._now}
        return self._sql.count("trip_guard", **values, figures=json.dumps(dict(figures))) == 1

    def standing(self) -> Sequence[Guard]:
        """Return the guards that stand."""
        rows = self._sql.rows("standing_guards")
        return [self._guard(row) for row in sorted(rows, key=lambda row: int(row[0]))]

    def newest(self, kind: GuardKind) -> Guard | None:
        """Return the guard of a kind that tripped last."""
        rows = self._sql.rows("newest_guard", kind=kind.value)
        return self._guard(rows[0]) if rows else None

    def _guard(self, row: Row) -> Guard:
        session = self._sql.session
        return Guard(
            id=row[0],
            kind=GuardKind(row[1]),
            rule=row[2],
            tripped_at=session.sure_instant(row[3]),
            reason=row[4],
            figures=json.loads(row[5]) if isinstance(row[5], str) else row[5],
            released_at=session.instant(row[6]),
            released_by=row[7],
            released_reason=row[8],
        )

    def release(self, guard_id: int, by: str | None, reason: str) -> bool:
        """Let the rules work again."""
        changed = self._sql.count(
            "release_guard", id=guard_id, released_by=by, reason=reason, now=self._now
        )
        return changed == 1


class SqlPauses:
    """Implements `ports.guards.Pauses`."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def begin(self, pause: Pause) -> None:
        """Pause, or change a pause that stands."""
        said = {"paused_by": pause.by, "reason": pause.reason, "paused_until": pause.until}
        key = _key(pause.role, pause.rule, pause.tenant)
        if self._sql.count("renew_pause", **said, **key):
            return
        what = {"role": pause.role.value, "rule": pause.rule, "tenant": pause.tenant}
        if not self._sql.count("begin_pause", **said, **what, now=self._now):
            self._sql.count("renew_pause", **said, **key)

    def end(self, role: Role, rule: str | None, tenant: str | None) -> bool:
        """End a pause."""
        return self._sql.count("end_pause", **_key(role, rule, tenant), now=self._now) == 1

    def open(self) -> Sequence[Pause]:
        """Return the pauses that nobody ended."""
        rows = self._sql.rows("open_pauses")
        return [self._pause(row) for row in sorted(rows, key=lambda row: int(row[7]))]

    def _pause(self, row: Row) -> Pause:
        session = self._sql.session
        return Pause(
            role=Role(row[0]),
            rule=row[1],
            tenant=row[2],
            by=row[3],
            reason=row[4],
            paused_at=session.sure_instant(row[5]),
            until=session.instant(row[6]),
        )


def _key(role: Role, rule: str | None, tenant: str | None) -> dict[str, str]:
    """Name a pause as its index does, which knows no NULL."""
    return {"role": role.value, "rule_key": rule or "", "tenant_key": tenant or ""}


class ClockMemory:
    """What one connection keeps of its readings between transactions."""

    def __init__(self) -> None:
        self.base: ClockReading | None = None


class SqlHostClocks:
    """Implements `ports.guards.HostClocks`."""

    def __init__(self, runner: Runner, memory: ClockMemory, reading: ClockReading | None) -> None:
        self._sql = runner
        self._memory = memory
        self.reading = reading

    @property
    def base(self) -> ClockReading | None:
        """Return the last reading that was trusted."""
        return self._memory.base

    def trust(self) -> None:
        """Make this reading the base."""
        self._memory.base = self.reading

    def noted(self) -> Sequence[NotedClock]:
        """Return this host's note, and the newest of others."""
        host = "" if self.reading is None else self.reading.host
        at = self._sql.session.sure_instant
        rows = self._sql.rows("noted_clocks", host=host)
        notes = [NotedClock(row[0], at(row[1]), at(row[2])) for row in rows]
        return sorted(notes, key=lambda note: note.host != host)

    def note(self) -> None:
        """Note this reading."""
        if self.reading is not None:
            values = {"database_at": self.reading.database_at, "host_at": self.reading.host_at}
            self._sql.count("note_clock", host=self.reading.host, **values)
            self._sql.count("forget_old_clocks", since=self.reading.database_at - KEPT)

    def forget(self) -> None:
        """Take every note back."""
        self._sql.count("forget_clocks")
