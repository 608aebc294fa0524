"""Events and targets for people, out of one snapshot; implements `ports.event_insight`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from freehold.adapters.sql.events import bounds, read_event
from freehold.adapters.sql.session import Row, Runner
from freehold.adapters.sql.targets import SqlTargets
from freehold.domain.forwards import ForwardState
from freehold.ports.event_insight import (
    EventsAsked,
    ListedEvents,
    SeenEvent,
    SeenFailure,
    SeenForward,
    Standing,
    TargetFigures,
)
from freehold.ports.relay import TargetState

PAGE = 500  # events read by one statement
LOOKED_MOST = 10_000  # in one search; then the person may go on
RANGE = 10_000  # ids that one statement looks at
KEYS_MOST = 100_000  # newest events looked at for a key
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
OPEN = (Standing.WAITING, Standing.RETRYING)


@dataclass(frozen=True, slots=True)
class _Page:
    """Events that one step of a walk looked at.

    Attributes:
        after: where the next step begins; None at the end.
        looked_count: how many it passed by, those included that its statement left out.
    """

    events: Sequence[SeenEvent]
    after: int | None
    looked_count: int


class SqlEventsInSight:
    """Events and targets in one reading."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now
        self._instant = runner.session.instant
        self._at = runner.session.sure_instant

    # ---------------------------------------------------------------------------------- lists

    def find(self, asked: EventsAsked) -> ListedEvents:
        """Return events that match, each with the forwards that match."""
        step = self._walk(asked)
        found: list[SeenEvent] = []
        place, looked = asked.after, 0
        while looked < LOOKED_MOST:
            page = step(place)
            looked += page.looked_count
            place = page.after
            found += self._matching(page.events, asked)
            if len(found) > asked.limit or (len(found) == asked.limit and place is not None):
                return ListedEvents(found[: asked.limit], found[asked.limit - 1].id)
            if place is None:
                break
        return ListedEvents(found, place)

    def _matching(self, events: Sequence[SeenEvent], asked: EventsAsked) -> list[SeenEvent]:
        heads = [one for one in events if _is_asked(one, asked)]
        owed = self.forwards([one.id for one in heads])
        filled = [replace(one, forwards=owed.get(one.id, ())) for one in heads]
        return [cut for one in filled if (cut := _narrowed(one, asked)) is not None]

    def _walk(self, asked: EventsAsked) -> Callable[[int | None], _Page]:
        if asked.standing in OPEN:
            return self._waiting
        if asked.standing is Standing.DEAD:
            targets = [name for name in self.states() if asked.target in (None, name)]
            return lambda after: self._dead(targets, after)
        ends = bounds(self._sql, asked.since, None)
        return lambda after: self._backwards(asked, ends, after)

    def _waiting(self, after: int | None) -> _Page:
        self._sql.rows("read_in_order")
        rows = self._sql.rows("waiting_page", after_id=after or 0, limit=PAGE)
        return self._page([row[0] for row in rows])

    def _dead(self, targets: Sequence[str], after: int | None) -> _Page:
        what = {"after": after or 0, "limit": PAGE}
        self._sql.rows("read_in_order")
        rows = [
            row for name in targets for row in self._sql.rows("dead_events", target=name, **what)
        ]
        return self._page(sorted({row[0] for row in rows})[:PAGE])

    def _page(self, ids: Sequence[int]) -> _Page:
        rows = self._sql.rows("events_by_ids", ids=list(ids)) if ids else []
        return _Page([self._event(row) for row in rows], ids[-1] if ids else None, len(ids))

    def _backwards(
        self, asked: EventsAsked, ends: tuple[int, int] | None, after: int | None
    ) -> _Page:
        if ends is None:
            return _Page((), None, 0)
        last = ends[1] if after is None else min(ends[1], after - 1)
        least = max(last - RANGE, ends[0] - 1)
        kept = Standing.KEPT.value if asked.standing is Standing.KEPT else None
        rows = self._sql.rows(
            "walk_events",
            after=least,
            last=last,
            since=asked.since or EARLIEST,
            state=kept,
            rule=asked.rule,
            tenant=asked.tenant,
            hold_key=asked.hold_key,
            limit=PAGE,
        )
        passed = rows[-1][0] - 1 if len(rows) == PAGE else least
        after = passed + 1 if passed >= ends[0] else None
        return _Page([self._event(row) for row in rows], after, max(0, last - passed))

    def _event(self, row: Row) -> SeenEvent:
        event = read_event(self._sql.session, row[4:])
        return SeenEvent(row[0], event, row[1], self._instant(row[2]), self._instant(row[3]))

    # -------------------------------------------------------------------------------- one event

    def read(self, event_id: int) -> SeenEvent | None:
        """Return one event with all its forwards."""
        rows = self._sql.rows("events_by_ids", ids=[event_id])
        if not rows:
            return None
        return replace(self._event(rows[0]), forwards=self.forwards([event_id]).get(event_id, ()))

    def look_up(self, event_key: str) -> SeenEvent | None:
        """Return the event of that key, if it is among the newest ones."""
        named, ends = _named(event_key), bounds(self._sql, None, None)
        if named is None or ends is None:
            return None
        first, last = ends
        least = max(first - 1, last - KEYS_MOST)
        for end in range(last, least, -RANGE):
            what = {"after": max(end - RANGE, least), "last": end}
            for (event_id,) in self._sql.rows("look_up_event", **what, **named):
                seen = self.read(event_id)
                if seen is not None and seen.event.event_key == event_key:
                    return seen
        return None

    def failures(self, event_id: int) -> Sequence[SeenFailure]:
        """Return the failed hand-overs of one event."""
        rows = self._sql.rows("forward_failures", id=event_id)
        return [
            SeenFailure(target, replay_count, attempt, self._at(ended_at), kind, code, reason)
            for target, replay_count, attempt, ended_at, kind, code, reason in rows
        ]

    def forwards(self, event_ids: Sequence[int]) -> Mapping[int, Sequence[SeenForward]]:
        """Return what of these events was owed to whom."""
        found: dict[int, list[SeenForward]] = {}
        if event_ids:
            for row in self._sql.rows("forwards_of_events", ids=list(event_ids)):
                found.setdefault(row[0], []).append(self._forward(row))
        return found

    def _forward(self, row: Row) -> SeenForward:
        return SeenForward(
            target=row[1],
            state=ForwardState(row[2]),
            attempt=row[3],
            replay_count=row[4],
            owed_at=self._at(row[5]),
            available_at=self._at(row[6]),
            leased_until=self._instant(row[7]),
            reason=row[8],
            ended_at=self._instant(row[9]),
        )

    # --------------------------------------------------------------------------------- figures

    def states(self) -> Mapping[str, TargetState]:
        """Return how all targets stand, by name."""
        return {one.name: one for one in SqlTargets(self._sql, self._now).targets()}

    def targets(self, at_most: int) -> Sequence[TargetFigures]:
        """Return all targets by name."""
        self._sql.rows("read_in_order")
        leased = {row[0]: row for row in self._sql.rows("leased_forward_depth", limit=at_most)}
        states = self.states()
        return [self._figures(one, at_most, leased.get(name)) for name, one in states.items()]

    def _figures(self, state: TargetState, at_most: int, leased: Row | None) -> TargetFigures:
        rows = self._sql.rows("owed_depth", target=state.name, limit=at_most)
        counts = {row[0]: int(row[1]) for row in rows}
        dead = self._sql.rows("dead_depth", target=state.name, limit=at_most)[0]
        owed = [self._at(row[2]) for row in [*rows, *([leased] if leased else [])]]
        in_hand = int(leased[1]) if leased else 0
        return TargetFigures(
            state=state,
            waiting_count=min(counts.get(ForwardState.READY, 0) + in_hand, at_most),
            retrying_count=counts.get(ForwardState.RETRYING, 0),
            dead_count=int(dead[0]),
            oldest_owed_at=min(owed, default=None),
            oldest_dead_at=self._instant(dead[1]),
        )

    def unrouted_count(self, at_most: int) -> int:
        """Count waiting events whose targets are not worked out."""
        self._sql.rows("read_in_order")
        return int(self._sql.rows("unrouted_depth", limit=at_most)[0][0])


def _is_asked(one: SeenEvent, asked: EventsAsked) -> bool:
    event = one.event
    return (
        asked.rule in (None, event.rule)
        and asked.tenant in (None, event.tenant)
        and asked.hold_key in (None, event.hold_key)
        and (asked.since is None or event.at >= asked.since)
    )


def _narrowed(one: SeenEvent, asked: EventsAsked) -> SeenEvent | None:
    """Leave of an event's forwards those that were asked for; None where nothing is left."""
    if asked.standing is None and asked.target is None:
        return one
    kept = tuple(_asked_forwards(one, asked))
    bare = asked.target is None and not one.forwards and one.standing is asked.standing
    return replace(one, forwards=kept) if kept or bare else None


def _asked_forwards(one: SeenEvent, asked: EventsAsked) -> Iterator[SeenForward]:
    for forward in one.forwards:
        if asked.target in (None, forward.target) and asked.standing in (None, forward.standing):
            yield forward


def _named(event_key: str) -> dict[str, object] | None:
    """Take an event's key apart: the operation's key, the generation and the type."""
    parts = event_key.rsplit(":", 3)
    try:
        digest, generation = UUID(parts[1]), int(parts[2])
    except (ValueError, IndexError):
        return None
    fits = 0 < generation < 2**31
    return {"digest": digest, "generation": generation, "type": parts[3]} if fits else None
