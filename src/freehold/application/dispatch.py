"""The dispatcher: names ready operations to a queue, and names them again when nothing came of it.

What was named and is still ready is named again once its message is older than a sweep and, as far
as the queue's depth tells, neither waits any more. So a wiped broker costs a sweep, and a backlog
that is merely deep is not named twice.

*Invariants*: it writes nothing to the ledger, so that losing queue or dispatcher loses no work; a
message is published outside any transaction; a rule leads the queue by at most `LEAD_BATCHES` of
its batches; one dispatcher names an operation at most once a sweep, unless a confirm is missing.
*Not here*: what a delivery does (`deliveries`), what is remembered (`naming`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from freehold.application.naming import Lead, Place
from freehold.application.rulestate import may_work
from freehold.domain.messages import Message
from freehold.domain.names import operation_key
from freehold.domain.pauses import Role
from freehold.domain.rules import Rule
from freehold.ports.ledger import Ledger, ReadyAfter, ReadyOperation, RuleState, Transaction
from freehold.ports.queue import Queue
from freehold.ports.strays import DeliveryCounts
from freehold.ports.system import Boundary, Checkpoint

LEAD_BATCHES = 20  # of a rule; as far as the scan leads the workers
OVERLAP = timedelta(seconds=5)  # a scan's transaction may commit this much after its now
CHECKED_AT_ONCE = 500  # of what was named a sweep ago; most of it has long ended
PUBLISH_AGAIN_AFTER = timedelta(seconds=15)  # one sweep


@dataclass(slots=True)
class DispatchResult:
    """Counts of one call.

    Attributes:
        unconfirmed_count: published without a confirm; named again by the next call.
        is_full: the queue holds enough of the rule already, and nothing new was published.
    """

    published_count: int = 0
    unconfirmed_count: int = 0
    is_full: bool = False


@dataclass(slots=True)
class _Found:
    """What a look at the ledger found to name.

    Attributes:
        after: where the reading goes on when all of it is confirmed.
    """

    now: datetime
    ready: Sequence[ReadyOperation] = ()
    after: ReadyAfter | None = None
    is_full: bool = False


@dataclass(slots=True)
class Dispatcher:
    """Publishes on one ledger connection and one queue connection.

    Attributes:
        again_after: how old a message is before its operation is named again; one sweep.
        counts: what was published, added up.
    """

    ledger: Ledger
    queue: Queue
    checkpoint: Checkpoint
    again_after: timedelta = PUBLISH_AGAIN_AFTER
    counts: DeliveryCounts = field(default_factory=DeliveryCounts)
    _lead: Lead = field(default_factory=Lead)
    _places: dict[str, Place] = field(default_factory=dict)

    def dispatch(self, rule: Rule) -> DispatchResult:
        """Publish one batch of a rule's ready operations that were not named lately.

        Raises:
            QueueAway: the broker cannot be reached; nothing is lost, try again later.
            DatabaseAway: the database cannot be reached; the same.
        Again: goes on behind the last confirmed one; what is still ready `again_after` later, and
            is not in the queue any more by its depth, comes before all others.
        Crash: the next one begins at the oldest operation, and names all once more.
        """
        self._lead.look(self.queue.depth())
        found = self._read(rule)
        if not found.ready:
            return DispatchResult(is_full=found.is_full)
        self.checkpoint.reach(Boundary.READY_READ)
        confirmed = self._publish(rule, found)
        self.checkpoint.reach(Boundary.MESSAGES_PUBLISHED)
        return DispatchResult(confirmed, len(found.ready) - confirmed)

    def _read(self, rule: Rule) -> _Found:
        """Read what to name next; nothing of a rule that may not work."""
        with self.ledger.glance() as tx:
            place = self._places.setdefault(rule.name, Place(tx.now))
            state = tx.rules.read(rule.name)
            if state is None or not _may_name(state, tx.now):
                return _Found(tx.now)
            missed = self._missed(tx, rule, place)
            if missed:
                return _Found(tx.now, missed, place.after)
            if place.is_full or self._lead.waiting(rule.name) >= LEAD_BATCHES * rule.batch_size:
                return _Found(tx.now, is_full=True)
            if tx.now - place.began_at >= self.again_after:  # what became ready behind the place
                place.began_at, place.after = tx.now, None
            return _page(tx, rule, place)

    def _missed(self, tx: Transaction, rule: Rule, place: Place) -> Sequence[ReadyOperation]:
        """Read what is still ready though its message cannot be in the queue any more."""
        before = tx.now - self.again_after
        while ids := place.missed(before, self._lead, max(rule.batch_size, CHECKED_AT_ONCE)):
            found = tx.operations.still_ready(ids)[: rule.batch_size]
            if found:
                return found
            place.forget(ids)
        return ()

    def _publish(self, rule: Rule, found: _Found) -> int:
        """Publish, and go on behind it if all is confirmed; return how much is."""
        first = self._lead.number + 1
        self._lead.add(rule.name, len(found.ready))
        flags = self.queue.publish([_message(one) for one in found.ready])
        place = self._places[rule.name]
        for number, (one, is_confirmed) in enumerate(zip(found.ready, flags, strict=True), first):
            if is_confirmed:
                place.note(one, found.now, number)
        confirmed = sum(flags)
        if confirmed == len(found.ready):
            place.after = found.after
        self.counts.published_count += confirmed
        self.counts.unconfirmed_count += len(found.ready) - confirmed
        return confirmed


def _page(tx: Transaction, rule: Rule, place: Place) -> _Found:
    """Read on until something is found that was not named, or to the end.

    At the end the place stays behind what can still commit late. The pages that are passed over
    are remembered whole, so that their number is bounded as what is remembered is.
    """
    while True:
        page = tx.operations.find_ready(rule.name, place.after, rule.batch_size)
        at_end = len(page) < rule.batch_size
        late = ReadyAfter(tx.now - OVERLAP, 0)
        after = late if at_end else ReadyAfter(page[-1].available_at, page[-1].operation_id)
        fresh = [one for one in page if place.is_new(one)]
        if fresh:
            return _Found(tx.now, fresh, after)
        place.after = after
        if at_end:
            return _Found(tx.now)


def _may_name(state: RuleState, now: datetime) -> bool:
    return may_work(state, now) and state.pause_of(Role.DISPATCH, now) is None


def _message(ready: ReadyOperation) -> Message:
    return Message(
        operation_id=ready.operation_id,
        operation_key=operation_key(ready.rule, ready.digest),
        rule=ready.rule,
        hold_key=ready.hold_key,
        due_at=ready.due_at,
        attempt=ready.attempt,
    )
