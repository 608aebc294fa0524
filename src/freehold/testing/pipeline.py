"""The whole way of a hold in one thread: scheduler, scanner, worker and sweeper on one connection.

Nothing here waits; time moves when the test moves the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from freehold.adapters.system import Onwards, StopRequest, SystemClock
from freehold.application.audit import audit
from freehold.application.deliveries import Handler
from freehold.application.direct import StraightPages
from freehold.application.dispatch import Dispatcher
from freehold.application.release import BatchResult
from freehold.application.review import Person, Review
from freehold.application.scan import Scanner
from freehold.application.schedule import Scheduler
from freehold.application.sweep import Sweeper
from freehold.application.together import Tools, release_these
from freehold.application.work import PassEnd, Worker
from freehold.bootstrap import open_handling, open_ledger
from freehold.domain.operations import Claim
from freehold.domain.rules import Rule
from freehold.ports.queue import Queue
from freehold.ports.system import Checkpoint
from freehold.settings import DatabaseSettings, Settings
from freehold.testing.clock import SetClock, SteadyDice

ROUNDS_MAX = 60
ROUND_SECONDS = 31  # longer than a lease of 30 s, and than the patience with an unfinished tick
FIRINGS_MAX = 50
RECEIVE_SECONDS = 0.3  # for the first of what a broker in another process was given


class NotDrained(AssertionError):
    """Work was left over after so many rounds that something must be wrong."""


@dataclass
class Pipeline:
    """One process's worth of Freehold over one rule.

    Attributes:
        idle_limit: how long PostgreSQL suffers an open transaction that does nothing.
        connect: opens a connection to a queue, for a line whose workers wait for messages; what it
            opened is closed with the line.
    """

    url: str
    rule: Rule
    clock: SetClock
    checkpoint: Checkpoint = field(default_factory=Onwards)
    runner: str = "runner"
    idle_limit: timedelta = timedelta(seconds=10)
    statement_limit: timedelta = timedelta(seconds=30)
    connect: Callable[[], Queue] | None = None

    def __post_init__(self) -> None:
        database = DatabaseSettings(
            self.url,
            idle_in_transaction=self.idle_limit,
            statement_timeout=self.statement_limit,
            lock_timeout=timedelta(seconds=20),
        )
        settings = Settings(database, rules=(self.rule,))
        self.ledger = open_ledger(
            settings, checkpoint=self.checkpoint, clock=self.clock, considerate=False
        )
        handling = open_handling(settings)
        self._tools = Tools(
            self.ledger, self.checkpoint, SteadyDice(), StopRequest(), handling=handling
        )
        self.straight = StraightPages(self._tools)
        self.scanner = Scanner(self.ledger, self.checkpoint, straight=self.straight)
        self.scheduler = Scheduler(
            self.ledger, self.scanner, SystemClock(), self.runner, self.checkpoint
        )
        self.worker = Worker(
            self.ledger,
            self.checkpoint,
            self._tools.dice,
            self._tools.pause,
            handling=handling,
        )
        self.sweeper = Sweeper(self.ledger, self.checkpoint, self.scanner)
        self.queues = [] if self.connect is None else [self.connect(), self.connect()]
        if self.queues:
            self.dispatcher = Dispatcher(self.ledger, self.queues[0], self.checkpoint)
            self.handler = Handler(self.worker, self.queues[1], {self.rule.name: self.rule})

    def fire(self) -> int:
        """Fire the schedule until it has nothing to run; return how many operations are new."""
        total = 0
        for _ in range(FIRINGS_MAX):
            new_count = self.fire_once()
            if new_count is None:
                return total
            total += new_count
        raise NotDrained(f"the schedule of {self.rule.name} fired {FIRINGS_MAX} times in a row")

    def fire_once(self) -> int | None:
        """Look at the schedule once; return how many operations are new, None without a run."""
        scan = self.scheduler.fire(self.rule).scan
        return None if scan is None else scan.new_count

    def scan(self) -> int:
        """Scan once from where the last scan ended; return how many operations are new."""
        return self.scanner.scan(self.rule).new_count

    def work(self) -> BatchResult:
        """Work until nothing is claimable now."""
        if self.queues:
            return self._work_queue()
        total = BatchResult()
        while (done := self.worker.work(self.rule)).end is PassEnd.WORKED:
            total.add(done.batch)
        return total

    def _work_queue(self) -> BatchResult:
        """Publish and handle until there is nothing to name and nothing comes."""
        total = BatchResult()
        while True:
            published = self.dispatcher.dispatch(self.rule).published_count
            done = self.handler.handle(self.rule.batch_size, RECEIVE_SECONDS)
            total.add(done.batch)
            if not published and not done.delivered_count:
                return total

    def deliver(self, claims: Sequence[Claim]) -> BatchResult:
        """Do what a message asks for that names these operations."""
        return release_these(self._tools, self.rule, claims)

    def peek(self) -> Sequence[Claim]:
        """Return what a worker could claim now, and let it go: what a message would name."""
        with self.ledger.transaction() as tx:
            return tx.operations.claim(self.rule.name, self.rule.batch_size, None)

    def audit(self) -> list[str]:
        """Ask the audit that customers run; return what it found, in sentences."""
        return [
            f"audit {one.invariant}: {one.promise} {one.not_asked or ''} {list(one.violations)}"
            for one in audit(self.ledger, (self.rule,))
            if not one.clean
        ]

    def requeue(self) -> int:
        """Requeue everything in review, as a person does; return how many operations."""
        review = Review(self.ledger, self.checkpoint)
        person = Person("tester", "the cause was mended")
        return review.requeue(self.rule, review.chosen(self.rule), person)

    def sweep(self) -> None:
        """Sweep once."""
        self.sweeper.sweep((self.rule,))
        self.worker.forget_floors()

    def round(self) -> None:
        """Sweep, fire and work, as a running service does in a moment."""
        self.sweep()
        self.fire()
        self.work()

    def drain(self) -> None:
        """Go round after round, time passing between them, until only dead letters are open.

        Raises:
            NotDrained: work was left over in the end.
        """
        for _ in range(ROUNDS_MAX):
            self.round()
            if not self._open_count():
                return
            self.clock.advance(ROUND_SECONDS)
        raise NotDrained(f"{self._open_count()} operations are open after {ROUNDS_MAX} rounds")

    def _open_count(self) -> int:
        where = "state in ('ready', 'leased', 'retrying', 'deferred')"
        ledger = self.ledger
        with ledger.transaction():
            rows, _ = ledger.session.run(
                f"select count(*) from {ledger.session.prefix}operation where {where}", {}
            )
        return int(rows[0][0])

    def close(self) -> None:
        """Give the connections back."""
        for queue in self.queues:
            queue.close()
        self.ledger.close()
