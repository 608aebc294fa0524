"""When a rule is scanned: fires its schedule, keeps the tick rows, and says how long to sleep.

*Invariants*: a firing has one row; one that never finished is taken over under its own logical
time; after downtime the schedule catches up once. Sub-minute schedules share one row a minute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from freehold.application.guards import note_clock
from freehold.application.rulestate import pause
from freehold.application.scan import LEAD_BATCHES, Scanner, ScanResult
from freehold.domain.due import zone_info
from freehold.domain.errors import RuleRefused
from freehold.domain.rules import Rule
from freehold.domain.schedule import Cron, Every, Precise, Schedule, last_at_or_before, next_after
from freehold.domain.schedule_notes import note
from freehold.ports.ledger import Ledger, Tick, Transaction
from freehold.ports.system import Boundary, Checkpoint, HostClock
from freehold.ports.telemetry import UNHEARD, Telemetry, TickFinished

ROLLED_UP_BELOW_SECONDS = 60
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Firing:
    """What came of looking at one rule's schedule."""

    scan: ScanResult | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class _Run:
    """A run in hand: its row, and what its scan has counted so far."""

    tick: Tick
    counted: ScanResult = field(default_factory=ScanResult)


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
        telemetry: Telemetry = UNHEARD,
    ) -> None:
        self._ledger = ledger
        self._scanner = scanner
        self._host_clock = host_clock
        self._runner = runner
        self._checkpoint = checkpoint
        self._poll = poll
        self._telemetry = telemetry
        self._noted: dict[str, datetime] = {}
        self._turns: dict[str, datetime] = {}
        self._runs: dict[str, _Run] = {}

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
        """Go on with the run in hand, else begin the newest logical time that is not done.

        A run ends with its scan: the workers may have had enough to do for a while.
        """
        run = self._kept(rule) or self._begun(rule)
        if run is None:
            return None
        page = self._scan(rule, run.tick, LEAD_BATCHES)
        run.counted.add(page)
        if page.finished or not (page.admitted or page.paused):
            self._finish(run.tick, run.counted, admitted=page.admitted, own_row=True)
        else:
            self._runs[rule.name] = run
        return page

    def _kept(self, rule: Rule) -> _Run | None:
        """Take the run in hand up again, unless somebody has taken it over."""
        run = self._runs.pop(rule.name, None)
        if run is None:
            return None
        with self._ledger.transaction() as tx:
            return run if tx.ticks.keep(run.tick) else None

    def _begun(self, rule: Rule) -> _Run | None:
        schedule = rule.schedule
        if isinstance(schedule, Precise):
            return None
        with self._ledger.transaction() as tx:
            # A younger firing may have finished meanwhile; the old one is still owed its end.
            logical = tx.ticks.oldest_unfinished(rule.name) or self._owed(tx, rule, schedule)
            tick = None if logical is None else self._start(tx, rule, logical)
            if tick is not None:
                note_clock(tx)
        return None if tick is None else _Run(tick)

    def _owed(self, tx: Transaction, rule: Rule, schedule: Every | Cron) -> datetime | None:
        """Return the newest logical time, None if it is done.

        One in the future was done before the clock was set back, and says nothing about it.
        """
        logical, last = last_at_or_before(schedule, tx.now), tx.ticks.last(rule.name)
        done = logical is None or (last is not None and logical <= last <= tx.now)
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
            turn = _turn(rule.schedule, tx.now)
            if turn is not None and self._turns.get(rule.name) == turn:
                return None
            if turn is not None:
                self._turns[rule.name] = turn
            minute = tx.now.replace(second=0, microsecond=0)
            unfinished = tx.ticks.oldest_unfinished(rule.name)
            if not due and unfinished is None and self._noted.get(rule.name) == minute:
                return None
            tick = self._start(tx, rule, unfinished or minute, rolled_up=True)
            if self._noted.get(rule.name) != minute:
                note_clock(tx)
        self._noted[rule.name] = minute
        result = self._under(rule, tick, LEAD_BATCHES)
        if not result.finished:
            self._turns.pop(rule.name, None)
        return result

    def scan_now(self, rule: Rule) -> ScanResult:
        """Scan at once, whatever the schedule says, under a tick row of this instant."""
        with self._ledger.transaction() as tx:
            tick = self._start(tx, rule, tx.now)
            note_clock(tx)
        return self._under(rule, tick, None)

    def _under(self, rule: Rule, tick: Tick | None, pages_most: int | None) -> ScanResult:
        """Scan under a tick row and finish it; without a row where another runner is at it."""
        if tick is None:
            alone = self._scanner.scan(rule, None, pages_most)
            self._telemetry.tell(_told(rule.name, None, alone, _outcome(alone, alone.admitted)))
            return alone
        result = self._scan(rule, tick, pages_most)
        self._finish(tick, result, admitted=result.admitted)
        return result

    def _scan(self, rule: Rule, tick: Tick, pages_most: int | None) -> ScanResult:
        self._checkpoint.reach(Boundary.TICK_STARTED)
        return self._scanner.scan(rule, tick.id, pages_most)

    def _finish(
        self, tick: Tick, counted: ScanResult, *, admitted: bool, own_row: bool = False
    ) -> None:
        said = _outcome(counted, admitted)
        with self._ledger.transaction() as tx:
            tx.ticks.finish(tick, counted.found_count, counted.new_count, said)
            late = (tx.now - tick.logical_time).total_seconds() if own_row else None
        self._checkpoint.reach(Boundary.TICK_FINISHED)
        self._telemetry.tell(_told(tick.schedule, tick.id, counted, said, late))

    def sleep_seconds(self, rule: Rule) -> float:
        """Return how long nothing of this rule falls due, at most one poll interval."""
        poll = self._poll.total_seconds()
        try:
            with self._ledger.transaction() as tx:
                wake = self._next_wake(tx, rule)
                due_in = poll if wake is None else (wake - tx.now).total_seconds()
        except RuleRefused:
            return poll  # the scan says what is wrong, and pauses the rule
        return min(poll, max(0.0, due_in))

    def _next_wake(self, tx: Transaction, rule: Rule) -> datetime | None:
        if isinstance(rule.schedule, Precise):
            return tx.holds(rule).next_due(tx.now + self._poll)
        return next_after(rule.schedule, tx.now)


def _outcome(counted: ScanResult, admitted: bool) -> str:
    if not admitted:
        return "not attached or paused"
    return "done" if counted.finished else "workers have enough to do"


def _told(
    rule: str,
    tick_id: int | None,
    counted: ScanResult,
    said: str,
    late_seconds: float | None = None,
) -> TickFinished:
    return TickFinished(
        rule=rule,
        tick=tick_id,
        found_count=counted.found_count,
        new_count=counted.new_count,
        unreadable_count=counted.unreadable_count,
        outcome=said,
        late_seconds=late_seconds,
    )


def _rolls_up(rule: Rule) -> bool:
    match rule.schedule:
        case Every(seconds):
            return seconds < ROLLED_UP_BELOW_SECONDS
        case Cron():
            return False
    return True


def _turn(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the logical time of a short interval; a precise schedule has its turn always."""
    return last_at_or_before(schedule, now) if isinstance(schedule, Every) else None


@dataclass(frozen=True, slots=True)
class NextFiring:
    """One firing to come.

    Attributes:
        local: the same instant on the clock of the schedule's zone.
        note: what a jump of that clock has to do with it; empty as a rule.
    """

    utc: datetime
    local: datetime
    note: str


def next_firings(schedule: Schedule, after: datetime, count: int) -> list[NextFiring]:
    """Return the next firings; none for `Precise`, which goes by the holds."""
    if isinstance(schedule, Precise):
        return []
    zone = zone_info(schedule.zone) if isinstance(schedule, Cron) else UTC
    firings: list[NextFiring] = []
    for _ in range(count):
        previous, after = after, next_after(schedule, after)
        firings.append(NextFiring(after, after.astimezone(zone), note(schedule, after, previous)))
    return firings
