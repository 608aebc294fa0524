"""Find the rows of a batch that the database refuses, in separate transactions.

Never savepoints: a deferred constraint fails only at COMMIT. Rows that failed before are tried
apart from the fresh ones, which therefore commit at once. *Invariants*: only a row that failed
alone spends an attempt; a rule whose fresh rows all fail alike is reported, not buried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from freehold.application.release import BatchResult
from freehold.application.rulestate import CAREFUL_BATCH
from freehold.domain.errors import (
    DatabaseAway,
    DatabaseError,
    RowRefused,
    StatementTimedOut,
)
from freehold.domain.operations import Claim
from freehold.domain.retries import Bury, Failure, FailureClass, after_failure
from freehold.domain.rules import Rule
from freehold.ports.ledger import Ledger
from freehold.ports.system import Boundary, Checkpoint, Dice

SAMPLE = 3  # single rows that decide whether a whole rule fails

ReleaseThese = Callable[[Rule, Sequence[Claim]], BatchResult]


class Isolation:
    """One failed batch on its way to single rows."""

    def __init__(
        self,
        ledger: Ledger,
        checkpoint: Checkpoint,
        dice: Dice,
        rule: Rule,
        release_these: ReleaseThese,
    ) -> None:
        self._ledger = ledger
        self._checkpoint = checkpoint
        self._dice = dice
        self._rule = rule
        self._release_these = release_these
        self.result = BatchResult()
        self.rule_fails: str | None = None

    def run(self, claims: Sequence[Claim], error: DatabaseError) -> BatchResult:
        """Cut a refused batch until the poison rows stand alone.

        Raises:
            RuleRefused: schema or privilege is at fault, not a row.
        """
        if len(claims) == 1:
            self._fail(claims[0], error)
            return self.result
        failed = [(part, why) for part in _parts(claims) if (why := self._try(part)) is not None]
        if self._all_alike(claims, failed) and self._whole_rule_fails(failed[0][1]):
            return self.result
        for part, why in failed:
            self._cut(part, why)
        return self.result

    def _cut(self, claims: Sequence[Claim], error: DatabaseError) -> None:
        """Bisect; a single row that failed spends its attempt."""
        if len(claims) == 1:
            self._fail(claims[0], error)
            return
        for half in _halves(claims):
            why = self._try(half)
            if why is not None:
                self._cut(half, why)

    def _try(self, claims: Sequence[Claim]) -> DatabaseError | None:
        try:
            self.result.add(self._release_these(self._rule, claims))
        except (RowRefused, StatementTimedOut) as error:
            return error
        return None

    def _all_alike(
        self, claims: Sequence[Claim], failed: Sequence[tuple[Sequence[Claim], DatabaseError]]
    ) -> bool:
        codes = {error.code for _, error in failed}
        timed_out = any(isinstance(error, StatementTimedOut) for _, error in failed)
        return len(failed) == len(_parts(claims)) and len(codes) == 1 and not timed_out

    def _whole_rule_fails(self, error: DatabaseError) -> bool:
        """Try three of the rule's newest rows alone; rows that failed before are no evidence."""
        with self._ledger.transaction() as tx:
            sample = [
                claim
                for claim in tx.operations.newest(self._rule.name, SAMPLE)
                if claim.attempt == 0
            ]
        refusals = [self._try([claim]) for claim in sample]
        alike = all(why is not None and why.code == error.code for why in refusals)
        if len(sample) == SAMPLE and alike:
            self.rule_fails = f"every row tried was refused: {error}"
        return self.rule_fails is not None

    def run_careful(self, claims: Sequence[Claim], lease: timedelta) -> BatchResult:
        """After a lost backend: leased batches of a few rows, then single rows."""
        for start in range(0, len(claims), CAREFUL_BATCH):
            part = claims[start : start + CAREFUL_BATCH]
            leased = self._leased(part, lease)
            if leased and not self._survives(leased):
                for claim in leased:
                    self._alone(claim)
        return self.result

    def _leased(self, claims: Sequence[Claim], lease: timedelta) -> Sequence[Claim]:
        """Lease what is still claimable; operations under our own lease already stay ours."""
        with self._ledger.transaction() as tx:
            ids = [claim.id for claim in claims]
            token = claims[0].lease_token
            kept = tx.operations.claim_these(ids, token) if token is not None else ()
            leased = tx.operations.lease_these(ids, tx.now + lease)
        self._checkpoint.reach(Boundary.LEASE_COMMITTED)
        return leased or [claim for claim in kept if claim.lease_token is not None]

    def _survives(self, claims: Sequence[Claim]) -> bool:
        try:
            why = self._try(claims)
        except DatabaseAway:
            return False
        if why is not None:
            self._cut(claims, why)
        return True

    def _alone(self, claim: Claim) -> None:
        try:
            why = self._try([claim])
        except DatabaseAway as lost:
            why = lost
        if why is not None:
            self._fail(claim, why)

    def _fail(self, claim: Claim, error: DatabaseError) -> None:
        """Spend an attempt: try again by the policy, or give up."""
        timed_out = isinstance(error, StatementTimedOut)
        kind = FailureClass.TRANSIENT if timed_out else FailureClass.BROKEN
        failure = Failure(kind, str(error), error.code)
        attempt = claim.attempt + (0 if claim.lease_token is not None else 1)
        next_step = after_failure(self._rule.retry, attempt, failure, self._dice.luck())
        self._checkpoint.reach(Boundary.FAILURE_CLASSIFIED)
        with self._ledger.transaction() as tx:
            retry_at = None if isinstance(next_step, Bury) else tx.now + next_step.after
            written = tx.operations.fail(claim, failure, attempt, retry_at)
        self._checkpoint.reach(Boundary.FAILURE_WRITTEN)
        self.result.buried_count += int(written and retry_at is None)


def _halves(claims: Sequence[Claim]) -> list[Sequence[Claim]]:
    middle = (len(claims) + 1) // 2
    return [half for half in (claims[:middle], claims[middle:]) if half]


def _parts(claims: Sequence[Claim]) -> list[Sequence[Claim]]:
    """Cut rows that failed before from fresh ones; a batch of one sort is halved."""
    before = [claim for claim in claims if claim.attempt > 0]
    fresh = [claim for claim in claims if claim.attempt == 0]
    return [before, fresh] if before and fresh else _halves(claims)
