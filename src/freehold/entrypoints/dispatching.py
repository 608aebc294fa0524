"""A broker in the service: the loop that names ready operations, and the one that takes messages.

*Invariants*: each thread has a ledger and a queue connection of its own; trouble with the broker
ends no loop. *Not here*: what one step does (`application.dispatch`, `application.deliveries`),
when workers ask the ledger instead (`application.supply`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from freehold.adapters.system import Onwards, SystemClock
from freehold.application.counting import Counting
from freehold.application.deliveries import Handler, HandleResult
from freehold.application.dispatch import Dispatcher, DispatchResult
from freehold.application.sturdy import SturdyQueue
from freehold.application.supply import Hints
from freehold.application.work import Worker
from freehold.bootstrap import open_ledger, open_queue, require_queue
from freehold.domain.errors import DatabaseError, QueueAway
from freehold.domain.rules import Rule
from freehold.entrypoints.pacing import AwayPause, IdlePause, Loop
from freehold.ports.ledger import Ledger
from freehold.ports.queue import Queue
from freehold.ports.system import Checkpoint
from freehold.ports.telemetry import DatabaseTrouble, DeliveriesHandled, Dispatched, Telemetry
from freehold.settings import Settings

RECEIVE_SECONDS = 0.5  # the longest wait of one call, so that a stop request is soon seen
EachRule = Callable[[str, Callable[[Rule], None]], None]


@dataclass(slots=True)
class Dispatching:
    """Makes the loops that need a broker.

    Attributes:
        process: whose counts of deliveries they are.
        each_rule: does a step for every rule, whatever becomes of the others.
    """

    settings: Settings
    checkpoint: Checkpoint
    telemetry: Telemetry
    process: str
    each_rule: EachRule

    def dispatch_loop(self, until_due: Callable[[Ledger], float]) -> Loop:
        """Return the loop of the role `dispatch`.

        Args:
            until_due: seconds until the next hold falls due, asked on the loop's own ledger.

        Raises:
            UsageError: the URL's file cannot be read, or a package is missing.
        """
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        queue = queue_of(self.settings)
        counting = self._counting(ledger)
        sweep = self.settings.loops.sweep
        dispatcher = Dispatcher(ledger, queue, self.checkpoint, sweep, counting.counts)
        hints = Hints(SystemClock(), self.telemetry, "dispatch")
        poll_seconds = self.settings.loops.poll.total_seconds()
        pause = IdlePause(poll_seconds, lambda: until_due(ledger))
        away = AwayPause()

        def step() -> float:
            counts: list[int] = []
            try:
                self.each_rule("dispatch", lambda one: counts.append(self._name(dispatcher, one)))
            except QueueAway as error:
                hints.lost(error)
                return away.next_seconds()
            hints.answered(0)
            away.end()
            counting.flush()
            return pause.after(busy=any(counts))

        return Loop("dispatch", step, lambda: self._close(queue, ledger, counting))

    def _name(self, dispatcher: Dispatcher, rule: Rule) -> int:
        done = dispatcher.dispatch(rule)
        if done.published_count or done.unconfirmed_count:
            told = Dispatched(rule.name, done.published_count, done.unconfirmed_count)
            self.telemetry.tell(told)
        return done.published_count

    def deliveries_loop(
        self, worker: Worker, ledger: Ledger, hints: Hints, on_released: Callable[[], None]
    ) -> Loop:
        """Return the loop that takes messages for the role `work`.

        Args:
            worker: of the loop's own, on `ledger`.
            on_released: called when holds were released, since there are events then.

        Raises:
            UsageError: the URL's file cannot be read, or a package is missing.
        """
        queue = queue_of(self.settings)
        counting = self._counting(ledger)
        rules = {rule.name: rule for rule in self.settings.rules}
        name = require_queue(self.settings).name
        handler = Handler(worker, queue, rules, name, counting.counts)
        size = max(rule.batch_size for rule in self.settings.rules)
        away = AwayPause()

        def step() -> float:
            try:
                done = handler.handle(size, RECEIVE_SECONDS)
            except QueueAway as error:
                hints.lost(error)
                return away.next_seconds()
            away.end()
            hints.answered(done.delivered_count)
            self._tell(done)
            if done.batch.released_count:
                on_released()
            counting.flush()
            return 0.0

        return Loop("deliveries", step, lambda: self._close(queue, ledger, counting))

    def _counting(self, ledger: Ledger) -> Counting:
        return Counting(ledger, SystemClock(), self.process)

    def _close(self, queue: Queue, ledger: Ledger, counting: Counting) -> None:
        """Write the last counts and give both connections back; counts are worth no trouble."""
        try:
            counting.flush(at_once=True)
        except DatabaseError as error:
            self.telemetry.tell(DatabaseTrouble("counts", type(error).__name__, error.code))
        finally:
            queue.close()
            ledger.close()

    def _tell(self, done: HandleResult) -> None:
        if done.delivered_count:
            self.telemetry.tell(
                DeliveriesHandled(
                    done.delivered_count,
                    done.redelivered_count,
                    done.passed_over_count,
                    done.unreadable_count,
                )
            )


def dispatch_once(
    ledger: Ledger, settings: Settings, rules: Sequence[Rule]
) -> dict[str, DispatchResult]:
    """Name what is ready of some rules, until the queue holds enough or confirms nothing.

    Raises:
        UsageError: as `queue_of` says.
        QueueAway: the broker cannot be reached.
    """
    queue = queue_of(settings)
    dispatcher = Dispatcher(ledger, queue, Onwards(), settings.loops.sweep)
    done: dict[str, DispatchResult] = {}
    try:
        for rule in rules:
            total = done[rule.name] = DispatchResult()
            while (one := dispatcher.dispatch(rule)).published_count:
                total.published_count += one.published_count
            total.unconfirmed_count, total.is_full = one.unconfirmed_count, one.is_full
    finally:
        queue.close()
    return done


def queue_of(settings: Settings) -> Queue:
    """Return the queue of hints, for one thread.

    Raises:
        UsageError: there is no broker, or `bootstrap.open_queue` says why not.
    """
    require_queue(settings)

    def connect() -> Queue:
        queue = open_queue(settings)
        assert queue is not None
        return queue

    return SturdyQueue(connect)
