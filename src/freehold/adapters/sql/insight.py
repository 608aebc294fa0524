"""Figures and history out of the ledger; implements `ports.insight.Figures` and `History`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from freehold.adapters.sql.guards import SqlGuards, SqlPauses
from freehold.adapters.sql.loops import SqlRuleStates
from freehold.adapters.sql.reviews import SqlReviews
from freehold.adapters.sql.session import Row, Runner
from freehold.adapters.sql.strays import SqlStrays
from freehold.domain.operations import OperationState, Outcome
from freehold.domain.pauses import Pause
from freehold.domain.retries import Failure, FailureClass
from freehold.domain.tallies import LAG_BOUNDS_SECONDS
from freehold.ports.guards import Guard
from freehold.ports.insight import (
    Depth,
    Ended,
    EndedOperation,
    Heartbeat,
    LastTick,
    NotedAct,
    OpenOperation,
    Outbox,
    QueueFigures,
    ToldEvent,
)
from freehold.ports.ledger import FailedAttempt, RuleState


class _Read:
    """Reads rows and their instants."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def at(self, value: Any) -> datetime:
        """Read an instant that is never NULL."""
        found = self._sql.session.instant(value)
        assert found is not None
        return found

    def oldest(self, values: Sequence[Any]) -> datetime | None:
        """Return the earliest of some instants as the database wrote them."""
        return min((self.at(value) for value in values if value is not None), default=None)


class SqlFigures(_Read):
    """How things stand, in one reading."""

    def depths(self, rules: Sequence[str], at_most: int) -> Mapping[str, Depth]:
        """Count the open work of each rule."""
        leased = {row[0]: row for row in self._sql.rows("leased_depth", limit=at_most)}
        return {rule: self._depth(rule, at_most, leased.get(rule)) for rule in rules}

    def _depth(self, rule: str, at_most: int, leased: Row | None) -> Depth:
        claimable = self._sql.rows("claimable_depth", rule=rule, limit=at_most)
        review = self._sql.rows("review_depth", rule=rule, limit=at_most)
        counts = {OperationState(row[0]): int(row[1]) for row in (*claimable, *review)}
        if leased is not None:
            counts[OperationState.LEASED] = int(leased[1])
        available_at = self.oldest([row[2] for row in claimable])
        dues = [row[3] for row in claimable] + ([leased[2]] if leased else [])
        return Depth(
            counts=counts,
            busy_count=sum(int(row[4]) for row in claimable),
            oldest_available_at=available_at
            if available_at and available_at <= self._now
            else None,
            oldest_due_at=self.oldest(dues),
        )

    def last_ticks(self, rules: Sequence[str]) -> Mapping[str, LastTick]:
        """Return the newest run of each rule."""
        found = {rule: self._sql.rows("newest_tick", rule=rule) for rule in rules}
        return {rule: self._tick(rows[0]) for rule, rows in found.items() if rows}

    def _tick(self, row: Row) -> LastTick:
        return LastTick(
            logical_time=self.at(row[0]),
            started_at=self.at(row[1]),
            finished_at=self._sql.session.instant(row[2]),
            host_at=self.at(row[3]),
            runner=row[4],
            found_count=row[5],
            new_count=row[6],
            outcome=row[7],
        )

    def ended(self, since: datetime, at_most: int) -> Mapping[tuple[str, str | None], Ended]:
        """Add up the newest tallies."""
        rows = self._sql.rows("recent_tallies", since=since, limit=at_most)
        counted_from = self.at(rows[-1][1]) if len(rows) == at_most else since
        whose: dict[tuple[str, str | None], list[Row]] = {}
        for row in rows:
            whose.setdefault((row[0], row[5]), []).append(row)
        return {key: _added_up(tallies, counted_from) for key, tallies in whose.items()}

    def failed(self, since: datetime, at_most: int) -> Mapping[str, int]:
        """Count the attempts that failed lately."""
        return dict(self._sql.rows("failed_lately", since=since, limit=at_most))

    def guards(self) -> Sequence[Guard]:
        """Return the guards that stand."""
        return SqlGuards(self._sql, self._now).standing()

    def pauses(self) -> Sequence[Pause]:
        """Return the pauses that stand."""
        return [one for one in SqlPauses(self._sql, self._now).open() if one.stands(self._now)]

    def outbox(self, at_most: int) -> Outbox:
        """Count the events that wait."""
        count, oldest_at = self._sql.rows("outbox_depth", limit=at_most)[0]
        return Outbox(count, self._sql.session.instant(oldest_at))

    def queue(self, since: datetime, at_most: int) -> QueueFigures:
        """Add up what came over the queue."""
        strays = SqlStrays(self._sql, self._now)
        return QueueFigures(strays.count_open(at_most), strays.counts_since(since))

    def heartbeats(self, at_most: int) -> Sequence[Heartbeat]:
        """Return the processes that beat."""
        rows = self._sql.rows("heartbeats", limit=at_most)
        return [self._heartbeat(row) for row in rows]

    def _heartbeat(self, row: Row) -> Heartbeat:
        return Heartbeat(
            worker=row[0],
            roles=row[1],
            host=row[2],
            pid=row[3],
            in_hand=row[4],
            host_at=self.at(row[5]),
            started_at=self.at(row[6]),
            beat_at=self.at(row[7]),
        )

    def states(self, rules: Sequence[str]) -> Mapping[str, RuleState]:
        """Return the state of each rule that the ledger has met."""
        states = SqlRuleStates(self._sql, self._now)
        found = {rule: states.read(rule) for rule in rules}
        return {rule: state for rule, state in found.items() if state is not None}


def _added_up(rows: Sequence[Row], since: datetime) -> Ended:
    skipped: Counter[str] = Counter()
    lag_counts = [0] * (len(LAG_BOUNDS_SECONDS) + 1)
    for row in rows:
        skipped.update(_json(row[3]))
        lag_counts = [a + b for a, b in zip(lag_counts, _json(row[4]), strict=True)]
    longest = [row[6] for row in rows if row[2]]
    known = bool(longest) and None not in longest
    return Ended(
        expired_count=sum(row[2] for row in rows),
        skipped=dict(skipped),
        lag_counts=lag_counts,
        since=since,
        lag_max_seconds=max(longest) if known else None,
        redelivery_count=sum(row[7] for row in rows),
    )


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


class SqlHistory(_Read):
    """What happened to one hold, in one reading."""

    def open_operations(self, rule: str, hold_key: str) -> Sequence[OpenOperation]:
        """Return the open operations of a hold."""
        rows = self._sql.rows("open_of_hold", rule=rule, hold_key=hold_key)
        return [self._open(row) for row in rows]

    def open_windows(self, rule: str) -> Sequence[OpenOperation]:
        """Return the windows of a rule that wait, or are worked on."""
        return [self._open(row) for row in self._sql.rows("open_windows", rule=rule)]

    def _open(self, row: Row) -> OpenOperation:
        instant = self._sql.session.instant
        failure = Failure(FailureClass(row[13]), row[15], row[14]) if row[13] else None
        return OpenOperation(
            id=row[0],
            rule=row[1],
            tenant=row[2],
            hold_key=row[3],
            digest=self._sql.session.uuid(row[4]),
            due_at=instant(row[5]),
            generation=row[6],
            state=OperationState(row[7]),
            reason=row[8],
            attempt=row[9],
            deferrals=row[10],
            available_at=self.at(row[11]),
            leased_until=instant(row[12]),
            failure=failure,
            found_at=self.at(row[16]),
            changed_at=self.at(row[17]),
        )

    def records(self, rule: str, hold_key: str, limit: int) -> Sequence[EndedOperation]:
        """Return the newest records of a hold, oldest first."""
        rows = self._sql.rows("records_of_hold", rule=rule, hold_key=hold_key, limit=limit)
        return [self._record(row) for row in reversed(rows)]

    def _record(self, row: Row) -> EndedOperation:
        return EndedOperation(
            operation_id=row[0],
            digest=self._sql.session.uuid(row[1]),
            generation=row[2],
            due_at=self._sql.session.instant(row[3]),
            outcome=Outcome(row[4]),
            reason=row[5],
            attempt=row[6],
            found_at=self.at(row[7]),
            finished_at=self.at(row[8]),
        )

    def attempts(self, operation_id: int) -> Sequence[FailedAttempt]:
        """Return the failed attempts of one operation."""
        return SqlReviews(self._sql, self._now).attempts(operation_id)

    def events(self, operation_ids: Sequence[int]) -> Sequence[ToldEvent]:
        """Return the events of operations."""
        return [self._event(row) for one in operation_ids for row in self._events_of(one)]

    def _events_of(self, operation_id: int) -> list[Row]:
        return self._sql.rows("events_of_operation", id=operation_id)

    def _event(self, row: Row) -> ToldEvent:
        published_at = self._sql.session.instant(row[6])
        return ToldEvent(row[0], row[1], row[2], row[3], self.at(row[4]), row[5], published_at)

    def acts(self, subjects: Sequence[str], limit: int) -> Sequence[NotedAct]:
        """Return the newest acts on these subjects, oldest first."""
        rows = [
            row
            for subject in subjects
            for row in self._sql.rows("acts_on", subject=subject, limit=limit)
        ]
        found = [NotedAct(self.at(row[0]), row[1], row[2], row[3]) for row in rows]
        return sorted(found, key=lambda act: act.at)[-limit:]
