"""Sending: claims sends, hands their mails to a transport, and looks up what nobody knows.

*Invariants*: an attempt is committed before its mail is handed over, and its answer right after, with
the next attempt; nothing is handed over under a lease that may have ended; what cannot be noted is
unknown once the lease is over; what is not begun is leased for a minute, whatever an attempt takes. *Not here*: what follows an answer (`domain.sending_next`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from email.utils import parseaddr

from freehold.application.reporting.attempts import Attempt, Attempts, Work
from freehold.application.reporting.handing import Handing
from freehold.domain.errors import DatabaseError
from freehold.domain.pauses import Role
from freehold.domain.reports import ReportPolicy
from freehold.domain.retries import RetryPolicy
from freehold.domain.sending import AttemptKind, SendState
from freehold.domain.sending_next import HEARD_LATE, Rest, Terms, planned
from freehold.ports.ledger import Ledger, Transaction
from freehold.ports.mail import Mail, Transport
from freehold.ports.sends import ClaimedSend, Settlement
from freehold.ports.system import Boundary, Checkpoint, Dice, HostClock, Pause
from freehold.ports.telemetry import UNHEARD, Telemetry

BATCH = 20  # sends of one claim; few, since each may take as long as its provider likes
LOOK_UPS = 5  # of one call
PAUSED_FOR = timedelta(minutes=1)  # until sends of a paused tenant are looked at again
TAKEN_BACK_MAX = 200  # ended leases of one transaction
UNSUBSCRIBED = Rest(SendState.UNSUBSCRIBED, "the recipient has unsubscribed")
GONE = "its bytes are not kept any more"


@dataclass(frozen=True, slots=True)
class Sent:
    """What one pass did.

    Attributes:
        counts: sends by the state in which their attempt left them.
        taken_back_count: sends whose lease had ended.
        parked_until: not before this does the transport take anything; None where it does.
        is_paused: whether a person paused all sending.
        next_at: when there is something to do again; None where nothing waits.
    """

    counts: Mapping[SendState, int]
    taken_back_count: int
    parked_until: datetime | None
    is_paused: bool
    next_at: datetime | None


@dataclass(slots=True)
class _Batch:
    """A claim, sorted: what needs no attempt, and what does."""

    claimed: Sequence[ClaimedSend] = ()
    done: list[Settlement] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)


@dataclass(slots=True)
class Sender:
    """Sends on one ledger connection with one transport; belongs to one thread."""

    ledger: Ledger
    transport: Transport
    policy: ReportPolicy
    dice: Dice
    checkpoint: Checkpoint
    pause: Pause
    clock: HostClock
    telemetry: Telemetry = UNHEARD
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    _attempts: Attempts = field(init=False)
    _is_paused: bool = False

    def __post_init__(self) -> None:
        """Lay the ledger's side ready."""
        terms = Terms(self.transport.promise, self.policy.on_unknown, self.retry)
        around = (self.dice, self.checkpoint, self.pause, self.clock, self.telemetry)
        self._attempts = Attempts(self.ledger, terms, *around)

    def send(self, limit: int) -> Sent:
        """Try at most so many sends that are available, the oldest first.

        Ends early when asked to stop, when people paused it, or when nobody's mail is taken.

        Raises:
            DatabaseAway: the database cannot be reached; what the provider said meanwhile is noted
                by the next call, or is unknown.
        """
        attempts = self._attempts
        attempts.counts = Counter()
        attempts.pay()
        taken_back_count = 0
        left = limit
        while left > 0 and not self.pause.stopping:
            taken_back_count += self._take_back()  # among them what lapsed here behind a slow mail
            claimed_count, works = self._claim(min(BATCH, left))
            if not claimed_count:
                break
            left -= claimed_count
            self.checkpoint.reach(Boundary.SEND_CLAIMED)
            self._try_all(works)
        next_at = self._next_at()
        parked_until = attempts.parked_until
        return Sent(attempts.counts, taken_back_count, parked_until, self._is_paused, next_at)

    def _next_at(self) -> datetime | None:
        found: list[datetime | None] = []
        self._attempts.repeat(lambda tx: found.append(tx.sends.next_available()))
        return found[-1]

    def close(self) -> None:
        """Give connections back."""
        self.transport.close()

    def _take_back(self) -> int:
        """Take back sends whose lease ended, page by page."""
        total = count = self._take_back_page()
        while count == TAKEN_BACK_MAX:
            count = self._take_back_page()
            total += count
        return total

    def _take_back_page(self) -> int:
        count = 0

        def step(tx: Transaction) -> None:
            nonlocal count
            count = tx.sends.take_back(TAKEN_BACK_MAX)

        self._attempts.repeat(step)
        return count

    # ---------------------------------------------------------------------------------- claims

    def _claim(self, limit: int) -> tuple[int, Sequence[Work]]:
        """Claim a batch; return how many, and those of them that may be tried."""
        batch = _Batch()

        def step(tx: Transaction) -> None:
            nonlocal batch
            batch = _Batch()
            if not self._is_held_up(tx):
                batch.claimed = self._attempts.claim(tx, limit)
                self._sort(tx, batch)

        try:
            self._attempts.repeat(step)
        except DatabaseError:
            self._attempts.owe_return(batch.works)  # they are ours if only the answer was lost
            raise
        self._attempts.tell_rests(batch.done)
        return len(batch.claimed), batch.works

    def _is_held_up(self, tx: Transaction) -> bool:
        """Tell whether nothing at all may be sent now."""
        attempts = self._attempts
        if attempts.parked_until is not None and attempts.parked_until <= tx.now:
            attempts.parked_until = None
        self._is_paused = None in paused_tenants(tx)
        return self._is_paused or attempts.parked_until is not None

    def _sort(self, tx: Transaction, batch: _Batch) -> None:
        """Put aside what is paused or needs no attempt, in the claiming transaction."""
        paused = paused_tenants(tx)
        held = [one for one in batch.claimed if one.tenant in paused]
        tx.sends.give_back(held, tx.now + PAUSED_FOR, "the tenant's reports are paused")
        free = [one for one in batch.claimed if one.tenant not in paused]
        gone = _unsubscribed(tx, free)
        for send, mail in zip(free, tx.sends.load(free, self._sender), strict=True):
            plan = UNSUBSCRIBED if send.id in gone else self._planned(send, mail, tx.now)
            if isinstance(plan, Rest):
                batch.done.append(Settlement(send, send.noted, plan))
            elif mail is not None:
                batch.works.append(Work(send, mail, plan))
        self._attempts.rest(tx, batch.done)

    @property
    def _sender(self) -> str:
        return parseaddr(self.policy.sender)[1]

    def _planned(self, send: ClaimedSend, mail: Mail | None, now: datetime) -> AttemptKind | Rest:
        """Decide what is tried, or where a send goes that needs no attempt."""
        if send.noted is not None:
            return Rest(SendState.ACCEPTED, HEARD_LATE)
        if mail is None:
            return Rest(SendState.REVIEW, GONE)
        return planned(send.standing, self._attempts.terms, now)

    # -------------------------------------------------------------------------------- attempts

    def _try_all(self, works: Sequence[Work]) -> None:
        """Hand mails over one by one, then look up; what was not begun is given back."""
        looks = [one for one in works if one.kind is AttemptKind.LOOK_UP]
        sends = [one for one in works if one.kind is not AttemptKind.LOOK_UP]
        try:
            left = self._hand_over(sends, looks) or self._look_all_up(looks)
            if left:
                self._attempts.repeat(lambda tx: self._attempts.give_back(tx, left, "given back"))
        except DatabaseError:
            self._attempts.owe_return(works)
            raise

    def _hand_over(self, sends: list[Work], looks: Sequence[Work]) -> Sequence[Work]:
        """Hand mails over one by one; return what is left in hand where that ended early."""
        handing = Handing(self._attempts, sends, looks, self._must_stop)
        for answer in self.transport.send(handing.mails()):
            handing.heard(answer)
        handing.end()
        return [*handing.left, *looks] if handing.left or handing.stopped else []

    def _must_stop(self, tx: Transaction, tenant: str) -> bool:
        return self.pause.stopping or not paused_tenants(tx).isdisjoint((None, tenant))

    def _look_all_up(self, looks: Sequence[Work]) -> Sequence[Work]:
        """Look mails up, some in one call; return what is left in hand where that ended early."""
        for start in range(0, len(looks), LOOK_UPS):
            if self.pause.stopping:
                return looks[start:]
            page, waiting = looks[start : start + LOOK_UPS], looks[start + LOOK_UPS :]
            heard = self._look_up(page, waiting)
            if any(one.meets_everyone for one in heard):
                return waiting
        return []

    def _look_up(self, page: Sequence[Work], waiting: Sequence[Work]) -> Sequence[Attempt]:
        """Ask for some mails in one call; return what was heard."""
        begun: list[tuple[Attempt, Mail]] = []

        def step(tx: Transaction) -> None:
            begun.clear()
            self._attempts.keep(tx, waiting)
            for one in page:
                attempt = self._attempts.begin(tx, one.send, len(page))
                if attempt is not None:
                    begun.append((attempt, one.mail))

        self._attempts.repeat(step)
        self.checkpoint.reach(Boundary.SEND_BEGUN)
        answers = self.transport.look_up(
            [
                (mail, one.send.standing.first_tried_at or one.send.standing.due_at)
                for one, mail in begun
            ]
        )
        self.checkpoint.reach(Boundary.PROVIDER_ANSWERED)
        heard = [replace(one, answer=said) for (one, _), said in zip(begun, answers, strict=True)]
        self._attempts.note_alone(heard)
        return heard


def _unsubscribed(tx: Transaction, sends: Sequence[ClaimedSend]) -> set[int]:
    """Return which sends nobody wants any more; one that may have been accepted is cleared up first."""
    notes = tx.unsubscribed.of(sorted({one.tenant for one in sends}))
    who = {(one.tenant, one.recipient) for one in notes}
    return {
        one.id
        for one in sends
        if (one.tenant, one.recipient) in who
        and one.noted is None
        and one.standing.state is not SendState.UNKNOWN
    }


def paused_tenants(tx: Transaction) -> frozenset[str | None]:
    """Return whose reports people paused; None among them where it is everybody's."""
    pauses = tx.pauses.open()
    standing = [one for one in pauses if one.role is Role.REPORT and one.stands(tx.now)]
    return frozenset(one.tenant for one in standing)
