"""The worker: claims operations of a rule, releases them, and isolates what cannot be released.

*Invariants*: a batch that fails is cut in separate transactions until the poison rows stand alone;
an attempt is spent for a single row only; a rule that fails as a whole is paused and buries
nothing. *Not here*: what a batch does inside its transaction (`release`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from freehold.application.isolate import Isolation
from freehold.application.release import BatchResult, release_batch
from freehold.application.repeat import repeated
from freehold.application.rulestate import (
    admit,
    batch_size,
    be_careful,
    may_work,
    pause,
    resume,
    trust_again,
)
from freehold.domain.errors import (
    DatabaseAway,
    DatabaseError,
    RowRefused,
    RuleRefused,
    StatementTimedOut,
)
from freehold.domain.operations import Claim
from freehold.domain.rules import Rule
from freehold.ports.ledger import Ledger, RuleCondition, RuleState, Transaction
from freehold.ports.system import Boundary, Checkpoint, Dice, Pause

LEASE = timedelta(seconds=30)
FLOOR_OVERLAP = timedelta(seconds=5)  # a scan's transaction may commit this much after its now
CLEAN_BATCHES = 10


class PassEnd(StrEnum):
    """How one pass over a rule ended."""

    IDLE = "idle"
    WORKED = "worked"
    PAUSED = "paused"
    NOT_ATTACHED = "not attached"


@dataclass(slots=True)
class _Memory:
    """What a worker remembers about a rule between passes."""

    floor: datetime | None = None
    clean_batches: int = 0


@dataclass(slots=True)
class PassResult:
    """One pass over one rule."""

    end: PassEnd
    batch: BatchResult = field(default_factory=BatchResult)


@dataclass(slots=True)
class _Taken:
    """Claims taken by the first transaction of a pass, for when it fails."""

    claims: Sequence[Claim] = ()
    state: RuleState | None = None
    allowed: bool = False
    result: BatchResult | None = None


class Worker:
    """Works through rules, a batch at a time, on one ledger connection."""

    def __init__(
        self,
        ledger: Ledger,
        checkpoint: Checkpoint,
        dice: Dice,
        pause: Pause,
        *,
        lease: timedelta = LEASE,
        on_batch: Callable[[Rule, BatchResult], None] | None = None,
    ) -> None:
        self._ledger = ledger
        self._checkpoint = checkpoint
        self._dice = dice
        self._pause = pause
        self._lease = lease
        self._on_batch = on_batch
        self._memory: dict[str, _Memory] = {}
        self.in_hand: str | None = None

    def forget_floors(self) -> None:
        """Read from the beginning at the next pass; the sweep asks for it."""
        for memory in self._memory.values():
            memory.floor = None

    def work(self, rule: Rule) -> PassResult:
        """Take one batch of a rule as far as it goes.

        Raises:
            DatabaseAway: the database cannot be reached; nothing is lost, try again later.
        Crash: claimed rows are free at once, leased ones when their lease ends.
        """
        self.in_hand = f"{rule.name}: up to {batch_size(self._ledger, rule)} holds"
        taken = _Taken()
        server = self._ledger.server_started_at
        try:
            repeated(lambda: self._first(rule, taken), self._dice, self._pause)
            return self._done(rule, taken)
        except RuleRefused as error:
            return self._paused(rule, str(error))
        except (RowRefused, StatementTimedOut) as error:
            return self._isolated(rule, taken, error)
        except DatabaseAway:
            if not taken.claims:
                raise
            return self._after_loss(rule, taken, server)
        finally:
            self.in_hand = None

    def _first(self, rule: Rule, taken: _Taken) -> None:
        """Try the whole batch: in one transaction, or take a lease and then release under it."""
        taken.claims, taken.result = (), None
        with self._ledger.transaction() as tx:
            taken.state = admit(tx, rule)
            taken.allowed = may_work(taken.state, tx.now)
            if not taken.allowed or not self._may_run(tx, rule):
                return
            if taken.state.condition is RuleCondition.PAUSED:
                tx.holds(rule).find_due(None, 1)
            taken.claims = self._claim(tx, rule, taken.state)
            self._checkpoint.reach(Boundary.CLAIMED)
            if taken.claims and not taken.state.leased:
                taken.result = release_batch(tx, rule, taken.claims, self._checkpoint)
        if taken.claims and taken.state.leased:
            self._checkpoint.reach(Boundary.LEASE_COMMITTED)
            taken.result = self.release_these(rule, taken.claims)

    def _may_run(self, tx: Transaction, rule: Rule) -> bool:
        """Let one batch at a time run where companions have no order of their own."""
        unordered = any(companion.lock_by is None for companion in rule.companions)
        return not unordered or tx.rules.alone(rule.name)

    def _claim(self, tx: Transaction, rule: Rule, state: RuleState) -> Sequence[Claim]:
        most = batch_size(self._ledger, rule)
        size = min(most, state.batch_limit or most)
        memory = self._memory.setdefault(rule.name, _Memory())
        if state.leased:
            return tx.operations.lease(rule.name, size, memory.floor, tx.now + self._lease)
        claims = tx.operations.claim(rule.name, size, memory.floor)
        if not claims:
            memory.floor = tx.now - FLOOR_OVERLAP
        return claims

    def release_these(self, rule: Rule, claims: Sequence[Claim]) -> BatchResult:
        """Release operations in a transaction of their own, as far as they are still ours.

        Raises:
            DatabaseError: as the database said it; nothing of this batch was written.
        """
        done = BatchResult()

        def attempt() -> None:
            nonlocal done
            with self._ledger.transaction() as tx:
                ids = [claim.id for claim in claims]
                ours = tx.operations.claim_these(ids, claims[0].lease_token)
                done = release_batch(tx, rule, ours, self._checkpoint)

        repeated(attempt, self._dice, self._pause)
        return done

    def _done(self, rule: Rule, taken: _Taken) -> PassResult:
        state = taken.state
        if state is None or state.condition is RuleCondition.WAITING:
            return PassResult(PassEnd.NOT_ATTACHED)
        if state.condition is RuleCondition.PAUSED:
            return self._probed(rule, taken)
        if taken.result is None:
            return PassResult(PassEnd.IDLE)
        self._count_clean(rule, state)
        return self._worked(rule, taken.result)

    def _worked(self, rule: Rule, result: BatchResult) -> PassResult:
        if self._on_batch is not None:
            self._on_batch(rule, result)
        return PassResult(PassEnd.WORKED, result)

    def _probed(self, rule: Rule, taken: _Taken) -> PassResult:
        """Resume a paused rule whose probe went well."""
        if not taken.allowed:
            return PassResult(PassEnd.PAUSED)
        with self._ledger.transaction() as tx:
            resume(tx, rule)
        return self._worked(rule, taken.result or BatchResult())

    def _count_clean(self, rule: Rule, state: RuleState) -> None:
        memory = self._memory.setdefault(rule.name, _Memory())
        memory.clean_batches = memory.clean_batches + 1 if state.leased else 0
        if memory.clean_batches >= CLEAN_BATCHES:
            memory.clean_batches = 0
            trust_again(self._ledger, rule)

    def _paused(self, rule: Rule, reason: str) -> PassResult:
        with self._ledger.transaction() as tx:
            pause(tx, rule, reason)
        return PassResult(PassEnd.PAUSED)

    def _isolated(self, rule: Rule, taken: _Taken, error: DatabaseError) -> PassResult:
        isolation = Isolation(self._ledger, self._checkpoint, self._dice, rule, self.release_these)
        try:
            result = isolation.run(taken.claims, error)
        except RuleRefused as refused:
            return self._paused(rule, str(refused))
        if isolation.rule_fails is not None:
            return self._paused(rule, isolation.rule_fails)
        return self._worked(rule, result)

    def _after_loss(self, rule: Rule, taken: _Taken, server_before: datetime | None) -> PassResult:
        """The connection broke with a batch in hand: find out whether a row of it did that."""
        state = be_careful(self._ledger, rule, server_before)
        if state.condition is RuleCondition.PAUSED:
            return PassResult(PassEnd.PAUSED)
        isolation = Isolation(self._ledger, self._checkpoint, self._dice, rule, self.release_these)
        return self._worked(rule, isolation.run_careful(taken.claims, self._lease))
