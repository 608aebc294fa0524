"""What people do to forwards, in SQL; implements `ports.forwards.Forwards`.

*Invariants*: as in `relay`: events are locked before forwards, and in the order of ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from freehold.adapters.sql.events import bounds
from freehold.adapters.sql.session import Runner
from freehold.adapters.sql.targets import writable
from freehold.domain.forwards import EventHead
from freehold.ports.forwards import ReplayAsked, ReplayPage

RANGE = 10_000  # ids that one statement looks at
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class SqlForwards:
    """Forwards, for people, inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def find_stuck(self, target: str, limit: int, *, waiting: bool = False) -> Sequence[int]:
        """Return ids of events that are dead at a target, in id order."""
        self._sql.rows("read_in_order")
        rows = self._sql.rows("find_dead_forwards", target=target, limit=limit)
        if waiting and len(rows) < limit:
            what = {"target": target, "limit": limit - len(rows)}
            rows += sorted(self._sql.rows("find_owed_forwards", **what))
        return [row[0] for row in rows]

    def retry(self, target: str, event_ids: Sequence[int]) -> Sequence[int]:
        """Make dead forwards ready with a fresh count of attempts."""
        what = {"ids": list(event_ids), "target": target}
        self._sql.rows("lock_events", ids=list(event_ids))
        rows = self._sql.rows("retry_forwards", **what, now=self._now)
        return sorted(row[0] for row in rows)

    def discard(
        self, target: str, event_ids: Sequence[int], reason: str, *, waiting: bool = False
    ) -> Sequence[int]:
        """Set dead forwards aside."""
        what = {"ids": list(event_ids), "target": target, "reason": writable(reason)}
        self._sql.rows("lock_events", ids=list(event_ids))
        rows = self._sql.rows("discard_forwards", **what, waiting=waiting, now=self._now)
        done = sorted(row[0] for row in rows)
        if done:
            self._sql.count("publish_ended", ids=done, now=self._now)
        return done

    def replayable(self, asked: ReplayAsked, after_id: int | None, limit: int) -> ReplayPage:
        """Return events that a target has, was spared, or was never told of."""
        ends = bounds(self._sql, asked.since, asked.until)
        if ends is None:
            return ReplayPage((), None)
        least = max(ends[0] - 1, after_id or 0)
        last = min(least + RANGE, ends[1])
        rows = self._sql.rows(
            "replayable_events",
            after=least,
            last=last,
            since=asked.since or EARLIEST,
            until=asked.until or self._now,
            rule=asked.rule,
            hold_key=asked.hold_key,
            target=asked.target,
            limit=limit,
        )
        passed = rows[-1][0] if len(rows) == limit else last
        return ReplayPage([EventHead(*row) for row in rows], passed if passed < ends[1] else None)

    def replay(self, target: str, event_ids: Sequence[int]) -> Sequence[int]:
        """Owe events to a target, again or at last."""
        self._sql.rows("lock_events", ids=list(event_ids))
        what = {"ids": list(event_ids), "target": target}
        rows = self._sql.rows("replay_forwards", **what, now=self._now)
        done = sorted(row[0] for row in rows)
        if done:
            self._sql.count("reopen_events", ids=done, now=self._now)
        return done
