"""The one-shot of a crontab: sweep, scan and work until nothing is due, within a budget.

*Not here*: the service that goes on (`service`), what one step does (`application`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from freehold.adapters.system import StopRequest, SystemClock, SystemDice
from freehold.application.release import BatchResult
from freehold.application.remap import follow_mappings
from freehold.application.scan import Scanner
from freehold.application.schedule import Scheduler
from freehold.application.stopped import Stopped, find_stopped, held_back
from freehold.application.sweep import Sweeper
from freehold.application.work import PassEnd, Worker
from freehold.bootstrap import open_handling, open_ledger
from freehold.domain.errors import DatabaseError
from freehold.domain.rules import Rule
from freehold.entrypoints.pacing import AHEAD_SECONDS
from freehold.entrypoints.relaying import follow_targets
from freehold.entrypoints.service import sweeper_of
from freehold.ports.ledger import Ledger
from freehold.ports.system import Checkpoint
from freehold.ports.telemetry import Telemetry
from freehold.settings import Settings


@dataclass(slots=True)
class Drain:
    """What a one-shot did.

    Attributes:
        left: the limit or the time was used up before the work was.
        stopped: what kept rules or tenants from being worked on.
        troubles: steps of the sweep that the database refused; nothing waits for them.
    """

    total: BatchResult = field(default_factory=BatchResult)
    left: bool = False
    stopped: Stopped = field(default_factory=Stopped)
    troubles: Sequence[tuple[str, DatabaseError]] = ()


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a one-shot may do: released holds, and seconds; None is no bound."""

    holds: int | None = None
    seconds: float | None = None


def drain_once(
    settings: Settings,
    checkpoint: Checkpoint,
    telemetry: Telemetry,
    budget: Budget = Budget(),
    stop: StopRequest | None = None,
) -> Drain:
    """Sweep, scan and work until nothing is due, in this thread: the one-shot of a crontab."""
    ledger = open_ledger(settings, checkpoint=checkpoint, create=False, considerate=False)
    stop = stop or StopRequest()
    worker = Worker(
        ledger,
        checkpoint,
        SystemDice(),
        stop,
        lease=settings.loops.lease,
        telemetry=telemetry,
        handling=open_handling(settings, telemetry),
    )
    scanner = Scanner(ledger, checkpoint, straight=worker.straight)
    scheduler = Scheduler(ledger, scanner, SystemClock(), "one-shot", checkpoint)
    sweeper = sweeper_of(ledger, settings, checkpoint, telemetry)
    drain = _Drainer(ledger, settings, sweeper, scheduler, worker, budget, stop)
    worker.straight.halt = drain.used_up
    try:
        follow_mappings(ledger, settings.rules)
        follow_targets(ledger, settings)
        drain.sweep()
        for rule in settings.rules:
            drain.drain(rule)
        drain.done.stopped = find_stopped(ledger, settings.rules)
    finally:
        ledger.close()
    return drain.done


class _Drainer:
    """Drains rules one after the other within one budget."""

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        sweeper: Sweeper,
        scheduler: Scheduler,
        worker: Worker,
        budget: Budget,
        stop: StopRequest,
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._sweeper = sweeper
        self._scheduler = scheduler
        self._worker = worker
        self._budget = budget
        self._stop = stop
        self._clock = SystemClock()
        self._began = self._swept = self._clock.monotonic()
        self.done = Drain()

    def sweep(self) -> None:
        """Sweep all rules."""
        self.done.troubles = self._sweeper.sweep(self._settings.rules).troubles
        self._swept = self._clock.monotonic()

    def drain(self, rule: Rule) -> None:
        """Scan and work one rule until a scan reaches its end and nothing is claimable."""
        while not self.used_up():
            scan = self._scheduler.scan_now(rule)
            self.done.total.add(self._worker.straight.take())
            idle = self._work(rule)
            ended = scan.finished and not scan.windowed
            if not scan.admitted or (ended and idle):
                return
            if ended and not self._something_to_do(rule):
                return
            if idle:
                self._wait_for_others()
        self.done.left = True

    def _wait_for_others(self) -> None:
        """Wait a moment for who has the work in hand; what a killed one had is taken back."""
        self._stop.wait(AHEAD_SECONDS)
        sweep_seconds = self._settings.loops.sweep.total_seconds()
        if self._clock.monotonic() - self._swept >= sweep_seconds:
            self.sweep()

    def _work(self, rule: Rule) -> bool:
        """Work until nothing is claimable, or the budget is used up; True for the former."""
        while not self.used_up():
            done = self._worker.work(rule)
            self._worker.straight.take()  # a window counts it in its batch
            if done.end is not PassEnd.WORKED:
                return True
            self.done.total.add(done.batch)
        return False

    def _something_to_do(self, rule: Rule) -> bool:
        """Tell whether something is ready that nobody has stopped."""
        with self._ledger.transaction() as tx:
            state = tx.rules.read(rule.name)
            stopped = state is not None and held_back(state, tx.now) is not None
            return not stopped and tx.operations.count_ready(rule.name, 1) > 0

    def used_up(self) -> bool:
        """Tell whether the budget is used up, or the process is asked to stop."""
        seconds, holds = self._budget.seconds, self._budget.holds
        late = seconds is not None and self._clock.monotonic() - self._began >= seconds
        released = self.done.total.released_count + self._worker.straight.running.released_count
        enough = holds is not None and released >= holds
        return late or enough or self._stop.stopping
