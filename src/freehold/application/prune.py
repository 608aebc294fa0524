"""Pruning: removes what is older than its age, one bounded step a transaction.

*Invariants*: nothing goes that one reading of the clock alone calls old: an earlier one, at least an
hour before, must agree; age counts by the slower of the database's and the host's clocks; nothing
goes while a guard of the clock stands. What two readings agreed on is written before it goes.
*Not here*: what is never removed, however old (`ports.retention`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice

from freehold.domain.errors import DatabaseAway, DatabaseError
from freehold.ports.ledger import GuardKind, Ledger, Transaction
from freehold.ports.retention import Place, Readings, Subject
from freehold.ports.system import HostClock
from freehold.ports.telemetry import UNHEARD, DatabaseTrouble, Pruned, Telemetry

READINGS_APART = timedelta(hours=1)
ROUND_EVERY = timedelta(days=1)
ROUND_STALE = timedelta(minutes=5)
PAGE = 1_000  # rows of one step
STEPS_A_SWEEP = 20  # so that a backlog keeps no ended lease waiting
COUNT_MOST = 10_000  # a count that is larger reads "more than"


@dataclass(slots=True)
class PruneResult:
    """What one round did, or would do.

    Attributes:
        counts: rows that went, by subject.
        before: what two readings agree on; None where there was no second reading yet.
        troubles: subjects that could not be finished now, each with why.
        frozen: why nothing may go now; None when it may.
    """

    counts: dict[Subject, int] = field(default_factory=lambda: dict.fromkeys(Subject, 0))
    before: dict[Subject, datetime | None] = field(default_factory=dict)
    troubles: dict[Subject, DatabaseError] = field(default_factory=dict)
    frozen: str | None = None


@dataclass(slots=True)
class _Round:
    """A round in hand: the subjects to come, and the place in the first of them."""

    result: PruneResult
    subjects: list[Subject] = field(default_factory=lambda: list(Subject))
    place: Place | None = None

    def leave(self) -> None:
        """Be done with the subject in hand."""
        self.subjects.pop(0)
        self.place = None


class Pruner:
    """Prunes on one ledger connection: a few steps a sweep, or a whole round at once."""

    def __init__(
        self,
        ledger: Ledger,
        ages: Mapping[Subject, timedelta],
        host_clock: HostClock,
        telemetry: Telemetry = UNHEARD,
    ) -> None:
        self._ledger = ledger
        self._ages = ages
        self._host_clock = host_clock
        self._telemetry = telemetry
        self._page = min(PAGE, ledger.batch_limit or PAGE)
        self._round: _Round | None = None

    def go_on(self) -> None:
        """Take a few steps of the day's round, if it is due and nobody else is at it.

        Crash: another process takes the round over after five minutes.
        """
        if self._round is None and not self._begin():
            return
        for _ in islice(self._steps(self._round or self._opened()), STEPS_A_SWEEP):
            pass
        with self._ledger.transaction() as tx:
            tx.retention.keep_round()
        self._close_if_done()

    def run(self) -> PruneResult:
        """Prune until nothing older is left, whether or not a round is due.

        Again: removes only what became old enough meanwhile.
        """
        opened = self._opened()
        for _ in self._steps(opened):
            pass
        self._close_if_done()
        return opened.result

    def rehearse(self) -> PruneResult:
        """Count what `run` would remove now; writes nothing."""
        result = PruneResult()
        with self._ledger.transaction() as tx:
            result.frozen = frozen(tx)
            known = tx.retention.readings()
        for subject in Subject:
            with self._ledger.transaction() as tx:
                old = self._old(tx, subject)
                readings = read_again(known.get(subject, Readings()), tx.now, old)
                result.before[subject] = before = _agreed(readings, old)
                if before is not None and result.frozen is None:
                    counted = tx.retention.count(subject, before, COUNT_MOST + 1)
                    result.counts[subject] = counted
        return result

    # -------------------------------------------------------------------------- one round

    def _begin(self) -> bool:
        with self._ledger.transaction() as tx:
            return tx.retention.begin_round(ROUND_EVERY, ROUND_STALE)

    def _opened(self) -> _Round:
        """Take the readings, and open a round on what they agree on."""
        result = PruneResult()
        with self._ledger.transaction() as tx:
            result.frozen = frozen(tx)
            if result.frozen is None:
                known = tx.retention.readings()
                for subject in Subject:
                    old = self._old(tx, subject)
                    readings = read_again(known.get(subject, Readings()), tx.now, old)
                    tx.retention.write(subject, readings)
                    result.before[subject] = _agreed(readings, old)
        self._round = _Round(result)
        if result.frozen is not None:
            self._round.subjects.clear()
        return self._round

    def _old(self, tx: Transaction, subject: Subject) -> datetime:
        """Return the instant before which a subject is out of age, by the slower clock."""
        return min(tx.now, self._host_clock.wall()) - self._ages[subject]

    def _steps(self, opened: _Round) -> Iterator[None]:
        """Take step after step, until no subject is left; what cannot go now is passed over."""
        while opened.subjects:
            subject = opened.subjects[0]
            try:
                self._step(opened, subject)
            except DatabaseAway:
                raise
            except DatabaseError as error:
                opened.result.troubles[subject] = error
                self._tell_trouble(subject, error)
                opened.leave()
            yield

    def _step(self, opened: _Round, subject: Subject) -> None:
        before = opened.result.before[subject]
        if before is None:
            opened.leave()
            return
        with self._ledger.transaction() as tx:
            if frozen(tx) is not None:
                opened.subjects.clear()
                return
            step = tx.retention.prune(subject, before, opened.place, self._page)
        opened.result.counts[subject] += step.removed_count
        opened.place = step.place
        if step.place is None:
            opened.leave()

    def _close_if_done(self) -> None:
        if self._round is None or self._round.subjects:
            return
        result, self._round = self._round.result, None
        with self._ledger.transaction() as tx:
            tx.retention.end_round()
        counts = {subject.value: count for subject, count in result.counts.items()}
        self._telemetry.tell(Pruned(counts, left=bool(result.troubles)))

    def _tell_trouble(self, subject: Subject, error: DatabaseError) -> None:
        told = DatabaseTrouble(f"prune, {subject.value}", type(error).__name__, error.code)
        self._telemetry.tell(told)


def read_again(known: Readings, now: datetime, old: datetime) -> Readings:
    """Add a reading: what an hour-old one and this one both call out of age may go.

    Args:
        old: the instant before which this reading calls things out of age.

    A reading of the future was taken by a clock that jumped: it counts for nothing.
    """
    if known.read_at is None or known.read_before is None or known.read_at > now:
        return replace(known, read_at=now, read_before=old)
    if now - known.read_at < READINGS_APART:
        return known
    agreed = min(known.read_before, old)
    return Readings(now, old, max(agreed, known.pruned_before or agreed))


def _agreed(readings: Readings, old: datetime) -> datetime | None:
    """Return before when things may go; an age that was made longer counts at once."""
    return None if readings.pruned_before is None else min(readings.pruned_before, old)


def frozen(tx: Transaction) -> str | None:
    """Return why nothing may go now: a guard of the clock stands; None when it may."""
    clock = [guard for guard in tx.guards.standing() if guard.kind is GuardKind.CLOCK]
    return clock[0].reason if clock else None
