"""Which time it is that one granting of a hold comes due: generations, counted under the unique index.

*Invariants*: the operation is written first and its predecessors are looked for afterwards, in the
same transaction: whoever ended one meanwhile has committed by then, since both meet in the unique
index of open operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from freehold.domain.due_walls import EPOCH
from freehold.domain.operations import GENERATIONS_MAX, NewOperation
from freehold.domain.rules import Rule
from freehold.ports.ledger import PastRecord, Transaction

YOUNGEST_PRUNED = timedelta(days=7)  # no settings let records go that are younger


def write_operations(
    tx: Transaction,
    rule: Rule,
    new: Sequence[NewOperation],
    tick_id: int | None,
    *,
    undated: bool = False,
) -> int:
    """Write open operations with their generations; return how many were new.

    Args:
        undated: the due of some is not in their identity, so that they may have ended at any time.

    Again: adds nothing.
    """
    if not new:
        return 0
    new = _doubted(tx, rule, new)
    count = tx.operations.enqueue(new, tick_id, rule.fingerprint)
    dues = [one.due_at for one in new if one.due_at is not None]
    since = EPOCH if undated else min(dues, default=tx.now) - timedelta(days=1)
    past = tx.operations.past(rule.name, [(one.hold_key, one.digest) for one in new], since)
    if past:
        tx.operations.renumber(_following(new, past))
    return count


def forgotten_before(tx: Transaction, rule: Rule, oldest: datetime) -> datetime | None:
    """Return the instant before which a due may have a record that was pruned; None: none has.

    Args:
        oldest: the oldest due in question; nothing is read for one that is recent.
    """
    if oldest > tx.now - YOUNGEST_PRUNED:
        return None
    return tx.retention.forgotten_before(rule.name)


def _doubted(tx: Transaction, rule: Rule, new: Sequence[NewOperation]) -> Sequence[NewOperation]:
    """Treat a hold as released before where its record may have been pruned meanwhile."""
    dues = [one.due_at for one in new if one.due_at is not None]
    forgotten = forgotten_before(tx, rule, min(dues, default=tx.now))
    if forgotten is None:
        return new
    return [
        replace(one, after_expired=True)
        if one.due_at is not None and one.due_at < forgotten
        else one
        for one in new
    ]


def _following(new: Sequence[NewOperation], past: Sequence[PastRecord]) -> list[NewOperation]:
    """Make the next generation of each; too many go to a person."""
    by_identity = {(one.hold_key, one.digest): one for one in new}
    following = []
    for record in past:
        one = by_identity[record.hold_key, record.digest]
        reason = one.dead_reason
        if record.generation >= GENERATIONS_MAX:
            reason = f"came due again {record.generation} times"
        following.append(
            replace(
                one,
                generation=record.generation + 1,
                after_expired=record.expired or one.after_expired,
                dead_reason=reason,
            )
        )
    return following
