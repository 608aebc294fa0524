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
from enum import StrEnum

from freehold.adapters.system import StopRequest, SystemClock, SystemDice
from freehold.application.release import BatchResult
from freehold.application.scan import Scanner
from freehold.application.schedule import Scheduler
from freehold.application.sweep import Sweeper
from freehold.application.work import PassEnd, Worker
from freehold.bootstrap import open_ledger
from freehold.domain.errors import DatabaseError
from freehold.domain.rules import Rule
from freehold.entrypoints.journal import Journal
from freehold.ports.system import Checkpoint
from freehold.settings import Settings

AWAY_FIRST_SECONDS = 0.25
AWAY_MOST_SECONDS = 5.0


class Role(StrEnum):
    """What a process may be told to do."""

    SCAN = "scan"
    WORK = "work"


@dataclass(slots=True)
class Service:
    """Runs roles until it is asked to stop.

    Attributes:
        wake: set when this process wrote operations, so that its worker need not poll.
    """

    settings: Settings
    checkpoint: Checkpoint
    journal: Journal
    stop: StopRequest = field(default_factory=StopRequest)
    wake: threading.Event = field(default_factory=threading.Event)
    workers: list[Worker] = field(default_factory=list)
    _name: str = field(default_factory=lambda: SystemDice().name())

    def run(self, roles: Sequence[Role]) -> None:
        """Run the roles, each in a thread, until `stop` is asked for; then drain."""
        loops: list[tuple[str, Callable[[], None]]] = [("heartbeat", self._heartbeat_loop(roles))]
        if Role.SCAN in roles:
            loops.append(("scan", self._scan_loop()))
        if Role.WORK in roles:
            loops += [("work", self._work_loop()), ("sweep", self._sweep_loop())]
        threads = [threading.Thread(target=loop, name=name) for name, loop in loops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def ask_to_stop(self) -> None:
        """Ask all loops to finish what is in hand and end."""
        self.stop.stop()
        self.wake.set()

    def _loop(self, name: str, step: Callable[[], float], close: Callable[[], None]) -> None:
        """Repeat a step, which returns seconds to wait; back off while the database is away."""
        away = AWAY_FIRST_SECONDS
        try:
            while not self.stop.stopping:
                try:
                    seconds = step()
                    away = AWAY_FIRST_SECONDS
                except DatabaseError as error:
                    self.journal.database_trouble(name, error)
                    seconds = away
                    away = min(away * 2, AWAY_MOST_SECONDS)
                self._wait(name, seconds)
        finally:
            close()

    def _wait(self, name: str, seconds: float) -> None:
        if name == "work":
            self.wake.wait(seconds)
            self.wake.clear()
        else:
            self.stop.wait(seconds)

    def _scan_loop(self) -> Callable[[], None]:
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        scanner = Scanner(ledger, self.checkpoint)
        scheduler = Scheduler(
            ledger, scanner, SystemClock(), self._name, self.checkpoint, self.settings.loops.poll
        )

        def step() -> float:
            for rule in self.settings.rules:
                self._fire(scheduler, rule)
            return min(
                (scheduler.sleep_seconds(rule) for rule in self.settings.rules),
                default=self.settings.loops.poll.total_seconds(),
            )

        return lambda: self._loop("scan", step, ledger.close)

    def _fire(self, scheduler: Scheduler, rule: Rule) -> None:
        firing = scheduler.fire(rule)
        if firing.scan is not None:
            self.journal.scanned(rule, firing.scan)
            if firing.scan.new_count:
                self.wake.set()

    def _work_loop(self) -> Callable[[], None]:
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        worker = Worker(
            ledger,
            self.checkpoint,
            SystemDice(),
            self.stop,
            lease=self.settings.loops.lease,
            on_batch=self.journal.batch,
        )
        self.workers.append(worker)

        def step() -> float:
            ends = [worker.work(rule).end for rule in self.settings.rules]
            busy = PassEnd.WORKED in ends
            return 0.0 if busy else self.settings.loops.poll.total_seconds()

        return lambda: self._loop("work", step, ledger.close)

    def _sweep_loop(self) -> Callable[[], None]:
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        sweeper = Sweeper(ledger, self.checkpoint, Scanner(ledger, self.checkpoint))

        def step() -> float:
            self.journal.swept(sweeper.sweep(self.settings.rules))
            for worker in self.workers:
                worker.forget_floors()
            return self.settings.loops.sweep.total_seconds()

        return lambda: self._loop("sweep", step, ledger.close)

    def _heartbeat_loop(self, roles: Sequence[Role]) -> Callable[[], None]:
        ledger = open_ledger(self.settings)
        clock = SystemClock()

        def step() -> float:
            in_hand = next((w.in_hand for w in self.workers if w.in_hand), None)
            with ledger.transaction() as tx:
                tx.workers.beat(
                    self._name,
                    ",".join(roles),
                    socket.gethostname(),
                    os.getpid(),
                    clock.wall(),
                    in_hand,
                )
            return self.settings.loops.heartbeat.total_seconds()

        def leave() -> None:
            try:
                with ledger.transaction() as tx:
                    tx.workers.leave(self._name)
            except DatabaseError as error:
                self.journal.database_trouble("heartbeat", error)
            ledger.close()

        return lambda: self._loop("heartbeat", step, leave)


def drain_once(settings: Settings, checkpoint: Checkpoint, journal: Journal) -> BatchResult:
    """Scan and work until nothing is due, in this thread: the one-shot of a crontab."""
    ledger = open_ledger(settings, checkpoint=checkpoint)
    scanner = Scanner(ledger, checkpoint)
    scheduler = Scheduler(ledger, scanner, SystemClock(), "one-shot", checkpoint)
    worker = Worker(ledger, checkpoint, SystemDice(), StopRequest(), on_batch=journal.batch)
    total = BatchResult()
    try:
        Sweeper(ledger, checkpoint, scanner).sweep(settings.rules)
        for rule in settings.rules:
            total.add(drain_rule(scheduler, worker, rule))
    finally:
        ledger.close()
    return total


def drain_rule(scheduler: Scheduler, worker: Worker, rule: Rule) -> BatchResult:
    """Scan and work one rule until a scan reaches its end and nothing is claimable."""
    total = BatchResult()
    while True:
        scan = scheduler.scan_now(rule)
        while (done := worker.work(rule)).end is PassEnd.WORKED:
            total.add(done.batch)
        if scan.finished or not scan.admitted:
            return total
