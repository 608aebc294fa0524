"""Whose turn it is: reads the next page of a pass, so that no tenant's backlog keeps others waiting.

A pass reads in the order of due, which costs nothing and is fair while it ends within a page. When
a full page has more than a tenth of its rows from one tenant, and an index (tenant, due) serves,
the pass goes on tenant by tenant:

- a *round* steps along the index and takes at most a tenth of a page of each tenant that has due
  rows; a tenant that has more is kept, with its place, in the queue of the deep;
- *deep* pages take an equal share of the first ten of that queue and put them at its end; they
  alternate with those of a round, and lead the workers by a few batches only, so that what a round
  finds does not wait behind a giant's rows;
- every tenth of a second the pass *looks* for rows that came due since it looked last, in the order
  of due; that finds next to all rows of others, however many tenants a round must step over;
- another round begins after a second, or at once while a giant's rows fill those looks. It reads
  what came due since the last one began and the overlap before it, for late commits, in the order
  of due if it fits one page, else tenant by tenant.

*Invariants*: what was due when a round began has been read at its end, except rows of deep tenants
behind their place; a tenant that leaves the queue has the time that it spent there read again by
what looks next, with the overlap for late commits. So the pass ends where one in the order of due
would: `since` is an instant up to which all has been seen. The queue is bounded: a round waits
while it is full. *Not here*: what becomes of the rows (`scan`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from freehold.application.places import REST_SHARE, Deep, Place, Rounds
from freehold.domain.rules import Rule
from freehold.ports.due_by_tenant import TenantKey, TenantPlace
from freehold.ports.holds import FoundHold, ScanCursor
from freehold.ports.ledger import Transaction

SHARES = 10  # of a page: what one tenant may have of it, and how many deep ones share one
LOOK_AGAIN = timedelta(milliseconds=100)
LOOK_BACK = timedelta(seconds=1)  # most transactions commit so soon after they wrote due
ROUND_AGAIN = timedelta(seconds=1)
DEEP_MOST = 20_000  # tenants kept with their places; about 10 MB


class Turn(StrEnum):
    """What the next page reads."""

    IN_ORDER = "in order"
    LOOK = "look"
    ROUND = "round"
    DEEP = "deep"


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of one page, and where the pass goes on once they are dealt with."""

    rows: Sequence[FoundHold]
    place: Place

    @property
    def is_last(self) -> bool:
        """Tell whether the pass ended."""
        return not self.place.is_under_way


def next_turn(place: Place, now: datetime, *, may_deepen: bool) -> Turn | None:
    """Return whose turn it is; None while the workers have enough of the deep and nobody else waits.

    Args:
        may_deepen: the workers have little enough to do for more of the deep tenants' rows.
    """
    rounds = place.rounds
    if rounds is None:
        return Turn.IN_ORDER
    if place.looks_again and _is_over(rounds.looked_at, LOOK_AGAIN, now):
        return Turn.LOOK
    deep = Turn.DEEP if rounds.deep and may_deepen else None
    if len(rounds.deep) >= DEEP_MOST:
        return deep
    if rounds.began_at is not None:
        return deep if deep and rounds.is_deep_next else Turn.ROUND
    return Turn.ROUND if _begins(place, now) else deep


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a page in the order of due went.

    Attributes:
        count: its rows.
        last: the last of them; None where there is none.
        most_count: rows of the tenant that has most.
    """

    count: int
    last: ScanCursor | None
    most_count: int


def extent_of(tenants: Iterable[str | None], last: ScanCursor | None) -> Extent:
    """Say how far a page went, by the tenants of its rows."""
    counts = Counter(tenants)
    return Extent(counts.total(), last, max(counts.values(), default=0))


def place_behind(tx: Transaction, rule: Rule, place: Place, limit: int, extent: Extent) -> Place:
    """Return where a pass in the order of due goes on; a page full of one tenant begins a round."""
    began_at = place.began_at or tx.now
    if extent.count < limit or extent.last is None:
        return _ended(tx, rule, place, began_at)
    goes_on = replace(place, began_at=began_at)
    if extent.most_count > _each(limit) and tx.due_by_tenant(rule).is_served():
        rounds = Rounds(began_at, began_at, behind=extent.last)
        return replace(goes_on, after=None, rounds=rounds)
    return replace(goes_on, after=extent.last)


def _ended(tx: Transaction, rule: Rule, place: Place, began_at: datetime) -> Place:
    rests_until = None
    if not rule.due.comparable_bare:
        rests_until = tx.now + REST_SHARE * (tx.now - began_at)
    return Place(began_at, rests_until=rests_until, looks_again=place.looks_again)


def _each(limit: int) -> int:
    """Return what one tenant may have of a page."""
    return max(1, limit // SHARES)


def _is_over(at: datetime | None, span: timedelta, now: datetime) -> bool:
    """Tell whether so much time has passed; a clock that was set back holds up nothing."""
    return at is None or not at <= now < at + span


def _begins(place: Place, now: datetime) -> bool:
    """Tell whether it is time for another round."""
    flooded = place.rounds is not None and place.rounds.is_flooded
    return place.looks_again and _is_over(place.since, LOOK_AGAIN if flooded else ROUND_AGAIN, now)


def read_page(tx: Transaction, rule: Rule, place: Place, turn: Turn, limit: int) -> Page:
    """Read the next page of a pass.

    Args:
        limit: rows at most.
    """
    reader = _Reader(tx, rule, place, limit)
    match turn:
        case Turn.IN_ORDER:
            return reader.in_order()
        case Turn.LOOK:
            return reader.look()
        case Turn.ROUND:
            return reader.round()
        case Turn.DEEP:
            return reader.deep()


@dataclass(frozen=True, slots=True)
class _Reader:
    """One page to be read."""

    tx: Transaction
    rule: Rule
    place: Place
    limit: int

    @property
    def _each(self) -> int:
        return _each(self.limit)

    @property
    def _rounds(self) -> Rounds:
        return self.place.rounds or Rounds()

    def in_order(self) -> Page:
        """Read on in the order of due; a page that is full of one tenant begins a round."""
        place = self.place
        rows = self.tx.holds(self.rule).find_due(place.after, self.limit, place.floor)
        extent = extent_of((row.tenant for row in rows), _cursor(rows[-1]) if rows else None)
        return Page(rows, place_behind(self.tx, self.rule, place, self.limit, extent))

    def look(self) -> Page:
        """Read what came due since the last look; what more there is, a round finds."""
        looked_at = self._rounds.looked_at or self.tx.now
        rows = self.tx.holds(self.rule).find_due(None, self.limit, looked_at - LOOK_BACK)
        is_flooded = len(rows) >= self.limit
        rounds = replace(self._rounds, looked_at=self.tx.now, is_flooded=is_flooded)
        return Page(rows, replace(self.place, rounds=rounds))

    def round(self) -> Page:
        """Go on with the round under way, or begin one in the order of due."""
        if self._rounds.began_at is not None:
            return self._step(self._rounds)
        rounds = self._rounds.begun(self.tx.now)
        if self._rounds.is_flooded:
            return self._step(rounds)
        rows = self.tx.holds(self.rule).find_due(None, self.limit, self.place.floor)
        if len(rows) < self.limit:
            return Page(rows, self._settled(rounds))
        rounds = replace(rounds, behind=_cursor(rows[-1]), is_flooded=True)
        return Page(rows, replace(self.place, rounds=rounds))

    def _step(self, rounds: Rounds) -> Page:
        """Read a share of each tenant that comes next in the round and is not deep already."""
        reads = self.tx.due_by_tenant(self.rule)
        known = {one.place.tenant for one in rounds.deep}
        step = reads.find_tenants(rounds.after, self.limit, self.place.floor, rounds.behind)
        tenants = [tenant for tenant in step.due if tenant not in known]
        places = [TenantPlace(tenant, rounds.behind) for tenant in tenants]
        found = reads.find_due(places, self._each, self.limit, self.place.floor)
        began_at = rounds.began_at or self.tx.now
        more = self._with_more(tenants, found, self._each)
        rounds = replace(
            rounds,
            deep=(*rounds.deep, *(Deep(place, began_at) for place in more)),
            is_deep_next=True,
        )
        rows = [row for rows in found for row in rows]
        if len(found) < len(tenants):
            end = tenants[len(found) - 1]
        elif step.end is None:
            return Page(rows, self._settled(rounds))
        else:
            end = step.end
        return Page(rows, replace(self.place, rounds=replace(rounds, after=end)))

    def deep(self) -> Page:
        """Read a share of each tenant at the head of the queue of the deep."""
        rounds = self._rounds
        served = rounds.deep[:SHARES]
        each = max(1, self.limit // len(served))
        places = [one.place for one in served]
        found = self.tx.due_by_tenant(self.rule).find_due(places, each, self.limit)
        tenants = [place.tenant for place in places]
        more = {one.tenant: one for one in self._with_more(tenants, found, each)}
        reached = served[: len(found)]
        again = [Deep(more[d.place.tenant], d.since) for d in reached if d.place.tenant in more]
        left = [d.since for d in reached if d.place.tenant not in more]
        rounds = replace(
            rounds,
            deep=(*rounds.deep[len(found) :], *again),
            left_since=min(
                [*left, *([rounds.left_since] if rounds.left_since else [])], default=None
            ),
            is_deep_next=False,
        )
        rows = [row for rows in found for row in rows]
        return Page(rows, self._over_or_on(replace(self.place, rounds=rounds)))

    def _with_more(
        self, tenants: Sequence[TenantKey], found: Sequence[Sequence[FoundHold]], each: int
    ) -> list[TenantPlace]:
        """Return the places of those tenants that have more rows, as far as one can tell."""
        is_full = sum(map(len, found)) >= self.limit
        return [
            TenantPlace(tenant, _cursor(rows[-1]))
            for number, (tenant, rows) in enumerate(zip(tenants, found, strict=False), 1)
            if rows and (len(rows) >= each or (is_full and number == len(found)))
        ]

    def _settled(self, rounds: Rounds) -> Place:
        """End a round: what was due when it began has been seen, but for late commits."""
        seen = [at for at in (rounds.began_at, rounds.left_since) if at is not None]
        ended = replace(rounds, began_at=None, after=None, behind=None, left_since=None)
        return self._over_or_on(replace(self.place, since=min(seen), rounds=ended))

    def _over_or_on(self, place: Place) -> Place:
        """End the pass where no round is under way and no tenant deep."""
        rounds = place.rounds or Rounds()
        if rounds.began_at is not None or rounds.deep:
            return place
        seen = [at for at in (place.since, rounds.left_since) if at is not None]
        return _ended(self.tx, self.rule, self.place, min(seen))


def _cursor(row: FoundHold) -> ScanCursor:
    return ScanCursor(row.due or "", row.hold_key)
