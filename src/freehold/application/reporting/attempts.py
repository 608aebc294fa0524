"""Attempts to send on one ledger connection: begun under a lease, noted, and owed where that failed.

*Invariants*: nothing that a transaction decides is kept before it has committed; an answer that could
not be noted is noted by the next pass, as long as nobody else has taken the send.
*Not here*: which sends (`sending`), the order of mails and answers (`handing`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from freehold.application.repeat import repeated
from freehold.domain.sending import CLAIMABLE, AttemptKind, SendOutcome, SendState
from freehold.domain.sending_next import EVERYONE_PAUSE, Heard, Rest, Terms, planned, settled
from freehold.ports.ledger import Ledger, Transaction
from freehold.ports.mail import Answer, Mail
from freehold.ports.sends import ClaimedSend, Settlement
from freehold.ports.system import Boundary, Checkpoint, Dice, HostClock, Pause
from freehold.ports.telemetry import SendSettled, Telemetry, TransportParked

# Of what is not begun: so long it waits where its sender was lost. An attempt has as much beyond its
# longest, for its answer to be noted.
LEASE = timedelta(seconds=60)
RENEWED_BELOW = LEASE * 3 / 4  # so that mails which take some seconds cost no renewal each
LOST = "lost"  # the state that is told of an attempt whose lease was over
NO_ANSWER = Answer(SendOutcome.UNKNOWN, text="no answer came back")


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed send, its mail, and what was planned when it was claimed."""

    send: ClaimedSend
    mail: Mail
    kind: AttemptKind


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt in hand, with its answer once there is one."""

    send: ClaimedSend
    kind: AttemptKind
    answer: Answer = NO_ANSWER

    @property
    def meets_everyone(self) -> bool:
        """Tell whether any other mail would have surely met the same."""
        return self.answer.everyone and self.answer.outcome is not SendOutcome.UNKNOWN


@dataclass(frozen=True, slots=True)
class Noted:
    """What one transaction noted, to be told once it is committed."""

    attempt: Attempt
    rest: Rest
    at: datetime
    is_held: bool


@dataclass(slots=True)
class Attempts:
    """The ledger's side of sending.

    Attributes:
        counts: sends by the state in which they were left.
        parked_until: not before this does the transport take anything; None where it does.
    """

    ledger: Ledger
    terms: Terms
    dice: Dice
    checkpoint: Checkpoint
    pause: Pause
    clock: HostClock
    telemetry: Telemetry
    counts: Counter[SendState] = field(default_factory=Counter)
    parked_until: datetime | None = None
    _parked_count: int = 0
    _leased_until: datetime | None = None
    _asked_at_seconds: float = 0.0
    _safe_until_seconds: float = 0.0
    _owed: list[Attempt] = field(default_factory=list)
    _unreturned: list[Work] = field(default_factory=list)

    def repeat(self, step: Callable[[Transaction], None]) -> None:
        """Run a step in a transaction; again while the database is busy."""

        def whole() -> None:
            self._asked_at_seconds = self.clock.monotonic()
            with self.ledger.transaction() as tx:
                step(tx)

        repeated(whole, self.dice, self.pause)

    # ------------------------------------------------------------------------------- the lease

    def claim(self, tx: Transaction, limit: int) -> Sequence[ClaimedSend]:
        """Claim sends that are available."""
        self._leased_until = tx.now + LEASE
        return tx.sends.claim(limit, LEASE)

    def keep(self, tx: Transaction, works: Sequence[Work]) -> None:
        """Renew the lease of sends that are not begun; one that is over stays over."""
        if self._leased_until is None or self._leased_until - tx.now < RENEWED_BELOW:
            tx.sends.renew([one.send for one in works], LEASE)
            self._leased_until = tx.now + LEASE

    def is_late(self) -> bool:
        """Tell whether an attempt that began now could outlast the lease: this process stood still."""
        return self.clock.monotonic() > self._safe_until_seconds

    def give_back(self, tx: Transaction, works: Sequence[Work], why: str) -> None:
        """Return sends of which no attempt was begun; those of others are left alone."""
        tx.sends.give_back([one.send for one in works], self.parked_until or tx.now, why)

    # ------------------------------------------------------------------------------ an attempt

    def begin(self, tx: Transaction, send: ClaimedSend, count: int = 1) -> Attempt | None:
        """Open the attempt that is right at this instant; None where there is none.

        Args:
            count: attempts that are made one after the other, each under a lease for all of them.
        """
        plan = planned(send.standing, self.terms, tx.now)
        if isinstance(plan, Rest):
            self.rest(tx, [Settlement(send, None, plan)])
            return None
        lease = count * self.terms.attempt_max + LEASE
        begun = tx.sends.begin(send, plan, self.terms.promise.name, lease)
        self._safe_until_seconds = self._asked_at_seconds + LEASE.total_seconds()
        return None if begun is None else Attempt(begun, plan)

    def rest(self, tx: Transaction, settlements: Sequence[Settlement]) -> Sequence[bool]:
        """Give sends back where they stand now, and their reports with them."""
        held = tx.sends.settle(settlements)
        ended = [
            one.send.report_id
            for one, is_held in zip(settlements, held, strict=True)
            if one.rest.state is SendState.ACCEPTED  # heard late, it ends what is in review
            or (is_held and one.rest.state not in CLAIMABLE)
        ]
        tx.sends.finish_reports(ended)
        return held

    def note(self, tx: Transaction, heard: Sequence[Attempt]) -> list[Noted]:
        """Note answers; what it returns is for `tell`, after the commit."""
        rests = [self._where(tx, one) for one in heard]
        held = self.rest(
            tx,
            [
                Settlement(one.send, one.answer, rest)
                for one, rest in zip(heard, rests, strict=True)
            ],
        )
        return [
            Noted(one, rest, tx.now, is_held)
            for one, rest, is_held in zip(heard, rests, held, strict=True)
        ]

    def _where(self, tx: Transaction, one: Attempt) -> Rest:
        answer = one.answer
        code = "" if answer.code in answer.text else answer.code  # a server's own words have it
        said = " ".join(filter(None, (code, answer.text)))
        heard = Heard(answer.outcome, said, answer.retry_after, answer.everyone, self._parked_count)
        return settled(one.send.standing, one.kind, heard, self.terms, tx.now, self.dice.luck())

    def note_alone(self, heard: Sequence[Attempt]) -> None:
        """Note answers in a transaction of their own, and tell them."""
        noted: list[Noted] = []

        def step(tx: Transaction) -> None:
            nonlocal noted
            noted = self.note(tx, heard)

        self.owe(heard)
        self.repeat(step)
        self.tell(noted)

    def tell(self, noted: Sequence[Noted]) -> None:
        """Take what was committed for true: nothing of it is owed any more."""
        if not noted:
            return
        self._owed = []
        self.checkpoint.reach(Boundary.SEND_SETTLED)
        for one in noted:
            if one.is_held:
                self.counts[one.rest.state] += 1
            if one.attempt.meets_everyone:
                self._park(one)
            else:
                self._parked_count = 0
            self.telemetry.tell(self._event(one))

    def tell_rests(self, rests: Sequence[Settlement]) -> None:
        """Tell of sends that needed no attempt."""
        for one in rests:
            self.counts[one.rest.state] += 1
            self.telemetry.tell(
                SendSettled(
                    report=one.send.report_id,
                    kind="none",
                    state=one.rest.state.value,
                    attempt=one.send.attempt,
                    transport=self.terms.promise.name,
                )
            )

    def _event(self, one: Noted) -> SendSettled:
        return SendSettled(
            report=one.attempt.send.report_id,
            kind=one.attempt.kind.value,
            state=one.rest.state.value if one.is_held else LOST,
            attempt=one.attempt.send.attempt,
            transport=self.terms.promise.name,
            code=one.attempt.answer.code,
        )

    def _park(self, one: Noted) -> None:
        until = one.rest.available_at or one.at + EVERYONE_PAUSE
        self.parked_until = until
        self._parked_count += 1
        name, code = self.terms.promise.name, one.attempt.answer.code
        self.telemetry.tell(TransportParked(name, code, until))

    # --------------------------------------------------------------------------------- debts

    def owe(self, heard: Sequence[Attempt]) -> None:
        """Remember answers until they are noted."""
        self._owed = [*heard]

    def owe_return(self, works: Sequence[Work]) -> None:
        """Remember sends that may still be in our hands."""
        self._unreturned += works

    def pay(self) -> None:
        """Note and return what an earlier pass could not, as far as it is still ours."""
        if self._owed:
            self.note_alone(self._owed)
        if self._unreturned:
            self.repeat(lambda tx: self.give_back(tx, self._unreturned, "the database was away"))
            self._unreturned = []
