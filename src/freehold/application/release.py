"""One batch under one transaction: lock, decide, and write every ending where it belongs.

The batch goes through a pipe of small steps; each claimed operation leaves it by exactly one of
four doors: released, skipped, put off, to review. *Not here*: transactions and failures (`work`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from freehold.application.handling import Handling, Images, no_handler
from freehold.application.remap import rebuilt
from freehold.domain.due import read_due
from freehold.domain.errors import ChangeLost
from freehold.domain.expiry import (
    Decision,
    Defer,
    DeferReason,
    Release,
    RowAbsence,
    Skip,
    SkipReason,
    ToReview,
    decide_absent,
    decide_expiry,
    decide_matching,
)
from freehold.domain.operations import Claim
from freehold.domain.retries import Failure, FailureClass
from freehold.domain.rules import Again, Rule
from freehold.domain.tallies import Tally
from freehold.ports.holds import Chosen, Holds, LockedHold
from freehold.ports.ledger import Put, Skipped, Transaction
from freehold.ports.system import Boundary, Checkpoint
from freehold.ports.telemetry import Event, HoldsReleased, OperationDied

BUSY_FIRST = timedelta(milliseconds=250)
BUSY_MOST = timedelta(seconds=5)


@dataclass(slots=True)
class BatchResult:
    """What became of a batch.

    Attributes:
        failed_count: rows that spent an attempt and are tried again later.
        buried_count: rows that went to review.
        events: what to tell of single operations, once the transaction is committed.
    """

    released_count: int = 0
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    deferred: Counter[DeferReason] = field(default_factory=Counter)
    failed_count: int = 0
    buried_count: int = 0
    events: list[Event] = field(default_factory=list, compare=False, repr=False)

    @property
    def total(self) -> int:
        """Return how many operations the batch held."""
        ended = self.released_count + self.skipped.total() + self.buried_count
        return ended + self.deferred.total() + self.failed_count

    def add(self, other: BatchResult) -> None:
        """Add the counts of another batch; its events were told."""
        self.released_count += other.released_count
        self.failed_count += other.failed_count
        self.buried_count += other.buried_count
        self.skipped += other.skipped
        self.deferred += other.deferred


@dataclass(slots=True)
class _Doors:
    """The claims of a batch, by the door they leave through."""

    released: list[Claim] = field(default_factory=list)
    skipped: list[tuple[Claim, SkipReason]] = field(default_factory=list)
    deferred: list[tuple[Claim, Defer]] = field(default_factory=list)
    reviewed: list[tuple[Claim, str]] = field(default_factory=list)

    def send(self, claim: Claim, decision: Decision) -> None:
        match decision:
            case Release():
                self.released.append(claim)
            case Skip(reason):
                self.skipped.append((claim, reason))
            case Defer():
                self.deferred.append((claim, decision))
            case ToReview(reason):
                self.reviewed.append((claim, reason))


def release_batch(
    tx: Transaction,
    rule: Rule,
    claims: Sequence[Claim],
    checkpoint: Checkpoint,
    handling: Handling | None = None,
) -> BatchResult:
    """Take claimed operations as far as they go in this transaction.

    Args:
        handling: calls the rule's handler, where it has one, when all else is written.

    Crash: nothing remains before the commit.

    Raises:
        RowRefused: some row was refused; the transaction is lost, a smaller batch may pass.
    """
    holds = tx.holds(rule)
    claims, changed = rebuilt(tx, rule, claims)
    doors = _Doors(skipped=[(claim, SkipReason.MAPPING_CHANGED) for claim in changed])
    for claim, decision in _decisions(holds, rule, claims, tx.now):
        doors.send(claim, decision)
    checkpoint.reach(Boundary.HOLDS_LOCKED)
    tally_ids = _write_tallies(tx, rule, doors)
    checkpoint.reach(Boundary.TALLIES_WRITTEN)
    images = _images(holds, rule, doors.released)
    _release(holds, doors.released, tally_ids, checkpoint)
    _finish_skipped(tx, rule, doors, tally_ids)
    _put_off(tx, doors)
    _to_review(tx, doors)
    checkpoint.reach(Boundary.SKIPS_WRITTEN)
    if images:
        if handling is None:
            raise no_handler(rule)
        handling.call(tx, rule, doors.released, images)
        checkpoint.reach(Boundary.HANDLED)
    return _result(doors, tx.now)


def decide_batch(
    tx: Transaction, rule: Rule, claims: Sequence[Claim]
) -> Sequence[tuple[int, Decision]]:
    """Lock the holds and decide about each, by operation id; writes nothing."""
    decided = _decisions(tx.holds(rule), rule, claims, tx.now)
    return [(claim.id, decision) for claim, decision in decided]


def _decisions(
    holds: Holds, rule: Rule, claims: Sequence[Claim], now: datetime
) -> Iterator[tuple[Claim, Decision]]:
    by_id = {claim.id: claim for claim in claims}
    for locked in holds.lock(list(by_id)):
        claim = by_id[locked.operation_id]
        yield claim, _decision(rule, claim, locked, now)


def _decision(rule: Rule, claim: Claim, locked: LockedHold, now: datetime) -> Decision:
    if locked.matches:
        to_review = claim.after_expired and rule.again is Again.REVIEW
        # The operation may have been found under another zone or kind: read the due anew.
        due_at = read_due(rule.due, locked.due)
        known = due_at if isinstance(due_at, datetime) else claim.due_at
        return decide_matching(known, rule.due, now, to_review=to_review)
    if isinstance(locked.row, RowAbsence):
        return decide_absent(locked.row)
    if locked.row is None or locked.command is None:
        raise ChangeLost(f"nothing was read for operation {claim.operation_key}", "FREEHOLD")
    return decide_expiry(
        locked.command, locked.row, rule.due, rule.again, now, one_holder=rule.one_holder
    )


def _write_tallies(tx: Transaction, rule: Rule, doors: _Doors) -> dict[str | None, int]:
    """Write one tally for each tenant that something ended for; return the ids by tenant."""
    tenants = (*(c.tenant for c in doors.released), *(c.tenant for c, _ in doors.skipped))
    tallies = {tenant: Tally(rule.name, tenant) for tenant in dict.fromkeys(tenants)}
    for claim in doors.released:
        tallies[claim.tenant].count_expired((tx.now - claim.due_at).total_seconds())
        tallies[claim.tenant].redelivery_count += claim.failed_count
    for claim, reason in doors.skipped:
        tallies[claim.tenant].skipped[reason] += 1
        tallies[claim.tenant].redelivery_count += claim.failed_count
    return dict(zip(tallies, tx.operations.add_tallies(list(tallies.values())), strict=True))


def _release(
    holds: Holds,
    claims: Sequence[Claim],
    tally_ids: dict[str | None, int],
    checkpoint: Checkpoint,
) -> None:
    if not claims:
        return
    ids = [claim.id for claim in claims]
    holds.run_companions(ids, before=True)
    checkpoint.reach(Boundary.COMPANIONS_BEFORE)
    holds.release([Chosen(claim.id, claim.hold_key, tally_ids[claim.tenant]) for claim in claims])
    checkpoint.reach(Boundary.RELEASED)
    holds.run_companions(ids, before=False)
    checkpoint.reach(Boundary.COMPANIONS_AFTER)


def _images(holds: Holds, rule: Rule, released: Sequence[Claim]) -> Images:
    """Read the rows for the rule's handler while they are as they were."""
    if rule.handler is None or not released:
        return {}
    return holds.images([claim.id for claim in released])


def _finish_skipped(
    tx: Transaction, rule: Rule, doors: _Doors, tally_ids: dict[str | None, int]
) -> None:
    if not doors.skipped:
        return
    skipped = [Skipped(c.id, tally_ids[c.tenant], reason.value) for c, reason in doors.skipped]
    if rule.tell_skips:
        tx.operations.tell_skipped(skipped)
    tx.operations.finish_skipped(skipped)


def _put_off(tx: Transaction, doors: _Doors) -> None:
    if doors.deferred:
        tx.operations.put_off([_put(claim, defer, tx.now) for claim, defer in doors.deferred])


def _put(claim: Claim, defer: Defer, now: datetime) -> Put:
    """Come back at the instant that the decision names, else after a doubling pause."""
    if defer.until is None:
        return put_off_busy(claim, now)
    return Put(claim.id, defer.reason.value, defer.until, deferrals=0)


def put_off_busy(claim: Claim, now: datetime) -> Put:
    """Come back after a pause that doubles each time the row is still locked."""
    pause = min(BUSY_FIRST * 2 ** min(claim.deferrals, 10), BUSY_MOST)
    return Put(claim.id, DeferReason.BUSY.value, now + pause, claim.deferrals + 1)


def _to_review(tx: Transaction, doors: _Doors) -> None:
    for reason in dict.fromkeys(reason for _, reason in doors.reviewed):
        claims = [claim for claim, why in doors.reviewed if why == reason]
        tx.operations.bury(claims, reason, Failure(FailureClass.BROKEN, reason))


def _result(doors: _Doors, now: datetime) -> BatchResult:
    events: list[Event] = [HoldsReleased(doors.released, now)] if doors.released else []
    events += [
        OperationDied(claim, claim.failed_count + 1, FailureClass.BROKEN)
        for claim, _ in doors.reviewed
    ]
    return BatchResult(
        released_count=len(doors.released),
        skipped=Counter(reason for _, reason in doors.skipped),
        deferred=Counter(defer.reason for _, defer in doors.deferred),
        buried_count=len(doors.reviewed),
        events=events,
    )
