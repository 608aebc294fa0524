"""The dispatcher: names ready operations to a queue, and names them again when nothing came of it.

*Invariants*: it writes nothing to the ledger, so that losing queue or dispatcher loses no work; a
message is published outside any transaction; the queue is led by at most `LEAD_BATCHES` batches.
*Not here*: what a delivery does (`deliveries`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from freehold.application.rulestate import may_work
from freehold.domain.messages import Message
from freehold.domain.names import operation_key
from freehold.domain.rules import Rule
from freehold.ports.ledger import Ledger, ReadyAfter, ReadyOperation
from freehold.ports.queue import Queue

LEAD_BATCHES = 20
OVERLAP = timedelta(seconds=5)  # a scan's transaction may commit this much after its now
PUBLISH_AGAIN_AFTER = timedelta(seconds=60)  # four sweeps; a broker's backlog is younger than this


@dataclass(slots=True)
class DispatchResult:
    """Counts of one call.

    Attributes:
        unconfirmed_count: published without a confirm; named again by the next call.
        is_full: the queue holds enough already, and nothing was published.
    """

    published_count: int = 0
    unconfirmed_count: int = 0
    is_full: bool = False


@dataclass(slots=True)
class _Place:
    """How far one rule has been named.

    Attributes:
        began_at: when the reading began at the oldest operation.
        recent: what was named within the overlap, by id, with the instant that it was named for.
    """

    began_at: datetime
    after: ReadyAfter | None = None
    recent: dict[int, datetime] = field(default_factory=dict)


@dataclass(slots=True)
class Dispatcher:
    """Publishes on one ledger connection and one queue connection."""

    ledger: Ledger
    queue: Queue
    again_after: timedelta = PUBLISH_AGAIN_AFTER
    _places: dict[str, _Place] = field(default_factory=dict)

    def dispatch(self, rule: Rule) -> DispatchResult:
        """Publish one batch of a rule's ready operations that were not named lately.

        Raises:
            QueueAway: the broker cannot be reached; nothing is lost, try again later.
            DatabaseAway: the database cannot be reached; the same.
        Again: goes on behind the last confirmed one; after `again_after` it begins anew, and so
            publishes again whatever is still open.
        """
        if (self.queue.depth() or 0) >= LEAD_BATCHES * rule.batch_size:
            return DispatchResult(is_full=True)
        page, now = self._read(rule)
        place = self._places[rule.name]
        fresh = [one for one in page if place.recent.get(one.operation_id) != one.available_at]
        confirmed = self._publish(fresh)
        self._advance(place, page, fresh[confirmed:], now, at_end=len(page) < rule.batch_size)
        return DispatchResult(confirmed, len(fresh) - confirmed)

    def _read(self, rule: Rule) -> tuple[Sequence[ReadyOperation], datetime]:
        """Read the next page; none of a rule that may not work."""
        with self.ledger.transaction() as tx:
            place = self._places.setdefault(rule.name, _Place(tx.now))
            if tx.now - place.began_at >= self.again_after:
                place = self._places[rule.name] = _Place(tx.now)
            state = tx.rules.read(rule.name)
            if state is None or not may_work(state, tx.now):
                return [], tx.now
            return tx.operations.find_ready(rule.name, place.after, rule.batch_size), tx.now

    def _publish(self, ready: Sequence[ReadyOperation]) -> int:
        """Publish; return how many at the front were confirmed."""
        if not ready:
            return 0
        flags = [*self.queue.publish([_message(one) for one in ready]), False]
        return flags.index(False)

    def _advance(
        self,
        place: _Place,
        page: Sequence[ReadyOperation],
        unconfirmed: Sequence[ReadyOperation],
        now: datetime,
        *,
        at_end: bool,
    ) -> None:
        """Go on behind the last confirmed one; at the end, behind what can still commit late."""
        left_out = {one.operation_id for one in unconfirmed}
        named = [one for one in page if one.operation_id not in left_out]
        place.recent |= {one.operation_id: one.available_at for one in named}
        if unconfirmed:
            return
        if at_end:
            place.after = ReadyAfter(now - OVERLAP, 0)
        else:
            place.after = ReadyAfter(page[-1].available_at, page[-1].operation_id)
        place.recent = {key: at for key, at in place.recent.items() if at >= now - OVERLAP}


def _message(ready: ReadyOperation) -> Message:
    return Message(
        operation_id=ready.operation_id,
        operation_key=operation_key(ready.rule, ready.digest),
        rule=ready.rule,
        hold_key=ready.hold_key,
        due_at=ready.due_at,
        attempt=ready.attempt,
    )
