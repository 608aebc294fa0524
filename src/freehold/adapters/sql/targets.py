"""Targets of events, how they stand, and their pauses; the part of `ports.relay.Relay` about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from freehold.adapters.sql.session import Row, Runner
from freehold.domain.events import EventType
from freehold.domain.forwards import TargetKind
from freehold.domain.names import digest, pack
from freehold.ports.relay import TargetState

REASON_LENGTH = 500  # characters; evidence, not an archive


class SqlTargets:
    """Targets and pauses inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def follow_targets(self, targets: Sequence[tuple[str, TargetKind]]) -> Sequence[str]:
        """Make the known targets those that are configured, row by row in one order for all."""
        configured = dict(targets)
        active = {target.name for target in self.targets() if target.active}
        names = sorted(active | set(configured))
        return [name for name in names if self._follow(name, configured.get(name))]

    def _follow(self, name: str, kind: TargetKind | None) -> int:
        what = {"name": name, "is_active": kind is not None, "now": self._now}
        if kind is None:
            return self._sql.count("retire_target", **what)
        return self._sql.count("follow_target", **what, kind=kind.value)

    def targets(self) -> Sequence[TargetState]:
        """Read all targets by name."""
        return [self._state(row) for row in self._sql.rows("read_targets")]

    def _state(self, row: Row) -> TargetState:
        instant = self._sql.session.instant
        return TargetState(
            name=row[0],
            kind=TargetKind(row[1]),
            active=bool(row[2]),
            failing_since=instant(row[3]),
            failure_count=row[4],
            probe_at=instant(row[5]),
            pause_id=row[6],
            pause_reason=row[7],
            paused_by=row[8],
            paused_at=instant(row[9]),
            paused_until=instant(row[10]),
        )

    def note_success(self, target: str) -> None:
        """Write that a target took something."""
        self._sql.count("note_target_success", name=target, now=self._now)

    def note_failure(self, target: str, count: int, probe_at: datetime | None) -> TargetState:
        """Write that a target failed so many times more."""
        what = {"name": target, "failed_count": count, "probe_at": probe_at}
        self._sql.count("note_target_failure", **what, now=self._now)
        return {state.name: state for state in self.targets()}[target]

    def pause(
        self, target: str, reason: str, *, by: str | None = None, until: datetime | None = None
    ) -> int | None:
        """Begin a pause."""
        what = {"name": target, "reason": writable(reason), "by": by, "until": until}
        rows = self._sql.rows("begin_target_pause", **what, now=self._now)
        return rows[0][0] if rows else None

    def resume(self, target: str, by: str | None) -> bool:
        """End the standing pause, and forget the failures."""
        ended = self._sql.count("end_target_pause", name=target, by=by, now=self._now)
        if ended:
            self.note_success(target)
        return bool(ended)

    def tell_paused(self, pause_id: int) -> bool:
        """Write the event of a pause."""
        target, reason, begun = self._sql.rows("read_target_pause", id=pause_id)[0]
        paused_at = self._sql.session.sure_instant(begun)
        identity = pack((paused_at.isoformat(), str(pause_id)))
        written = self._sql.count(
            "tell_target_paused",
            type=EventType.TARGET_PAUSED.value,
            operation_id=-pause_id,
            name=target,
            digest=digest("", target, identity),
            paused_at=paused_at,
            carry=json.dumps({"reason": reason}, ensure_ascii=False),
            is_active=True,
            now=self._now,
        )
        return bool(written)


def writable(text: str) -> str:
    """Cut what was said to what is kept, and can be: no NUL, and no half of a character."""
    return text[:REASON_LENGTH].replace("\x00", "").encode("utf-8", "replace").decode()
