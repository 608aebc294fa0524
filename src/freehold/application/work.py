"""The worker: claims operations of a rule, releases them, and isolates what cannot be released.

*Invariants*: a batch that fails is cut in separate transactions until the poison rows stand alone;
an attempt is spent for a single row only; a rule that fails as a whole is paused and buries
nothing. *Not here*: what a batch does inside its transaction (`release`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from freehold.application.direct import StraightPages
from freehold.application.handling import Handling, lease_some, no_handler
from freehold.application.isolate import CUTTABLE, Isolation
from freehold.application.pauses import set_aside
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
from freehold.application.together import LEASE, Tools, finished, give_back, may_run, release_these
from freehold.application.window import WindowWorker
from freehold.domain.errors import DatabaseAway, DatabaseBusy, DatabaseError, RuleRefused
from freehold.domain.expiry import DeferReason
from freehold.domain.operations import Claim
from freehold.domain.rules import Rule
from freehold.ports.ledger import Ledger, RuleCondition, RuleState, Transaction
from freehold.ports.system import Boundary, Checkpoint, Dice, Pause
from freehold.ports.telemetry import UNHEARD, Telemetry

# A scanned page may commit this long after its now; what commits later waits for the sweep.
FLOOR_OVERLAP = timedelta(seconds=2)
CLEAN_BATCHES = 10
Named = Mapping[int, AbstractSet[str]]


class PassEnd(StrEnum):
    """How one pass over a rule ended."""

    IDLE = "idle"
    WORKED = "worked"
    PAUSED = "paused"
    GUARDED = "guarded"
    NOT_ATTACHED = "not attached"


@dataclass(slots=True)
class _Memory:
    """What a worker remembers about a rule between passes.

    Attributes:
        floor: no operation is claimable below it.
        place: where the pass goes on that the last full batch belongs to.
        lost_at: when the server was started that was lost with a batch of the rule in hand; kept
            until the ledger knows of the loss.
    """

    floor: datetime | None = None
    place: datetime | None = None
    clean_batches: int = 0
    lost: bool = False
    lost_at: datetime | None = None


@dataclass(slots=True)
class PassResult:
    """One pass over one rule.

    Attributes:
        claimed_count: how many operations it took in hand, those that failed included.
    """

    end: PassEnd
    batch: BatchResult = field(default_factory=BatchResult)
    claimed_count: int = 0


@dataclass(slots=True)
class _Taken:
    """What the first transaction of a pass took, for when it fails.

    Attributes:
        named: as `Worker.work_these` says; None takes the oldest.
        has_window: nothing else was claimable, and a window of the rule is open.
    """

    named: Named | None = None
    claims: Sequence[Claim] = ()
    state: RuleState | None = None
    allowed: bool = False
    result: BatchResult | None = None
    has_window: bool = False
    server_started_at: datetime | None = None

    @property
    def is_probe(self) -> bool:
        return self.state is not None and self.state.condition is RuleCondition.PAUSED


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
        telemetry: Telemetry = UNHEARD,
        handling: Handling | None = None,
    ) -> None:
        self._tools = Tools(ledger, checkpoint, dice, pause, telemetry, handling, lease)
        self._ledger = ledger
        self._lease = lease
        self._memories: dict[str, _Memory] = {}
        self.straight = StraightPages(self._tools)
        self._windows = WindowWorker(self.straight, lease)
        self.in_hand: str | None = None

    @property
    def tools(self) -> Tools:
        """Return what it works with."""
        return self._tools

    def forget_floors(self) -> None:
        """Read from the beginning at the next pass; the sweep asks for it."""
        for memory in list(self._memories.values()):
            memory.floor = memory.place = None

    def work(self, rule: Rule) -> PassResult:
        """Take one batch of a rule as far as it goes.

        Raises:
            DatabaseAway: the database cannot be reached; nothing is lost, try again later.
            DatabaseBusy: the database stayed locked; nothing is lost, try again later.
        Crash: claimed rows are free at once, leased ones when their lease ends.
        """
        return self._pass(rule, _Taken())

    def work_these(self, rule: Rule, named: Named) -> PassResult:
        """Take a batch of named operations as far as it goes.

        Args:
            named: operation keys by operation id; an id that is not claimable, or whose rule the
                ledger knows otherwise, or whose key is none of these, is passed over.

        Raises:
            DatabaseAway: the database cannot be reached; nothing is lost, try again later.
            DatabaseBusy: the database stayed locked, or another batch of a rule runs that may run
                one at a time only.
        Crash: as in `work`.
        """
        return self._pass(rule, _Taken(named))

    def _pass(self, rule: Rule, taken: _Taken) -> PassResult:
        self.in_hand = f"{rule.name}: up to {rule.batch_size} holds"
        try:
            self._tell_loss(rule)
            return self._attempt(rule, taken)
        except RuleRefused as error:
            return self._paused(rule, taken, str(error))
        except DatabaseAway:
            if not taken.claims:
                raise
            return self._after_loss(rule, taken)
        finally:
            self.in_hand = None

    # ------------------------------------------------------------------- the whole batch first

    def _attempt(self, rule: Rule, taken: _Taken) -> PassResult:
        tools = self._tools
        try:
            repeated(lambda: self._first(rule, taken), tools.dice, tools.pause)
            if taken.result is not None:
                tools.tell(taken.result)
            self._under_lease(rule, taken)
        except CUTTABLE as error:
            if not taken.claims:
                raise
            return self._isolated(rule, taken, error)
        if taken.state is None or taken.state.condition is RuleCondition.WAITING:
            return PassResult(PassEnd.NOT_ATTACHED)
        if not taken.allowed:
            return PassResult(PassEnd.GUARDED if taken.state.guards else PassEnd.PAUSED)
        if taken.result is None and not taken.is_probe:
            return self._window(rule) if taken.has_window else PassResult(PassEnd.IDLE)
        self._count_clean(rule, taken.state)
        return self._worked(rule, taken, taken.result or BatchResult())

    def _first(self, rule: Rule, taken: _Taken) -> None:
        """Try the whole batch in one transaction, or take it under a lease."""
        taken.claims, taken.result = (), None
        with self._ledger.transaction() as tx:
            taken.server_started_at = self._ledger.server_started_at
            taken.state = admit(tx, rule)
            taken.allowed = may_work(taken.state, tx.now)
            if not taken.allowed or not _may_run(tx, rule, taken):
                return
            if taken.is_probe:
                tx.holds(rule).rehearse()
            claims = self._claim(tx, rule, taken, taken.state)
            taken.claims, aside_count = set_aside(tx, taken.state, claims)
            if aside_count:
                taken.result = BatchResult(deferred=Counter({DeferReason.PAUSED: aside_count}))
            taken.has_window = self._has_window(tx, rule, taken)
            self._tools.checkpoint.reach(Boundary.CLAIMED)
            if taken.claims and taken.claims[0].lease_token is None:
                taken.result = release_batch(tx, rule, taken.claims, self._tools.checkpoint)

    def _has_window(self, tx: Transaction, rule: Rule, taken: _Taken) -> bool:
        return not taken.claims and taken.named is None and tx.windows.is_open(rule.name)

    def _window(self, rule: Rule) -> PassResult:
        """Take a window in hand, since no single operation is claimable."""
        result = self._windows.work(rule)
        return PassResult(PassEnd.IDLE) if result is None else PassResult(PassEnd.WORKED, result, 1)

    def _under_lease(self, rule: Rule, taken: _Taken) -> None:
        """Release what was leased; never repeated with its claim, which would strand the lease."""
        if taken.claims and taken.claims[0].lease_token is not None:
            self._tools.checkpoint.reach(Boundary.LEASE_COMMITTED)
            taken.result = release_these(self._tools, rule, taken.claims)

    def _claim(
        self, tx: Transaction, rule: Rule, taken: _Taken, state: RuleState
    ) -> Sequence[Claim]:
        size = min(batch_size(self._ledger, rule), state.batch_limit or rule.batch_size)
        if rule.handler is not None:
            return self._claim_for_handler(tx, rule, taken, size)
        if taken.named is not None:
            return _claim_named(tx, rule, taken.named, size, self._until(tx, state))
        memory = self._memory(rule)
        if state.leased:
            return tx.operations.lease(rule.name, size, memory.floor, tx.now + self._lease)
        return _claim_on(tx, rule, size, memory)

    def _claim_for_handler(
        self, tx: Transaction, rule: Rule, taken: _Taken, size: int
    ) -> Sequence[Claim]:
        """Lease what one call of the handler may get.

        Where all writers wait for one another, only one batch at a time has a lease: the others
        would lose theirs while they wait.
        """
        handling = self._tools.handling
        if handling is None:
            raise no_handler(rule)
        if self._ledger.one_writer and tx.operations.any_leased():
            if taken.named is not None or taken.is_probe:
                raise DatabaseBusy("another batch has a lease, and all writers wait for it")
            return ()
        size = min(size, handling.size(rule, self._lease.total_seconds()))
        return lease_some(
            tx, self._found(tx, rule, taken, size), tx.now + self._tools.lease_span(rule)
        )

    def _found(self, tx: Transaction, rule: Rule, taken: _Taken, size: int) -> Sequence[Claim]:
        if taken.named is not None:
            return _claim_named(tx, rule, taken.named, size, None)
        memory = self._memory(rule)
        found = tx.operations.claim(rule.name, size, memory.floor)
        if not found:
            memory.floor = tx.now - FLOOR_OVERLAP
        return found

    def _until(self, tx: Transaction, state: RuleState) -> datetime | None:
        return tx.now + self._lease if state.leased else None

    def _worked(self, rule: Rule, taken: _Taken, result: BatchResult) -> PassResult:
        """Report a batch; a paused rule whose probe came so far works again."""
        if taken.is_probe:
            with self._ledger.transaction() as tx:
                resume(tx, rule)
        self._tools.telemetry.tell(finished(rule, result))
        return PassResult(PassEnd.WORKED, result, len(taken.claims))

    def _count_clean(self, rule: Rule, state: RuleState) -> None:
        memory = self._memory(rule)
        memory.clean_batches = memory.clean_batches + 1 if state.leased else 0
        if memory.clean_batches >= CLEAN_BATCHES:
            memory.clean_batches = 0
            trust_again(self._ledger, rule)

    def _memory(self, rule: Rule) -> _Memory:
        return self._memories.setdefault(rule.name, _Memory())

    # --------------------------------------------------------------------------- when it fails

    def _isolated(self, rule: Rule, taken: _Taken, error: DatabaseError) -> PassResult:
        self._memory(rule).clean_batches = 0
        return self._worked(rule, taken, Isolation(self._tools, rule).run(taken.claims, error))

    def _paused(self, rule: Rule, taken: _Taken, reason: str) -> PassResult:
        """Pause a rule that fails as a whole."""
        with self._ledger.transaction() as tx:
            pause(tx, rule, reason)
            give_back(tx, taken.claims)
        return PassResult(PassEnd.PAUSED)

    def _after_loss(self, rule: Rule, taken: _Taken) -> PassResult:
        """The connection broke with a batch in hand: find out whether a row of it did that."""
        memory = self._memory(rule)
        memory.lost, memory.lost_at = True, taken.server_started_at
        if self._tell_loss(rule) is RuleCondition.PAUSED:
            with self._ledger.transaction() as tx:
                give_back(tx, taken.claims)
            return PassResult(PassEnd.PAUSED)
        try:
            result = Isolation(self._tools, rule).run_careful(
                taken.claims, self._tools.lease_span(rule)
            )
        except RuleRefused as error:
            return self._paused(rule, taken, str(error))
        return self._worked(rule, taken, result)

    def _tell_loss(self, rule: Rule) -> RuleCondition | None:
        """Make the ledger know of a loss, as soon as the database can be reached again."""
        memory = self._memory(rule)
        if not memory.lost:
            return None
        memory.clean_batches = 0
        state = be_careful(self._ledger, rule, memory.lost_at)
        memory.lost = False
        return state.condition


def _may_run(tx: Transaction, rule: Rule, taken: _Taken) -> bool:
    """Tell whether the batch may run beside others; named operations would be lost by a shrug."""
    if may_run(tx, rule):
        return True
    if taken.named is not None:
        raise DatabaseBusy(f"another batch of rule {rule.name} runs its companions")
    return False


def _claim_on(tx: Transaction, rule: Rule, size: int, memory: _Memory) -> Sequence[Claim]:
    """Claim behind the last full batch, and at the end of the pass once more from the floor.

    So a pass does not read again what it released, which an old snapshot keeps in the index.
    """
    claims = tx.operations.claim(rule.name, size, memory.place or memory.floor)
    if not claims and memory.place is not None:
        claims = tx.operations.claim(rule.name, size, memory.floor)
    full = len(claims) == size
    places = (claim.available_at for claim in claims if claim.available_at is not None)
    memory.place = max(places, default=None) if full else None
    if not claims:
        memory.floor = tx.now - FLOOR_OVERLAP
    return claims


def _claim_named(
    tx: Transaction,
    rule: Rule,
    named: Named,
    max_count: int,
    leased_until: datetime | None,
) -> Sequence[Claim]:
    """Claim what a queue named, as far as the ledger means the same by it."""
    found = tx.operations.claim_these(list(named))
    ours = [
        claim
        for claim in found
        if claim.rule == rule.name and claim.operation_key in named[claim.id]
    ][:max_count]
    if leased_until is None:
        return ours
    return tx.operations.lease_these([claim.id for claim in ours], leased_until)
