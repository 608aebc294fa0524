"""The mails of one batch, as a transport asks for them: one transaction between two of them.

*Invariants*: a mail leaves only after its attempt is committed, and the next only after the answer to
the one before. *Not here*: what an answer means (`attempts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from freehold.application.reporting.attempts import Attempt, Attempts, Noted, Work
from freehold.domain.errors import DatabaseError
from freehold.domain.sending import SendOutcome
from freehold.ports.ledger import Transaction
from freehold.ports.mail import Answer, Mail
from freehold.ports.system import Boundary

NOT_HANDED_OVER = Answer(SendOutcome.TRANSIENT, text="it was not handed over")


@dataclass(slots=True)
class _Turn:
    """What one transaction between two mails did."""

    noted: list[Noted] = field(default_factory=list)
    begun: Attempt | None = None
    stops: bool = False


@dataclass(slots=True)
class Handing:
    """One batch on its way to a transport.

    Attributes:
        left: what is to be handed over yet.
        waiting: what else is in hand, whose lease is kept too.
        must_stop: asked in each transaction whether no more of a tenant may begin.
        stopped: whether it ended early.
    """

    attempts: Attempts
    left: list[Work]
    waiting: Sequence[Work]
    must_stop: Callable[[Transaction, str], bool]
    stopped: bool = False
    _in_hand: Attempt | None = None

    def mails(self) -> Iterator[Mail]:
        """Yield mails, each with its attempt begun, and note what was heard between them."""
        while self.left and not self.stopped:
            work = self.left[0]
            if self._turn(work) and not self._is_late():
                yield work.mail
        self.end()

    def heard(self, answer: Answer) -> None:
        """Take the answer to the mail in hand."""
        assert self._in_hand is not None
        self._in_hand = replace(self._in_hand, answer=answer)
        self.attempts.checkpoint.reach(Boundary.PROVIDER_ANSWERED)

    def end(self) -> None:
        """Note the last answer; one that never came is unknown."""
        if self._in_hand is not None:
            heard, self._in_hand = self._in_hand, None
            self.attempts.note_alone([heard])
            self.stopped = self.stopped or heard.meets_everyone

    def _turn(self, work: Work) -> bool:
        """Note what is in hand and begin the next, in one transaction; tell whether it was begun."""
        turn = _Turn()

        def step(tx: Transaction) -> None:
            nonlocal turn
            turn = _Turn()
            self._take(tx, turn, work)

        try:
            self.attempts.repeat(step)
        except DatabaseError:
            self._owe(turn)
            raise
        self._in_hand = turn.begun
        self.stopped = turn.stops
        self.left = self.left if turn.stops else self.left[1:]
        self.attempts.tell(turn.noted)
        return turn.begun is not None

    def _take(self, tx: Transaction, turn: _Turn, work: Work) -> None:
        attempts = self.attempts
        ended = self._in_hand
        if ended is not None:
            turn.noted = attempts.note(tx, [ended])
        turn.stops = (ended is not None and ended.meets_everyone) or self.must_stop(
            tx, work.send.tenant
        )
        if not turn.stops:
            attempts.keep(tx, [*self.left[1:], *self.waiting])
            turn.begun = attempts.begin(tx, work.send)

    def _owe(self, turn: _Turn) -> None:
        """Keep for later what the database may not have: an answer, and that nothing was begun."""
        owed = [self._in_hand, turn.begun and replace(turn.begun, answer=NOT_HANDED_OVER)]
        self._in_hand = None
        self.attempts.owe([one for one in owed if one is not None])

    def _is_late(self) -> bool:
        """Pass the boundary behind which the provider is asked, unless too much time went by."""
        self.attempts.checkpoint.reach(Boundary.SEND_BEGUN)
        late = self.attempts.is_late()
        if late and self._in_hand is not None:
            self._in_hand = replace(self._in_hand, answer=NOT_HANDED_OVER)
        return late
