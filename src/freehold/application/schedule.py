"""When a rule is scanned: fires its schedule, keeps the tick rows, and says how long to sleep.

*Invariants*: a firing has one row; one that never finished is taken over under its own logical
time; after downtime the schedule catches up once. Sub-minute schedules share one row a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from freehold.application.rulestate import pause
from freehold.application.scan import Scanner, ScanResult
from freehold.domain.due import zone_info
from freehold.domain.errors import RuleRefused
from freehold.domain.rules import Rule
from freehold.domain.schedule import Cron, Every, Precise, Schedule, last_at_or_before, next_after
from freehold.ports.ledger import Ledger, Tick, Transaction
from freehold.ports.system import Boundary, Checkpoint, HostClock

ROLLED_UP_BELOW_SECONDS = 60
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Firing:
    """What came of looking at one rule's schedule."""

    scan: ScanResult | None = None
    paused: bool = False


class Scheduler:
    """Fires the schedules of rules on one ledger connection."""

    def __init__(
        self,
        ledger: Ledger,
        scanner: Scanner,
        host_clock: HostClock,
        runner: str,
        checkpoint: Checkpoint,
        poll: timedelta = timedelta(seconds=1),
    ) -> None:
        self._ledger = ledger
        self._scanner = scanner
        self._host_clock = host_clock
        self._runner = runner
        self._checkpoint = checkpoint
        self._poll = poll
        self._noted: dict[str, datetime] = {}

    def fire(self, rule: Rule) -> Firing:
        """Scan the rule if its schedule says so.

        Raises:
            DatabaseAway: the database cannot be reached; the firing is caught up later.
        """
        try:
            return Firing(self._rolled_up(rule) if _rolls_up(rule) else self._once(rule))
        except RuleRefused as error:
            with self._ledger.transaction() as tx:
                pause(tx, rule, str(error))
            return Firing(paused=True)

    def _once(self, rule: Rule) -> ScanResult | None:
        """Run the newest logical time that is not done, or an old one that never finished."""
        schedule = rule.schedule
        if isinstance(schedule, Precise):
            return None
        with self._ledger.transaction() as tx:
            # A younger firing may have finished meanwhile; the old one is still owed its end.
            logical = tx.ticks.oldest_unfinished(rule.name) or self._owed(tx, rule, schedule)
            tick = None if logical is None else self._start(tx, rule, logical)
        return None if tick is None else self._run(rule, tick)

    def _owed(self, tx: Transaction, rule: Rule, schedule: Every | Cron) -> datetime | None:
        logical, last = last_at_or_before(schedule, tx.now), tx.ticks.last(rule.name)
        done = logical is None or (last is not None and last >= logical)
        return None if done else logical

    def _start(
        self, tx: Transaction, rule: Rule, logical: datetime, *, rolled_up: bool = False
    ) -> Tick | None:
        wall = self._host_clock.wall()
        return tx.ticks.start(rule.name, logical, self._runner, wall, rolled_up=rolled_up)

    def _rolled_up(self, rule: Rule) -> ScanResult | None:
        """Run when something is due, and at least once a minute, under the minute's row."""
        due = self._scanner.something_due(rule)
        with self._ledger.transaction() as tx:
            minute = tx.now.replace(second=0, microsecond=0)
            unfinished = tx.ticks.oldest_unfinished(rule.name)
            if not due and unfinished is None and self._noted.get(rule.name) == minute:
                return None
            tick = self._start(tx, rule, unfinished or minute, rolled_up=True)
        self._noted[rule.name] = minute
        return self._scanner.scan(rule) if tick is None else self._run(rule, tick)

    def _run(self, rule: Rule, tick: Tick) -> ScanResult:
        self._checkpoint.reach(Boundary.TICK_STARTED)
        result = self._scanner.scan(rule, tick.id)
        outcome = "done" if result.finished else "workers have enough to do"
        with self._ledger.transaction() as tx:
            admitted = outcome if result.admitted else "not attached or paused"
            tx.ticks.finish(tick, result.found_count, result.new_count, admitted)
        self._checkpoint.reach(Boundary.TICK_FINISHED)
        return result

    def scan_now(self, rule: Rule) -> ScanResult:
        """Scan at once, whatever the schedule says, under a tick row of this instant."""
        with self._ledger.transaction() as tx:
            tick = self._start(tx, rule, tx.now)
        return self._scanner.scan(rule) if tick is None else self._run(rule, tick)

    def sleep_seconds(self, rule: Rule) -> float:
        """Return how long nothing of this rule falls due, at most one poll interval."""
        poll = self._poll.total_seconds()
        with self._ledger.transaction() as tx:
            if isinstance(rule.schedule, Precise):
                wake = tx.holds(rule).next_due(tx.now + self._poll)
            else:
                wake = next_after(rule.schedule, tx.now)
            return poll if wake is None else min(poll, max(0.0, (wake - tx.now).total_seconds()))


def _rolls_up(rule: Rule) -> bool:
    match rule.schedule:
        case Every(seconds):
            return seconds < ROLLED_UP_BELOW_SECONDS
        case Cron():
            return False
    return True


def next_firings(
    schedule: Schedule, after: datetime, count: int
) -> list[tuple[datetime, datetime]]:
    """Return the next firings, each in UTC and in the schedule's zone; none for `Precise`."""
    if isinstance(schedule, Precise):
        return []
    zone = zone_info(schedule.zone) if isinstance(schedule, Cron) else UTC
    firings: list[tuple[datetime, datetime]] = []
    for _ in range(count):
        after = next_after(schedule, after)
        firings.append((after, after.astimezone(zone)))
    return firings
