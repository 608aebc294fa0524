"""The sweep: takes back ended leases, closes what needs nothing any more, reads from the start.

*Invariants*: every write repeats the state that it was decided on; a sweep is bounded in rows; what
fails of one rule keeps no other from being swept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from freehold.application.prune import Pruner
from freehold.application.scan import Scanner
from freehold.domain.errors import DatabaseAway, DatabaseError
from freehold.domain.operations import Claim
from freehold.domain.retries import Failure, FailureClass, RetryPolicy
from freehold.domain.rules import Rule
from freehold.ports.holds import ScanCursor
from freehold.ports.ledger import Ledger, Put, Transaction
from freehold.ports.system import Boundary, Checkpoint
from freehold.ports.telemetry import (
    UNHEARD,
    DatabaseTrouble,
    OperationDied,
    SweepFinished,
    Telemetry,
)

PAGE = 1_000  # rows of one step
SILENT_AFTER = timedelta(seconds=60)
UNANSWERED_AFTER = timedelta(minutes=30)  # where nobody asks any more who would close it sooner
LEASE_ENDED = "its worker was killed or stopped while it had the operation in hand"
NOT_DUE_ANY_MORE = "no longer held"


@dataclass(slots=True)
class SweepResult:
    """Counts of one sweep.

    Attributes:
        forward_count: forwards whose lease was over, made ready again.
        event_count: events that nobody waits for any more, published.
        troubles: steps that the database refused, each with its error.
    """

    returned_count: int = 0
    buried_count: int = 0
    closed_count: int = 0
    forgotten_count: int = 0
    forward_count: int = 0
    event_count: int = 0
    troubles: list[tuple[str, DatabaseError]] = field(default_factory=list)


@dataclass(slots=True)
class _Cursors:
    """Where the next sweep goes on in one rule."""

    review_after_id: int = 0
    empty_due: ScanCursor | None = None


@dataclass(slots=True)
class Sweeper:
    """Sweeps, step by bounded step, on one ledger connection."""

    ledger: Ledger
    checkpoint: Checkpoint
    scanner: Scanner
    telemetry: Telemetry = UNHEARD
    pruner: Pruner | None = None
    _cursors: dict[str, _Cursors] = field(default_factory=dict)
    _waiting_after_id: int = 0

    def sweep(self, rules: Sequence[Rule]) -> SweepResult:
        """Do one round over all rules.

        Again: does only what is left.

        Raises:
            DatabaseAway: the database cannot be reached; try again later.
        """
        result = SweepResult()
        steps: dict[str, Callable[[], None]] = {"leases": partial(self._take_back, rules, result)}
        for rule in rules:
            steps[f"review of {rule.name}"] = partial(self._close_settled, rule, result)
            steps[f"empty dues of {rule.name}"] = partial(self._look_at_empty, rule)
        steps["forwards"] = partial(self._keep_forwards, result)
        steps |= {"workers": partial(self._forget_silent, result), "house": self.ledger.keep_house}
        if self.pruner is not None:
            steps["retention"] = self.pruner.go_on
        for name, step in steps.items():
            self._take(name, step, result)
        self.checkpoint.reach(Boundary.SWEPT)
        counts = (result.returned_count, result.buried_count, result.closed_count)
        self.telemetry.tell(SweepFinished(*counts))
        return result

    def _forget_silent(self, result: SweepResult) -> None:
        """Forget processes that are gone, and close what they had asked a language model."""
        with self.ledger.transaction() as tx:
            result.forgotten_count = len(tx.workers.forget_silent(tx.now - SILENT_AFTER))
            tx.summaries.abandon(tx.now - UNANSWERED_AFTER)

    def _take_back(self, rules: Sequence[Rule], result: SweepResult) -> None:
        """Return ended leases; bury operations whose attempts a killed worker used up."""
        most = {rule.name: rule.retry.attempts_max for rule in rules}
        usual = RetryPolicy().attempts_max  # for a rule that is not configured here any more
        with self.ledger.transaction() as tx:
            lapsed = tx.operations.return_lapsed(PAGE)
            used_up = [claim for claim in lapsed if claim.attempt >= most.get(claim.rule, usual)]
            self._bury(tx, used_up)
            _put_off_handled(tx, rules, lapsed)
        result.returned_count = len(lapsed) - len(used_up)
        result.buried_count = len(used_up)
        for claim in used_up:
            self.telemetry.tell(OperationDied(claim, claim.attempt, FailureClass.TRANSIENT))

    def _bury(self, tx: Transaction, claims: Sequence[Claim]) -> None:
        failure = Failure(FailureClass.TRANSIENT, LEASE_ENDED)
        tx.operations.bury(claims, f"attempts used up: {LEASE_ENDED}", failure)

    def _close_settled(self, rule: Rule, result: SweepResult) -> None:
        """Close operations in review whose hold is no longer held and due."""
        cursors = self._cursors.setdefault(rule.name, _Cursors())
        with self.ledger.transaction() as tx:
            ids = tx.reviews.find_open(rule.name, cursors.review_after_id, PAGE)
            settled = set(ids) - tx.holds(rule).still_due(ids) if ids else set()
            result.closed_count += tx.reviews.close(sorted(settled), NOT_DUE_ANY_MORE)
        cursors.review_after_id = ids[-1] if len(ids) == PAGE else 0

    def _look_at_empty(self, rule: Rule) -> None:
        cursors = self._cursors.setdefault(rule.name, _Cursors())
        cursors.empty_due = self.scanner.scan_empty(rule, cursors.empty_due, PAGE)

    def _keep_forwards(self, result: SweepResult) -> None:
        """Take back forwards that somebody was lost with, and publish what nobody waits for.

        Where no target is configured any more, no relay routes what waits.
        """
        with self.ledger.transaction() as tx:
            result.forward_count = tx.relay.take_back(PAGE)
            finished = tx.relay.publish_finished(self._waiting_after_id, PAGE)
            result.event_count = finished.published_count
            if not any(target.active for target in tx.relay.targets()):
                unrouted = tx.relay.claim_unrouted(PAGE)
                tx.relay.route(unrouted, [])
                result.event_count += len(unrouted)
        self._waiting_after_id = finished.after_id

    def _take(self, name: str, step: Callable[[], None], result: SweepResult) -> None:
        """Take one step; what it is refused is noted, and the next one taken."""
        try:
            step()
        except DatabaseAway:
            raise
        except DatabaseError as error:
            result.troubles.append((name, error))
            told = DatabaseTrouble(f"sweep, {name}", type(error).__name__, error.code)
            self.telemetry.tell(told)


def _put_off_handled(tx: Transaction, rules: Sequence[Rule], lapsed: Sequence[Claim]) -> None:
    """Let operations of rules with a handler wait as after any failed attempt.

    It may be the handler that ends the process: every service would fall to it within a lease.
    """
    policies = {rule.name: rule.retry for rule in rules if rule.handler is not None}
    put = []
    for claim in lapsed:
        policy = policies.get(claim.rule)
        delay = None if policy is None else policy.delay_after(claim.attempt, luck=0.5)
        if delay is not None:
            put.append(Put(claim.id, LEASE_ENDED, tx.now + delay, claim.deferrals))
    tx.operations.put_off(put)
