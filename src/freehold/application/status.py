"""Status: the figures of every rule, and one sentence for each thing that should not be so.

*Invariants*: its cost does not grow with the tables (every count stops at `COUNT_MOST`); one rule
whose table cannot be read hides no other rule. *Not here*: how it is printed (`entrypoints.cli`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from freehold.application.event_findings import EventFigures, read_figures
from freehold.domain.due import is_due, read_due, released_from
from freehold.domain.errors import DatabaseError, RuleRefused, StatementTimedOut
from freehold.domain.operations import CLAIMABLE, OperationState
from freehold.domain.pauses import Pause
from freehold.domain.reports import ReportPolicy
from freehold.domain.rules import Rule
from freehold.domain.schedule import Cron, Every, last_at_or_before
from freehold.domain.tallies import lags
from freehold.ports.guards import Guard
from freehold.ports.holds import FoundHold
from freehold.ports.insight import (
    Depth,
    Ended,
    Heartbeat,
    HoldsInSight,
    LastTick,
    Outbox,
    QueueFigures,
    Readable,
    Reading,
)
from freehold.ports.ledger import RuleState
from freehold.ports.report_insight import ReportFigures
from freehold.ports.system import HostClock

COUNT_MOST = 10_000  # a count that is larger reads "more than"
FIRST_DUE = 100  # due rows looked at, oldest first, and again from twice the promise ago
TALLIES_MOST = 10_000
TENANTS_SHOWN = 20  # of each rule, those with the longest lags first
HEARTBEATS_MOST = 1_000
WINDOW = timedelta(hours=1)
REPORTS_SINCE = timedelta(days=2)  # the counts by state are of yesterday and the day before
SILENT_AFTER = timedelta(seconds=30)  # six heartbeats
LATE_AFTER = timedelta(seconds=30)  # a firing that has not begun by then
ROLLED_UP_LATE_AFTER = timedelta(minutes=2)  # a schedule that shares a row a minute leaves each one
SKEW_MOST = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class HoldFigures:
    """What the customer's table says.

    Attributes:
        oldest_due_at: the oldest due of a hold that is due and held, in review or not.
        missed_due_at: the oldest due of such a hold that no operation was written for.
        empty_count: held rows whose due is NULL or zero; None where no index can count them.
        unreadable_count: rows among those looked at whose due cannot be read.
        trouble: why the table could not be read.
    """

    oldest_due_at: datetime | None = None
    missed_due_at: datetime | None = None
    empty_count: int | None = None
    unreadable_count: int = 0
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class RuleStatus:
    """Everything about one rule; `state` and `tick` are None until it was met.

    Attributes:
        tenants: what ended by tenant, the longest lags first, at most `TENANTS_SHOWN`.
        tenant_count: how many tenants something ended for.
    """

    rule: Rule
    state: RuleState | None
    depth: Depth
    holds: HoldFigures
    ended: Ended | None
    tick: LastTick | None
    tick_late: bool
    tenants: Sequence[tuple[str | None, Ended]] = ()
    tenant_count: int = 0

    def count(self, *states: OperationState) -> int:
        """Return how many operations are in these states."""
        return sum(self.depth.counts.get(state, 0) for state in states)

    @property
    def oldest_unreleased_at(self) -> datetime | None:
        """Return the oldest due that is neither released nor in review."""
        dues = (self.depth.oldest_due_at, self.holds.missed_due_at)
        return min((due for due in dues if due is not None), default=None)


@dataclass(frozen=True, slots=True)
class Status:
    """How things stand.

    Attributes:
        host_skew: the host's clock minus the database's, as of this look.
        failed: attempts that failed in the last hour, by class, of all rules together.
        guards: what froze releases and still does.
        pauses: what a person paused, and is paused still.
        reports: None where the daily report is off.
        queue: what came over the queue in the last hour, and strays.
    """

    now: datetime
    host_skew: timedelta
    rules: Sequence[RuleStatus]
    outbox: Outbox
    alive: Sequence[Heartbeat]
    silent: Sequence[Heartbeat]
    failed: Mapping[str, int] = field(default_factory=dict)
    guards: Sequence[Guard] = ()
    pauses: Sequence[Pause] = ()
    reports: ReportFigures | None = None
    report_policy: ReportPolicy | None = None
    queue: QueueFigures = field(default_factory=QueueFigures)
    events: EventFigures = field(default_factory=EventFigures)
    findings: Sequence[str] = field(default=())


def status(
    source: Readable,
    rules: Sequence[Rule],
    host_clock: HostClock,
    report_policy: ReportPolicy | None = None,
    targets: Collection[str] = (),
) -> Status:
    """Read all figures and judge them.

    Args:
        report_policy: None where the daily report is off.
        targets: names of the configured targets.

    Raises:
        DatabaseAway: the database cannot be reached.
    """
    names = [rule.name for rule in rules]
    with source.reading() as reading:
        skew = host_clock.wall() - reading.now
        figures, now = reading.figures, reading.now
        states, depths = figures.states(names), figures.depths(names, COUNT_MOST + 1)
        ended, ticks = figures.ended(now - WINDOW, TALLIES_MOST), figures.last_ticks(names)
        outbox, beats = figures.outbox(COUNT_MOST + 1), figures.heartbeats(HEARTBEATS_MOST)
        queue = figures.queue(now - WINDOW, COUNT_MOST + 1)
        events = read_figures(reading, targets, COUNT_MOST + 1)
        failed = figures.failed(now - WINDOW, COUNT_MOST + 1)
        guards, pauses = figures.guards(), figures.pauses()
        reports = None if report_policy is None else _reports(reading)
    rows = [
        RuleStatus(
            rule=rule,
            state=states.get(rule.name),
            depth=depths[rule.name],
            holds=_look(source, rule),
            ended=added_up([one for (name, _), one in ended.items() if name == rule.name]),
            tick=ticks.get(rule.name),
            tick_late=_is_late(rule, ticks.get(rule.name), now),
            tenants=_worst_tenants(rule, ended),
            tenant_count=sum(name == rule.name for name, _ in ended),
        )
        for rule in rules
    ]
    alive = [beat for beat in beats if now - beat.beat_at <= SILENT_AFTER]
    silent = [beat for beat in beats if now - beat.beat_at > SILENT_AFTER]
    return Status(
        now=now,
        host_skew=skew,
        rules=rows,
        outbox=outbox,
        alive=alive,
        silent=silent,
        failed=failed,
        guards=guards,
        pauses=pauses,
        reports=reports,
        report_policy=report_policy,
        queue=queue,
        events=events,
    )


def _reports(reading: Reading) -> ReportFigures:
    return reading.reports.figures((reading.now - REPORTS_SINCE).date(), COUNT_MOST + 1)


def added_up(parts: Sequence[Ended]) -> Ended | None:
    """Add up what ended for several tenants; None for nothing."""
    if not parts:
        return None
    skipped: Counter[str] = Counter()
    for part in parts:
        skipped.update(part.skipped)
    longest = [part.lag_max_seconds for part in parts if part.expired_count]
    known = [seconds for seconds in longest if seconds is not None]
    return Ended(
        expired_count=sum(part.expired_count for part in parts),
        skipped=dict(skipped),
        lag_counts=[sum(counts) for counts in zip(*(p.lag_counts for p in parts), strict=True)],
        since=parts[0].since,
        lag_max_seconds=max(known) if known and len(known) == len(longest) else None,
        redelivery_count=sum(part.redelivery_count for part in parts),
    )


def _worst_tenants(
    rule: Rule, ended: Mapping[tuple[str, str | None], Ended]
) -> Sequence[tuple[str | None, Ended]]:
    ours = [(tenant, one) for (name, tenant), one in ended.items() if name == rule.name]
    return sorted(ours, key=lambda one: -_longest_lag(one[1]))[:TENANTS_SHOWN]


def _longest_lag(ended: Ended) -> float:
    return lags(ended.lag_counts, ended.lag_max_seconds)["max"] or 0.0


def _is_late(rule: Rule, tick: LastTick | None, now: datetime) -> bool:
    """Tell whether the schedule should have begun a run that it did not."""
    if isinstance(rule.schedule, Cron) or (
        isinstance(rule.schedule, Every) and rule.schedule.seconds >= WINDOW.seconds // 60
    ):
        wanted = last_at_or_before(rule.schedule, now - LATE_AFTER)
        return wanted is not None and (tick is None or tick.logical_time < wanted)
    return tick is None or now - tick.started_at > ROLLED_UP_LATE_AFTER


def _look(source: Readable, rule: Rule) -> HoldFigures:
    """Look at the customer's table in snapshots of its own: it may be missing or slow."""
    try:
        with source.reading() as reading:
            rows = _first_due(reading, reading.holds(rule), rule)
    except RuleRefused as error:
        return HoldFigures(trouble=str(error))
    except StatementTimedOut:
        return HoldFigures(
            trouble="reading the first due holds takes too long; see `freehold doctor`"
        )
    return _judged(rows, rule, reading.now, _count_empty(source, rule))


def _first_due(reading: Reading, holds: HoldsInSight, rule: Rule) -> list[FoundHold]:
    """Read the oldest due rows, and those of late: what is in review may fill the oldest ones."""
    rows = list(holds.first_due(FIRST_DUE))
    if len(rows) == FIRST_DUE and rule.due.comparable_bare:
        rows += holds.first_due(FIRST_DUE, reading.now - 2 * rule.promise)
    return rows


def _count_empty(source: Readable, rule: Rule) -> int | None:
    try:
        with source.reading() as reading:
            return reading.holds(rule).count_empty_due(COUNT_MOST + 1)
    except DatabaseError:
        return None


def _judged(
    rows: Sequence[FoundHold], rule: Rule, now: datetime, empty_count: int | None
) -> HoldFigures:
    read = [(row, read_due(rule.due, row.due)) for row in rows]
    due = [(row, at) for row, at in read if isinstance(at, datetime) and is_due(rule.due, at, now)]
    return HoldFigures(
        oldest_due_at=min((at for _, at in due), default=None),
        missed_due_at=min((at for row, at in due if not row.is_open), default=None),
        empty_count=empty_count,
        unreadable_count=sum(not isinstance(at, datetime) for _, at in read),
    )


def overdue(row: RuleStatus, now: datetime) -> timedelta | None:
    """Return how long ago the oldest unreleased hold could have been released."""
    due = row.oldest_unreleased_at
    return None if due is None else max(timedelta(0), now - released_from(row.rule.due, due))


def waits(row: RuleStatus) -> bool:
    """Tell whether the rule has work that is not in review."""
    working = row.count(*CLAIMABLE, OperationState.LEASED)
    return bool(working) or row.holds.missed_due_at is not None
