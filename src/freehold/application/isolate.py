"""Find the rows of a batch that the database refuses, in separate transactions.

Never savepoints: a deferred constraint fails only at COMMIT. Fresh rows go first and together;
rows that failed before go alone. *Invariants*: only a row that failed alone spends an attempt, and
only once the whole batch was tried; a rule that fails as a whole is reported, and spends none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from freehold.application.release import BatchResult, put_off_busy
from freehold.application.rulestate import CAREFUL_BATCH
from freehold.application.together import Tools, give_back, release_these
from freehold.domain.errors import (
    HANDLER,
    DatabaseAway,
    DatabaseBusy,
    DatabaseError,
    HandlerFailed,
    RowRefused,
    RuleRefused,
    StatementTimedOut,
)
from freehold.domain.expiry import DeferReason
from freehold.domain.operations import Claim
from freehold.domain.retries import Bury, Failure, FailureClass, after_failure
from freehold.domain.rules import Rule
from freehold.ports.ledger import Transaction
from freehold.ports.system import Boundary
from freehold.ports.telemetry import AttemptFailed, Event, OperationDied

SAMPLE = 3  # single rows that decide whether a whole rule fails
REPEATS = 1  # a batch that stays locked is cut, not repeated at length
CUTTABLE = (RowRefused, RuleRefused, StatementTimedOut, DatabaseBusy)


@dataclass(slots=True)
class Isolation:
    """One failed batch on its way to single rows."""

    tools: Tools
    rule: Rule
    result: BatchResult = field(default_factory=BatchResult)
    _alone: dict[int, tuple[Claim, DatabaseError]] = field(default_factory=dict)
    _events: list[Event] = field(default_factory=list)
    _sampled: list[tuple[Claim, DatabaseError]] = field(default_factory=list)

    def run(self, claims: Sequence[Claim], error: DatabaseError) -> BatchResult:
        """Cut a refused batch until the poison rows stand alone.

        Raises:
            RuleRefused: the rule fails as a whole; no attempt was spent.
            DatabaseAway: a row took the connection down, or the server is gone.
        """
        self._blame_rule(error)
        if len(claims) == 1:
            if self.rule.handler is not None and claims[0].failed_count == 0:
                self._blame_rule_if_alike(claims, [error])  # batches begin small: ask at once
            self._note(claims[0], error)
        else:
            self._run_parts(claims, error)
        self._spend()
        return self.result

    def _run_parts(self, claims: Sequence[Claim], error: DatabaseError) -> None:
        fresh = [claim for claim in claims if claim.failed_count == 0]
        before = [claim for claim in claims if claim.failed_count > 0]
        why = self._try(fresh) if before else error
        if why is not None:
            self._cut(fresh, why, whole=True)
        self._try_each(before)

    def _cut(self, claims: Sequence[Claim], error: DatabaseError, *, whole: bool = False) -> None:
        """Bisect; the first cut also asks whether it is the rule that fails."""
        if len(claims) == 1:
            self._note(claims[0], error)
            return
        tried = [(half, self._try(half)) for half in _halves(claims)]
        failed = [(half, why) for half, why in tried if why is not None]
        if whole and len(failed) == len(tried):
            if self._is_all_locked(claims, [why for _, why in failed]):
                self._alone |= {claim.id: (claim, error) for claim in claims}
                return
            self._blame_rule_if_alike(claims, [why for _, why in failed])
        for half, why in failed:
            self._cut(half, why)

    def _try(self, claims: Sequence[Claim]) -> DatabaseError | None:
        """Release claims in a transaction of their own; return why the database would not."""
        self._renew(claims)
        try:
            self.result.add(release_these(self.tools, self.rule, claims, repeats=REPEATS))
        except CUTTABLE as error:
            self._blame_rule(error)
            return error
        return None

    def _renew(self, claims: Sequence[Claim]) -> None:
        """Prolong a handler's lease before each step, so that only progress prolongs it."""
        token = claims[0].lease_token if claims else None
        if token is not None and self.rule.handler is not None:
            with self.tools.ledger.transaction() as tx:
                tx.operations.renew(token, tx.now + self.tools.lease_span(self.rule))

    def _try_alone(self, claim: Claim) -> None:
        why = self._try([claim])
        if why is not None:
            self._note(claim, why)

    def _try_each(self, claims: Sequence[Claim]) -> None:
        """Try rows alone; behind some that were locked in a row, the rest are put off untried."""
        locked: list[DatabaseError] = []
        for claim in claims:
            why = locked[-1] if len(locked) >= SAMPLE else self._try([claim])
            locked = [*locked, why] if isinstance(why, DatabaseBusy) else []
            if why is not None:
                self._note(claim, why)

    def _is_all_locked(self, claims: Sequence[Claim], errors: Sequence[DatabaseError]) -> bool:
        """Tell whether the host has the whole table locked: each row tried alone costs a time-out."""
        if len(claims) <= SAMPLE or not all(isinstance(one, DatabaseBusy) for one in errors):
            return False
        sample = (claims[0], claims[len(claims) // 2], claims[-1])
        return all(isinstance(self._try([one]), DatabaseBusy) for one in sample)

    def _note(self, claim: Claim, error: DatabaseError) -> None:
        self._alone[claim.id] = (claim, error)

    # ------------------------------------------------------------- is it the rule that fails?

    def _blame_rule(self, error: DatabaseError) -> None:
        """Tell a broken mapping from a row whose trigger fails with an error of that class.

        Raises:
            RuleRefused: the rule's statements are refused even where they meet no row.
        """
        if isinstance(error, RuleRefused):
            if error.code == HANDLER:
                raise error
            with self.tools.ledger.transaction() as tx:
                tx.holds(self.rule).rehearse()

    def _blame_rule_if_alike(
        self, claims: Sequence[Claim], errors: Sequence[DatabaseError]
    ) -> None:
        """Try three of the rule's newest rows alone; rows that failed before are no evidence.

        Raises:
            RuleRefused: all of them were refused alike.
        """
        first = errors[0]
        if isinstance(first, DatabaseBusy) or any(one.likeness != first.likeness for one in errors):
            return
        sample, wanted = self._sample(claims), SAMPLE - (len(claims) == 1)
        alike = len(sample) >= wanted and all(
            self._is_like(claim, first) for claim in sample[:wanted]
        )
        self._end_sample(alike=alike)
        if alike:
            place = first.place if isinstance(first, HandlerFailed) else ""
            said = place or first  # a handler's own text may name a guest
            raise RuleRefused(f"every row tried was refused: {said}", first.code)

    def _sample(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Return fresh rows to try alone: the newest, else some of a batch that is leased to us."""
        with self.tools.ledger.transaction() as tx:
            newest = tx.operations.newest(self.rule.name, SAMPLE)
        ours = [claim for claim in claims if claim.lease_token is not None]
        spare = ours[::-1] if len(claims) > SAMPLE else []
        return [claim for claim in (*newest, *spare) if claim.failed_count == 0]

    def _is_like(self, claim: Claim, error: DatabaseError) -> bool:
        if self.rule.handler is None or claim.lease_token is not None:
            why = self._try([claim])
            return why is not None and why.likeness == error.likeness
        leased = self._leased([claim], self.tools.lease_span(self.rule))
        why = self._try(leased) if leased else None
        if why is not None:
            self._sampled.append((leased[0], why))
        return why is not None and why.likeness == error.likeness

    def _end_sample(self, *, alike: bool) -> None:
        """Let rows that were leased for the sample answer for themselves, or for the rule."""
        sampled, self._sampled = self._sampled, []
        if not alike:
            for claim, why in sampled:
                self._note(claim, why)
            return
        for claim, _ in sampled:
            with self.tools.ledger.transaction() as tx:
                give_back(tx, [claim])

    # ----------------------------------------------------------------- after a lost connection

    def run_careful(self, claims: Sequence[Claim], lease: timedelta) -> BatchResult:
        """After a lost backend: leased batches of a few rows, then single rows.

        Raises:
            RuleRefused: the rule fails as a whole.
            DatabaseAway: the server is gone.
        """
        for part in _careful_parts(claims):
            leased = self._leased(part, lease)
            if leased and not self._survives(leased):
                for claim in leased:
                    self._survive_alone(claim)
        self._spend()
        return self.result

    def _leased(self, claims: Sequence[Claim], lease: timedelta) -> Sequence[Claim]:
        """Lease what is still claimable; operations under our own lease already stay ours."""
        with self.tools.ledger.transaction() as tx:
            ids = [claim.id for claim in claims]
            token = claims[0].lease_token
            kept = [] if token is None else tx.operations.claim_these(ids, token)
            leased = tx.operations.lease_these(ids, tx.now + lease)
        self.tools.checkpoint.reach(Boundary.LEASE_COMMITTED)
        return leased or [claim for claim in kept if claim.lease_token is not None]

    def _survives(self, claims: Sequence[Claim]) -> bool:
        try:
            why = self._try(claims)
            if why is not None:
                self._cut(claims, why)
        except DatabaseAway:
            return False
        return True

    def _survive_alone(self, claim: Claim) -> None:
        try:
            self._try_alone(claim)
        except DatabaseAway as lost:
            self._note(claim, lost)

    # -------------------------------------------------------------------------- what it costs

    def _spend(self) -> None:
        """Spend an attempt for each row that failed alone, or put it off where it was locked."""
        if not self._alone:
            return
        self.tools.checkpoint.reach(Boundary.FAILURE_CLASSIFIED)
        with self.tools.ledger.transaction() as tx:
            self._events.clear()
            for claim, error in self._alone.values():
                self._fail(tx, claim, error)
        self._alone.clear()
        for event in self._events:
            self.tools.telemetry.tell(event)
        self.tools.checkpoint.reach(Boundary.FAILURE_WRITTEN)

    def _fail(self, tx: Transaction, claim: Claim, error: DatabaseError) -> None:
        """Write how one row failed, unless somebody else has it by now."""
        if isinstance(error, DatabaseBusy):
            ours = tx.operations.claim_these([claim.id], claim.lease_token)
            tx.operations.put_off([put_off_busy(one, tx.now) for one in ours])
            self.result.deferred[DeferReason.BUSY] += len(ours)
            return
        failure = _failure(error)
        attempt = claim.failed_count + 1
        next_step = after_failure(self.rule.retry, attempt, failure, self.tools.dice.luck())
        retry_at = None if isinstance(next_step, Bury) else tx.now + next_step.after
        if tx.operations.fail(claim, failure, attempt, retry_at):
            self.result.failed_count += retry_at is not None
            self.result.buried_count += retry_at is None
            self._events.append(_told(claim, attempt, failure, retry_at))


def _told(claim: Claim, attempt: int, failure: Failure, retry_at: datetime | None) -> Event:
    kind, code = failure.failure_class, failure.code
    if retry_at is None:
        return OperationDied(claim, attempt, kind, code)
    return AttemptFailed(claim, attempt, kind, code, retry_at)


def _failure(error: DatabaseError) -> Failure:
    timed_out = isinstance(error, StatementTimedOut)
    kind = FailureClass.TRANSIENT if timed_out else FailureClass.BROKEN
    return Failure(kind, str(error), error.code)


def _halves(claims: Sequence[Claim]) -> list[Sequence[Claim]]:
    middle = (len(claims) + 1) // 2
    return [claims[:middle], claims[middle:]]


def _careful_parts(claims: Sequence[Claim]) -> list[Sequence[Claim]]:
    """Cut fresh rows into small parts; rows that failed before come last, each alone."""
    fresh = [claim for claim in claims if claim.failed_count == 0]
    small = [fresh[at : at + CAREFUL_BATCH] for at in range(0, len(fresh), CAREFUL_BATCH)]
    return [*small, *([claim] for claim in claims if claim.failed_count > 0)]
