"""Routing: works out once for each waiting event to which targets it is owed.

*Invariants*: an event and what it owes are written in one transaction; events are claimed row by
row, so that one whose transaction committed late is never passed over; who does not know a target
that others follow routes nothing, and nothing is owed to one that left.
*Not here*: who wants what (`domain.forwards`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from freehold.domain.forwards import TargetPolicy, owed
from freehold.domain.pauses import Role
from freehold.ports.ledger import Ledger, Transaction
from freehold.ports.system import Boundary, Checkpoint

ROUTE_MOST = 500  # events of one transaction


@dataclass(frozen=True, slots=True)
class Routed:
    """What one step of routing did.

    Attributes:
        full: there may be more at once.
        paused: people paused the relay.
        unknown: active targets that this process was not told of; it leaves all events to others.
    """

    event_count: int = 0
    forward_count: int = 0
    full: bool = False
    paused: bool = False
    unknown: tuple[str, ...] = ()


def route_once(ledger: Ledger, targets: Collection[TargetPolicy], checkpoint: Checkpoint) -> Routed:
    """Route a batch of events in one transaction.

    Targets are read behind the claim: whoever follows a target before an event is written is seen.

    Again: routes what is left.
    Crash: the batch is routed whole, or not at all.

    Raises:
        DatabaseAway: the database cannot be reached; a repeat is safe.
        DatabaseBusy: repeat the step.
    """
    limit = min(ROUTE_MOST, ledger.batch_limit or ROUTE_MOST)
    with ledger.transaction() as tx:
        if is_paused(tx):
            return Routed(paused=True)
        events = tx.relay.claim_unrouted(limit)
        active = {one.name for one in tx.relay.targets() if one.active} if events else set()
        unknown = sorted(active - {one.name for one in targets})
        if unknown:
            return Routed(unknown=tuple(unknown))
        known = [one for one in targets if one.name in active]
        forward_count = tx.relay.route(events, owed(known, events)) if events else 0
        if events:
            checkpoint.reach(Boundary.EVENTS_ROUTED)
    return Routed(len(events), forward_count, full=len(events) == limit)


def is_paused(tx: Transaction) -> bool:
    """Tell whether people paused the relay as a whole."""
    pauses = (one for one in tx.pauses.open() if one.role is Role.RELAY)
    return any(one.rule is None and one.tenant is None and one.stands(tx.now) for one in pauses)
