"""Handlers in the worker's hands: what may go into one batch, how large it may be, and its call.

*Invariants*: an attempt is counted and committed before customer code runs; an operation with a
failed attempt behind it runs alone; a batch is sized to take a third of its lease.
*Not here*: the call itself (`ports.handlers`), what follows a failure (`isolate`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from freehold.domain.errors import HANDLER, RuleRefused
from freehold.domain.operations import Claim
from freehold.domain.rules import Rule
from freehold.ports.handlers import ExpiredHold, Handler
from freehold.ports.ledger import Transaction
from freehold.ports.system import HostClock

LEASE_SHARE = 1 / 3  # of a lease, for one batch; the rest is for what goes slower than before
GROWTH_MOST = 4  # times as many holds as a batch that went well
NEWEST_SHARE = 0.2  # of a faster batch in the measured time; a slower one counts whole

Images = Mapping[int, Mapping[str, str | None]]


@dataclass(slots=True)
class Pace:
    """How long a rule's handler takes, by what this worker measured.

    Attributes:
        seconds_each: of one hold, near the worst of the last batches; 0 before the first.
        count: holds in the largest batch that went well since one failed.
    """

    seconds_each: float = 0.0
    count: int = 0

    def size(self, seconds: float) -> int:
        """Return how many holds a batch may have that is to take so long."""
        most = max(1, GROWTH_MOST * self.count)
        return max(1, int(min(most, seconds / self.seconds_each if self.seconds_each else most)))

    def note(self, count: int, seconds: float, *, failed: bool) -> None:
        """Note how long a batch took."""
        each = seconds / count
        smoothed = NEWEST_SHARE * each + (1 - NEWEST_SHARE) * self.seconds_each
        self.seconds_each = max(each, smoothed)
        self.count = count // GROWTH_MOST if failed else max(self.count, count)


@dataclass(slots=True)
class Handling:
    """The handlers of a process, and one worker's measure of each."""

    handlers: Mapping[str, Handler]
    clock: HostClock
    _paces: dict[str, Pace] = field(default_factory=dict)

    def size(self, rule: Rule, lease_seconds: float) -> int:
        """Return how many holds of a rule one lease may cover."""
        return self._pace(rule).size(lease_seconds * LEASE_SHARE)

    def _pace(self, rule: Rule) -> Pace:
        return self._paces.setdefault(rule.name, Pace())

    def call(self, tx: Transaction, rule: Rule, released: Sequence[Claim], images: Images) -> None:
        """Call the rule's handler with what this transaction released.

        Raises:
            RuleRefused: this process knows no handler for the rule.
            DatabaseError: as `Transaction.call` says.
        """
        handler = self.handlers.get(rule.name)
        if handler is None:
            raise no_handler(rule)
        holds = [_expired(claim, images[claim.id]) for claim in released]
        began = self.clock.monotonic()
        failed = True
        try:
            tx.call(handler, rule, holds)
            failed = False
        finally:
            seconds = self.clock.monotonic() - began
            self._pace(rule).note(len(holds), seconds, failed=failed)


def no_handler(rule: Rule) -> RuleRefused:
    """Say that a rule must not be worked here without its handler."""
    return RuleRefused(f"rule {rule.name} has a handler, which this process did not load", HANDLER)


def _expired(claim: Claim, columns: Mapping[str, str | None]) -> ExpiredHold:
    return ExpiredHold(
        tenant=claim.tenant,
        key=claim.hold_key,
        due_at=claim.due_at,
        operation_key=claim.operation_key,
        attempt=claim.attempt,
        columns=columns,
    )


def lease_some(tx: Transaction, found: Sequence[Claim], until: datetime) -> Sequence[Claim]:
    """Lease what may run together: one operation that failed before, or fresh ones.

    Args:
        found: operations that this transaction claimed; the one that waits longest decides.
    """
    if not found:
        return ()
    ordered = sorted(found, key=lambda one: (one.available_at or until, one.id))
    chosen = ordered[:1] if ordered[0].failed_count else [c for c in ordered if not c.failed_count]
    return tx.operations.lease_claimed(chosen, until)
