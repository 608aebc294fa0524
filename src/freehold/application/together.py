"""One transaction that releases operations claimed before: under a lease, or while a batch is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from freehold.application.handling import Handling
from freehold.application.release import BatchResult, release_batch
from freehold.application.repeat import REPEATS_MAX, repeated
from freehold.application.rulestate import admit
from freehold.domain.errors import DatabaseBusy
from freehold.domain.expiry import DeferReason
from freehold.domain.operations import Claim
from freehold.domain.rules import Rule
from freehold.ports.ledger import Ledger, Put, Transaction
from freehold.ports.system import Checkpoint, Dice, Pause
from freehold.ports.telemetry import UNHEARD, BatchFinished, Telemetry

LEASE = timedelta(seconds=30)
RULE_PAUSED = "rule paused"


@dataclass(frozen=True, slots=True)
class Tools:
    """What a worker works with."""

    ledger: Ledger
    checkpoint: Checkpoint
    dice: Dice
    pause: Pause
    telemetry: Telemetry = UNHEARD
    handling: Handling | None = None
    lease: timedelta = LEASE

    def lease_span(self, rule: Rule) -> timedelta:
        """Return how long a claim of the rule lasts; a handler may use up its time limit.

        On SQLite a write of that length is followed by a pause of that length.
        """
        return self.lease if rule.handler is None else self.lease + rule.handler.time_limit

    def tell(self, batch: BatchResult) -> None:
        """Tell what a batch ended, once its transaction is committed."""
        for event in batch.events:
            self.telemetry.tell(event)


def release_these(
    tools: Tools, rule: Rule, claims: Sequence[Claim], *, repeats: int = REPEATS_MAX
) -> BatchResult:
    """Release operations in a transaction of their own, as far as they are still ours.

    Args:
        claims: all under one lease, or none of them under any.

    Raises:
        DatabaseError: as the database said it; nothing of this batch was written.
    """
    done = BatchResult()
    if not claims:
        return done

    def attempt() -> None:
        nonlocal done
        with tools.ledger.transaction() as tx:
            state = admit(tx, rule)
            if state.guards:
                done = _guarded(tx, claims)
                return
            if not may_run(tx, rule):
                raise DatabaseBusy(f"another batch of rule {rule.name} runs its companions")
            ours = _still_ours(tx, rule, claims)
            done = (
                release_batch(tx, rule, ours, tools.checkpoint, tools.handling)
                if ours
                else BatchResult()
            )

    repeated(attempt, tools.dice, tools.pause, repeats)
    tools.tell(done)
    return done


def _still_ours(tx: Transaction, rule: Rule, claims: Sequence[Claim]) -> Sequence[Claim]:
    """Lock what is still to do; customer code runs under a lease that is still ours, or not."""
    ids, token = [claim.id for claim in claims], claims[0].lease_token
    if rule.handler is None:
        return tx.operations.claim_these(ids, token)
    ours = set() if token is None else tx.operations.still_leased(ids, token)
    return [claim for claim in claims if claim.id in ours]


def give_back(tx: Transaction, claims: Sequence[Claim]) -> None:
    """End the lease of a batch before its time; the attempts that it counted are taken back."""
    leased = [claim.id for claim in claims if claim.lease_token is not None]
    if leased:
        ours = tx.operations.claim_these(leased, claims[0].lease_token)
        tx.operations.put_off([Put(one.id, RULE_PAUSED, tx.now, one.deferrals) for one in ours])


def _guarded(tx: Transaction, claims: Sequence[Claim]) -> BatchResult:
    """Give a batch back that a guard met: no attempt is spent, and a worker takes it again."""
    ids, token = [claim.id for claim in claims], claims[0].lease_token
    if token is not None:
        reason = DeferReason.GUARDED.value
        ours = tx.operations.claim_these(ids, token)
        tx.operations.put_off([Put(one.id, reason, tx.now, one.deferrals) for one in ours])
    return BatchResult(deferred=Counter({DeferReason.GUARDED: len(ids)}))


def may_run(tx: Transaction, rule: Rule) -> bool:
    """Let one batch at a time run where companions have no order of their own."""
    unordered = any(companion.lock_by is None for companion in rule.companions)
    return not unordered or tx.rules.alone(rule.name)


def finished(rule: Rule, result: BatchResult) -> BatchFinished:
    """Say what became of a batch."""
    return BatchFinished(
        rule=rule.name,
        released_count=result.released_count,
        skipped={reason.value: count for reason, count in result.skipped.items()},
        deferred={reason.value: count for reason, count in result.deferred.items()},
        failed_count=result.failed_count,
        dead_count=result.buried_count,
    )
