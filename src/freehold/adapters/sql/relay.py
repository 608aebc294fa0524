"""The outbox and its forwards in SQL; implements `ports.relay.Relay`.

*Invariants*: events are locked before forwards, and in the order of ids; every write to a leased
forward carries its lease token; what decides after a lock is read by a statement of its own.
*Not here*: targets and their pauses (`targets`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from freehold.adapters.sql.session import Row
from freehold.adapters.sql.targets import SqlTargets, writable
from freehold.domain.events import Event, EventType
from freehold.domain.forwards import EventHead, ForwardState
from freehold.domain.retries import FailureClass
from freehold.ports.relay import ClaimedForward, Finished, Handed

LOST = "whoever had it in hand was killed or stopped, and so was the answer"
LOST_CODE = "lease ended"
ORPHANED = "its event was removed"


class SqlRelay(SqlTargets):
    """Events without a route, forwards, targets and pauses inside one transaction."""

    # -------------------------------------------------------------------------------- routing

    def claim_unrouted(self, limit: int) -> Sequence[EventHead]:
        """Lock waiting events whose targets are not worked out."""
        self._sql.rows("read_in_order")
        return [EventHead(*row) for row in self._sql.rows("claim_unrouted", limit=limit)]

    def route(self, events: Sequence[EventHead], owed: Sequence[tuple[int, str]]) -> int:
        """Write what the events owe to targets."""
        ids = [event.id for event in events]
        if not ids:
            return 0
        new_count = self._sql.many("add_forwards", owed, now=self._now)
        self._sql.count("mark_routed", ids=ids, now=self._now)
        owing = {event_id for event_id, _ in owed}
        self._publish([one for one in ids if one not in owing])
        return new_count

    def _publish(self, ids: Sequence[int]) -> int:
        return self._sql.count("publish_ended", ids=list(ids), now=self._now) if ids else 0

    def publish_finished(self, after_id: int, limit: int) -> Finished:
        """Publish waiting events of which nothing is owed any more."""
        self._sql.rows("read_in_order")
        rows = self._sql.rows("waiting_page", after_id=after_id, limit=limit)
        ids = [row[0] for row in rows]
        return Finished(self._publish(ids), ids[-1] if len(ids) == limit else 0)

    # ------------------------------------------------------------------------------ the lease

    def claim(self, target: str, limit: int, lease: timedelta) -> Sequence[ClaimedForward]:
        """Lease what a target is owed and is available."""
        self._sql.rows("read_in_order")
        rows = self._sql.rows("claim_forwards", target=target, limit=limit, now=self._now)
        orphans = [row[0] for row in rows if row[4] is None]
        if orphans:
            what = {"ids": orphans, "target": target, "reason": ORPHANED}
            self._sql.count("discard_orphans", **what, now=self._now)
        found = [row for row in rows if row[4] is not None]
        if not found:
            return []
        token = self._sql.rows("next_lease_token")[0][0]
        what = {"ids": [row[0] for row in found], "target": target, "lease_token": token}
        self._sql.count("lease_forwards", **what, until=self._now + lease, now=self._now)
        return [self._claimed(row, target, token) for row in found]

    def _claimed(self, row: Row, target: str, token: int) -> ClaimedForward:
        return ClaimedForward(
            event=self._event(row[4:]),
            event_id=row[0],
            target=target,
            attempt=row[1],
            replay_count=row[2],
            lease_token=token,
            owed_at=self._sql.session.sure_instant(row[3]),
        )

    def _event(self, row: Row) -> Event:
        session = self._sql.session
        return Event(
            sequence=row[0],
            type=EventType(row[1]),
            rule=row[2],
            tenant=row[3],
            hold_key=row[4],
            digest=session.uuid(row[5]),
            generation=row[6],
            due_at=session.sure_instant(row[7]),
            at=session.sure_instant(row[8]),
            tokens=_object(row[9]),
            carry=_object(row[10]),
        )

    def renew(self, forwards: Sequence[ClaimedForward], lease: timedelta) -> int:
        """Prolong leases."""
        rows = [_fence(one) for one in forwards]
        return self._sql.many("renew_forwards", rows, until=self._now + lease, now=self._now)

    def take_back(self, limit: int) -> int:
        """Make forwards ready whose leases are over."""
        self._sql.rows("read_in_order")
        rows = self._sql.rows("ended_forward_leases", now=self._now, limit=limit)
        ends = [(row[0], row[1]) for row in rows]
        self._sql.many("take_back_forwards", ends, reason=LOST, now=self._now)
        transient = FailureClass.TRANSIENT.value
        lost = [(*row[:3], row[3] + 1, transient, LOST_CODE, LOST) for row in rows]
        self._sql.many("add_forward_attempts", lost, now=self._now)
        return len(rows)

    # ----------------------------------------------------------------------------- the answers

    def settle(self, handed: Sequence[Handed]) -> int:
        """Write down what became of hand-overs."""
        arrived = [one for one in handed if one.state is ForwardState.DELIVERED]
        others = [one for one in handed if one.state is not ForwardState.DELIVERED]
        ids = sorted({one.forward.event_id for one in arrived})
        if ids:
            self._sql.rows("lock_events", ids=ids)
        fences = [_fence(one.forward) for one in arrived]
        counted = self._sql.many("settle_delivered", fences, now=self._now)
        counted += self._settle_others(others)
        self._publish(ids)
        return counted

    def _settle_others(self, handed: Sequence[Handed]) -> int:
        if not handed:
            return 0
        text = self._sql.text("settle_forward")
        rows = [self._settlement(one) for one in handed]
        counts = self._sql.session.run_each(text, rows)
        held = [one for one, count in zip(handed, counts, strict=True) if count]
        failed = [_attempt_row(one) for one in held if one.failure_class is not None]
        self._sql.many("add_forward_attempts", failed, now=self._now)
        return len(held)

    def _settlement(self, one: Handed) -> dict[str, Any]:
        failure_class = None if one.failure_class is None else one.failure_class.value
        event_id, target, lease_token = _fence(one.forward)
        return {
            "event_id": event_id,
            "target": target,
            "lease_token": lease_token,
            "state": one.state.value,
            "spent_count": 0 if failure_class is None else 1,
            "available_at": one.available_at,
            "failure_class": failure_class,
            "reason": _cut(one.reason),
            "ended_at": self._now if one.state is ForwardState.DEAD else None,
            "now": self._now,
        }


def _fence(forward: ClaimedForward) -> tuple[int, str, int]:
    return forward.event_id, forward.target, forward.lease_token


def _attempt_row(one: Handed) -> Row:
    forward = one.forward
    assert one.failure_class is not None
    said = (one.failure_class.value, _cut(one.code) or "", _cut(one.reason) or "")
    return (forward.event_id, forward.target, forward.replay_count, forward.attempt + 1, *said)


def _cut(text: str | None) -> str | None:
    """Cut what a target said, where it said something."""
    return None if text is None else writable(text)


def _object(value: Any) -> dict[str, str | None]:
    return dict(json.loads(value)) if isinstance(value, str) else dict(value)
