"""Release found holds in the transaction at hand, without operation rows.

*Invariants*: a hold is released only under its row lock, only if it equals what was found, and only
if its identity never ended before; what cannot be judged here is left to an operation.
*Not here*: transactions, failures, and the writing of operations for what is left (`direct`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from freehold.application.generations import forgotten_before
from freehold.application.release import BatchResult
from freehold.domain.due import DueProblem, is_due
from freehold.domain.expiry import RowAbsence
from freehold.domain.names import KEY_BYTES_MAX, digest
from freehold.domain.operations import Claim
from freehold.domain.rules import Rule
from freehold.domain.tallies import Tally
from freehold.ports.holds import FoundHold
from freehold.ports.ledger import Transaction
from freehold.ports.straight import ChosenFound, LockedFound, StraightHolds
from freehold.ports.system import Boundary, Checkpoint
from freehold.ports.telemetry import HoldsReleased

Due = datetime | DueProblem


@dataclass(slots=True)
class Straight:
    """What became of found rows.

    Attributes:
        left: rows that must become operations: locked by the host, ended before, unreadable, or
            with a key too long. Rows that are not due, or changed since, are nobody's.
    """

    result: BatchResult = field(default_factory=BatchResult)
    left: Sequence[FoundHold] = ()


def release_straight(
    tx: Transaction,
    rule: Rule,
    rows: Sequence[tuple[FoundHold, Due]],
    checkpoint: Checkpoint,
    tick_id: int | None = None,
) -> Straight:
    """Release the found rows that still are as they were found.

    Args:
        rows: each with its due as `read_due` reads it. A row with an open operation may be among
            them: that operation then ends as skipped, already expired.

    Crash: nothing remains before the commit.

    Raises:
        RowRefused: some row was refused; the transaction is lost, fewer rows may pass.
    """
    straight = tx.straight(rule)
    dues, left = _sorted_out(rule, rows, tx.now)
    locked = straight.lock_found([found for found, _ in rows if found.hold_key in dues])
    left += [one.found for one in locked if one.absence is RowAbsence.LOCKED_BY_HOST]
    matching = [one for one in locked if one.operation_id is not None]
    ours = {
        one.found.hold_key: digest(rule.name, one.found.hold_key, one.found.identity)
        for one in matching
    }
    ended = _ended_before(tx, rule, ours, dues)
    left += [one.found for one in matching if one.found.hold_key in ended]
    checkpoint.reach(Boundary.HOLDS_LOCKED)
    fit = [one for one in matching if one.found.hold_key not in ended]
    chosen = _counted(tx, rule, ours, fit, dues)
    checkpoint.reach(Boundary.TALLIES_WRITTEN)
    _release(straight, chosen, tick_id, checkpoint)
    return Straight(_result(rule, chosen, tx.now), left)


def _result(rule: Rule, chosen: Sequence[ChosenFound], now: datetime) -> BatchResult:
    claims = [
        Claim(
            id=one.operation_id,
            rule=rule.name,
            tenant=one.found.tenant,
            hold_key=one.found.hold_key,
            digest=one.digest,
            due_at=one.due_at,
            generation=1,
            after_expired=False,
            attempt=0,
        )
        for one in chosen
    ]
    events = [HoldsReleased(claims, now)] if claims else []
    return BatchResult(released_count=len(claims), events=list(events))


def _sorted_out(
    rule: Rule, rows: Sequence[tuple[FoundHold, Due]], now: datetime
) -> tuple[dict[str, datetime], list[FoundHold]]:
    """Return the dues of rows to be released now, by key, and what nobody can judge here."""
    dues: dict[str, datetime] = {}
    left: list[FoundHold] = []
    for found, due in rows:
        if isinstance(due, DueProblem) or len(found.hold_key.encode()) > KEY_BYTES_MAX:
            left.append(found)
        elif is_due(rule.due, due, now):
            dues[found.hold_key] = due
    return dues, left


def _ended_before(
    tx: Transaction, rule: Rule, ours: dict[str, UUID], dues: dict[str, datetime]
) -> set[str]:
    """Name the locked rows whose identity has a record; whoever wrote one held the lock before.

    One that may have had a record, which was pruned, counts as well.
    """
    if not ours:
        return set()
    oldest = min(dues[key] for key in ours)
    forgotten = forgotten_before(tx, rule, oldest)
    doubted = {key for key in ours if forgotten is not None and dues[key] < forgotten}
    past = tx.operations.past(rule.name, list(ours.items()), oldest - timedelta(days=1))
    return doubted | {one.hold_key for one in past}


def _counted(
    tx: Transaction,
    rule: Rule,
    ours: dict[str, UUID],
    fit: Sequence[LockedFound],
    dues: dict[str, datetime],
) -> list[ChosenFound]:
    """Write one tally for each tenant, and name its rows' place in it."""
    tallies = {one.found.tenant: Tally(rule.name, one.found.tenant) for one in fit}
    for one in fit:
        lag = tx.now - dues[one.found.hold_key]
        tallies[one.found.tenant].count_expired(lag.total_seconds())
    ids = dict(zip(tallies, tx.operations.add_tallies(list(tallies.values())), strict=True))
    return [
        ChosenFound(
            found=one.found,
            operation_id=one.operation_id,
            digest=ours[one.found.hold_key],
            due_at=dues[one.found.hold_key],
            tally_id=ids[one.found.tenant],
        )
        for one in fit
        if one.operation_id is not None
    ]


def _release(
    straight: StraightHolds,
    chosen: Sequence[ChosenFound],
    tick_id: int | None,
    checkpoint: Checkpoint,
) -> None:
    if not chosen:
        return
    straight.run_companions_of(chosen, before=True)
    checkpoint.reach(Boundary.COMPANIONS_BEFORE)
    straight.release_found(chosen, tick_id)
    checkpoint.reach(Boundary.RELEASED)
    straight.run_companions_of(chosen, before=False)
    checkpoint.reach(Boundary.COMPANIONS_AFTER)
