"""The service: one thread a role over the application's loops, a drain on SIGTERM.

*Invariants*: no thread shares a connection; an error of the database never ends a loop; a stop
request lets the batch in hand finish. *Not here*: what one step does (`application`).
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from freehold.adapters.system import StopRequest, SystemClock, SystemDice
from freehold.application.direct import StraightPages
from freehold.application.guards import GuardTeller, note_clock
from freehold.application.prune import Pruner
from freehold.application.remap import follow_mappings
from freehold.application.scan import Scanner
from freehold.application.schedule import Scheduler
from freehold.application.supply import Hints, Supply
from freehold.application.sweep import Sweeper
from freehold.application.together import Tools
from freehold.application.work import PassEnd, Worker
from freehold.bootstrap import open_handling, open_ledger
from freehold.domain.errors import DatabaseAway, DatabaseError, WorkLeft
from freehold.domain.pauses import Role
from freehold.domain.rules import Rule
from freehold.entrypoints.dispatching import Dispatching
from freehold.entrypoints.pacing import (
    AHEAD_SECONDS,
    SHORTEST_SECONDS,
    AwayPause,
    IdlePause,
    Loop,
)
from freehold.entrypoints.relaying import Relaying, follow_targets
from freehold.entrypoints.reporting import Reporting
from freehold.ports.ledger import Ledger
from freehold.ports.system import Checkpoint
from freehold.ports.telemetry import (
    DatabaseTrouble,
    RulePaused,
    RuleResumed,
    ServiceStarted,
    ServiceStopped,
    Telemetry,
)
from freehold.settings import Settings

HEARTBEAT = "heartbeat"  # the first to run: it makes the ledger know what is configured
IDLE_SECONDS = 3_600.0  # the main thread only waits for a signal


@dataclass(slots=True)
class Service:
    """Runs roles until it is asked to stop.

    Attributes:
        wake: set when this process wrote operations, so that its worker need not poll.
        paused: the rules that this process has told to be paused.
    """

    settings: Settings
    checkpoint: Checkpoint
    telemetry: Telemetry
    stop: StopRequest = field(default_factory=StopRequest)
    wake: threading.Event = field(default_factory=threading.Event)
    workers: list[Worker] = field(default_factory=list)
    straights: list[StraightPages] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)
    crash: Exception | None = None
    _name: str = field(default_factory=lambda: SystemDice().name())
    _wakes: dict[str, threading.Event] = field(default_factory=dict)
    _followed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._wakes["work"] = self.wake

    def run(self, roles: Sequence[Role]) -> None:
        """Run the roles, each in a thread, until `stop` is asked for; then drain."""
        loops: list[tuple[str, Callable[[], None]]] = [(HEARTBEAT, self._heartbeat_loop(roles))]
        if Role.SCAN in roles:
            loops.append(("scan", self._scan_loop()))
        alone = Role.SCAN not in roles
        if Role.DISPATCH in roles:
            loops.append(self._run_of(self._dispatch_loop(alone=alone)))
        if Role.WORK in roles:
            loops += [*self._work_loops(alone=alone), ("sweep", self._sweep_loop())]
        if Role.RELAY in roles:
            self._wakes["relay"] = threading.Event()
            relaying = Relaying(self.settings, self.checkpoint, self.telemetry, self.stop)
            loops.append(self._run_of(relaying.loop()))
        if Role.REPORT in roles:
            loops += self._report_loops()
        threads = [threading.Thread(target=loop, name=name, daemon=True) for name, loop in loops]
        self.telemetry.tell(ServiceStarted(",".join(roles), os.getpid()))
        for thread in threads:
            thread.start()
        self._drain(threads)
        self.telemetry.tell(ServiceStopped(os.getpid()))
        if self.crash is not None:
            raise self.crash

    def _drain(self, threads: Sequence[threading.Thread]) -> None:
        """Wait for a stop request, then for the batches in hand, but no longer than the limit.

        What is still in hand then is rolled back by its database, and done by the next process.
        """
        while not self.stop.wait(IDLE_SECONDS):
            pass
        clock = SystemClock()
        ends = clock.monotonic() + self.settings.loops.drain.total_seconds()
        for thread in threads:
            thread.join(max(0.0, ends - clock.monotonic()))
        late = [thread.name for thread in threads if thread.is_alive()]
        if late:
            raise WorkLeft(
                f"The drain limit was over before {' and '.join(late)} had finished; nothing was "
                "lost, the next process goes on."
            )

    def ask_to_stop(self) -> None:
        """Ask all loops to finish what is in hand and end."""
        self.stop.stop()
        self._followed.set()
        for wake in self._wakes.values():
            wake.set()

    def _loop(self, name: str, step: Callable[[], float], close: Callable[[], None]) -> None:
        """Repeat a step, which returns seconds to wait; back off while the database is away.

        No loop works before the ledger knows rules and targets: an event written earlier would be
        kept, and nobody told.
        """
        away = AwayPause()
        if name != HEARTBEAT:
            self._followed.wait()
        try:
            while not self.stop.stopping:
                try:
                    seconds = step()
                    away.end()
                except DatabaseError as error:
                    self._tell_trouble(name, error)
                    seconds = away.next_seconds()
                self._wait(name, seconds)
        except Exception as error:  # noqa: BLE001 - a dead loop must end the process, loudly
            self.crash = error
            self.ask_to_stop()
        finally:
            close()

    def _wait(self, name: str, seconds: float) -> None:
        wake = self._wakes.get(name)
        if wake is None:
            self.stop.wait(seconds)
        else:
            wake.wait(seconds)
            wake.clear()

    def _scan_loop(self) -> Callable[[], None]:
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        straight = self._straight(ledger)
        scheduler = self._scheduler(ledger, straight)

        def step() -> float:
            ahead: list[bool] = []
            straight.take()
            self._each_rule("scan", lambda rule: ahead.append(self._fire(scheduler, rule)))
            released_count = straight.take().released_count
            if released_count:
                self._wake("relay")
            if any(ahead):
                return 0.0 if released_count else AHEAD_SECONDS
            return max(SHORTEST_SECONDS, self._until_due(scheduler))

        return lambda: self._loop("scan", step, ledger.close)

    def _straight(self, ledger: Ledger) -> StraightPages:
        """Return what releases the pages of mode `direct`; the heartbeat looks at it."""
        tools = Tools(ledger, self.checkpoint, SystemDice(), self.stop, self.telemetry)
        straight = StraightPages(tools, halt=lambda: self.stop.stopping)
        self.straights.append(straight)
        return straight

    def _scheduler(self, ledger: Ledger, straight: StraightPages | None = None) -> Scheduler:
        scanner = Scanner(ledger, self.checkpoint, self._wake_all, straight)
        poll = self.settings.loops.poll
        clock, telemetry = SystemClock(), self.telemetry
        return Scheduler(ledger, scanner, clock, self._name, self.checkpoint, poll, telemetry)

    def _wake_all(self) -> None:
        """Tell the loops of this process that operations were written."""
        self._wake("dispatch")
        self._wake("work")

    def _wake(self, name: str) -> None:
        if name in self._wakes:
            self._wakes[name].set()

    def _until_due(self, scheduler: Scheduler) -> float:
        poll = self.settings.loops.poll.total_seconds()
        waits = [poll]
        self._each_rule("scan", lambda rule: waits.append(scheduler.sleep_seconds(rule)))
        return min(waits)

    def _each_rule(self, loop: str, step: Callable[[Rule], None]) -> None:
        """Do a step for every rule; one that the database refuses holds up no other."""
        for rule in self.settings.rules:
            try:
                step(rule)
            except DatabaseAway:
                raise
            except DatabaseError as error:
                self._tell_trouble(loop, error, rule)

    def _tell_trouble(self, loop: str, error: DatabaseError, rule: Rule | None = None) -> None:
        name = None if rule is None else rule.name
        self.telemetry.tell(DatabaseTrouble(loop, type(error).__name__, error.code, name))

    def _fire(self, scheduler: Scheduler, rule: Rule) -> bool:
        """Fire a rule's schedule; True when its scan stopped far ahead of the workers."""
        scan = scheduler.fire(rule).scan
        if scan is None:
            return False
        return scan.admitted and not scan.finished

    def _dispatching(self) -> Dispatching:
        return Dispatching(
            self.settings, self.checkpoint, self.telemetry, self._name, self._each_rule
        )

    def _dispatch_loop(self, *, alone: bool) -> Loop:
        poll = self.settings.loops.poll.total_seconds()
        schedulers: list[Scheduler] = []

        def until_due(ledger: Ledger) -> float:
            if not alone:
                return poll
            if not schedulers:
                schedulers.append(self._scheduler(ledger))
            return self._until_due(schedulers[0])

        self._wakes["dispatch"] = threading.Event()
        return self._dispatching().dispatch_loop(until_due)

    def _work_loops(self, *, alone: bool) -> list[tuple[str, Callable[[], None]]]:
        """Return the loops that release: from the ledger, and from a queue where there is one."""
        if self.settings.queue is None:
            return [("work", self._work_loop(alone=alone))]
        hints = Hints(SystemClock(), self.telemetry, on_lost=self.wake.set)
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        deliveries = self._dispatching().deliveries_loop(
            self._worker(ledger), ledger, hints, lambda: self._wake("relay")
        )
        return [("work", self._work_loop(hints, alone=alone)), self._run_of(deliveries)]

    def _worker(self, ledger: Ledger) -> Worker:
        """Return a worker that heartbeat and sweep know of."""
        worker = Worker(
            ledger,
            self.checkpoint,
            SystemDice(),
            self.stop,
            lease=self.settings.loops.lease,
            telemetry=self.telemetry,
            handling=open_handling(self.settings, self.telemetry),
        )
        worker.straight.halt = lambda: self.stop.stopping
        self.workers.append(worker)
        return worker

    def _work_loop(self, hints: Hints | None = None, *, alone: bool) -> Callable[[], None]:
        """Return the loop that works from the ledger; alone, no scanner of this process wakes it.

        Args:
            hints: of the broker that brings most of the work; None where there is none.
        """
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        worker = self._worker(ledger)
        sweep = self.settings.loops.sweep
        supply = None if hints is None else Supply(ledger, hints, sweep, self.telemetry)
        poll = self.settings.loops.poll.total_seconds()
        scheduler = self._scheduler(ledger)
        pause = IdlePause(poll, lambda: self._until_due(scheduler) if alone else poll)

        def step() -> float:
            ends: list[PassEnd] = []

            def work(rule: Rule) -> None:
                if supply is None or supply.is_from_ledger(rule):
                    ends.append(self._work(worker, rule))

            self._each_rule("work", work)
            return pause.after(busy=PassEnd.WORKED in ends)

        return lambda: self._loop("work", step, ledger.close)

    def _work(self, worker: Worker, rule: Rule) -> PassEnd:
        """Work one batch of a rule; say it once when the rule is paused, or works again."""
        end = worker.work(rule).end
        if end is PassEnd.WORKED:
            self._wake("relay")
        if end is PassEnd.GUARDED:  # the heartbeat says so
            return end
        if (end is PassEnd.PAUSED) != (rule.name in self.paused):
            self.paused ^= {rule.name}
            paused = end is PassEnd.PAUSED
            self.telemetry.tell(RulePaused(rule.name) if paused else RuleResumed(rule.name))
        return end

    def _sweep_loop(self) -> Callable[[], None]:
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        sweeper = sweeper_of(ledger, self.settings, self.checkpoint, self.telemetry)

        def step() -> float:
            sweeper.sweep(self.settings.rules)
            for worker in self.workers:
                worker.forget_floors()
            return self.settings.loops.sweep.total_seconds()

        return lambda: self._loop("sweep", step, ledger.close)

    def _report_loops(self) -> list[tuple[str, Callable[[], None]]]:
        loops = Reporting(self.settings, self.checkpoint, self.telemetry, self.stop).loops()
        self._wakes |= {one.name: one.wake for one in loops if one.wake is not None}
        return [self._run_of(one) for one in loops]

    def _run_of(self, loop: Loop) -> tuple[str, Callable[[], None]]:
        """Return a loop's name, and what its thread runs."""
        return loop.name, partial(self._loop, loop.name, loop.step, loop.close)

    def _heartbeat_loop(self, roles: Sequence[Role]) -> Callable[[], None]:
        ledger = open_ledger(self.settings)
        clock = SystemClock()
        guards = GuardTeller(self.telemetry)

        def step() -> float:
            if not self._followed.is_set():
                follow_mappings(ledger, self.settings.rules)
                follow_targets(ledger, self.settings)
                self._followed.set()
            hands = [*(w.in_hand for w in self.workers), *(s.in_hand for s in self.straights)]
            in_hand = next(filter(None, hands), None)
            with ledger.transaction() as tx:
                tx.workers.beat(
                    self._name,
                    ",".join(roles),
                    socket.gethostname(),
                    os.getpid(),
                    clock.wall(),
                    in_hand,
                )
                note_clock(tx)
                standing = tx.guards.standing()
            guards.tell(standing)
            return self.settings.loops.heartbeat.total_seconds()

        def leave() -> None:
            try:
                with ledger.transaction() as tx:
                    tx.workers.leave(self._name)
            except DatabaseError as error:
                self._tell_trouble(HEARTBEAT, error)
            ledger.close()

        return lambda: self._loop(HEARTBEAT, step, leave)


def sweeper_of(
    ledger: Ledger, settings: Settings, checkpoint: Checkpoint, telemetry: Telemetry
) -> Sweeper:
    """Return a sweeper that prunes by the settings' ages."""
    pruner = Pruner(ledger, settings.retention.ages(), SystemClock(), telemetry)
    return Sweeper(ledger, checkpoint, Scanner(ledger, checkpoint), telemetry, pruner)
