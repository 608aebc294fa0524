"""How fast the scan takes up what was overdue when a rule was attached with a rate.

While a rate stands, the pass begins at the attach, so that what falls due since is found at once;
only the walk from the beginning meets the backlog, and it is held to the rate. The rate ends with
that walk.

*Invariants*: the credit is spent in the transaction that writes or releases what was found, so that
no number of scanners exceeds the rate; a rule without a rate pays nothing for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from freehold.application.places import Place
from freehold.domain.rules import Mode, Rule
from freehold.ports.ledger import RuleState, Transaction
from freehold.ports.rates import AttachRate

SAVED_UP = timedelta(minutes=1)  # of the rate, at most: what a crontab's one-shot finds


@dataclass(frozen=True, slots=True)
class Held:
    """The rate that holds a page to it.

    Attributes:
        is_backlog: the page belongs to the walk, which meets the backlog.
    """

    rate: AttachRate
    is_backlog: bool

    def place(self, place: Place) -> Place:
        """Return where the page begins: a pass leaves the backlog to the walk."""
        begins = place.since is not None and place.since >= self.rate.attached_at
        if self.is_backlog or begins:
            return place
        return Place(since=self.rate.attached_at)

    def mode(self, mode: Mode) -> Mode:
        """Return the mode of the page: a window would take up all of the backlog at once."""
        return Mode.RESERVATION if self.is_backlog and mode is Mode.WINDOW else mode

    def limit(self, limit: int, now: datetime) -> int:
        """Return how many rows the page may take; 0 when the rate allows none yet."""
        if not self.is_backlog:
            return limit
        credit = now - max(self.rate.credited_at, now - SAVED_UP)
        return max(0, min(limit, int(credit.total_seconds() * self.rate.per_second)))

    def spend(self, tx: Transaction, rule: Rule, taken_count: int, *, finished: bool) -> None:
        """Note what a page took; the rate ends where the walk does."""
        if not self.is_backlog:
            return
        if finished:
            tx.rates.end(rule.name)
        elif taken_count:
            used = timedelta(seconds=taken_count / self.rate.per_second)
            tx.rates.spend(rule.name, max(self.rate.credited_at, tx.now - SAVED_UP) + used)


def held_to(tx: Transaction, rule: Rule, state: RuleState, place: Place) -> Held | None:
    """Return the rate that a page is held to; None as a rule.

    Only a rule whose overdue rows were not all read since a person let it go can have one.
    """
    if state.unsettled_at is None or not rule.due.comparable_bare:
        return None
    rate = tx.rates.lock(rule.name)
    return None if rate is None else Held(rate, is_backlog=not place.looks_again)
