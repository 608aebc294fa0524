"""Reading events and targets for people: lists, one event with its forwards, figures of targets.

*Invariants*: as in `ports.insight`: nothing is written, one snapshot, every count and every search
stops at a limit. *Not here*: what people do about them (`ports.forwards`), the relay (`ports.relay`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from freehold.domain.events import Event
from freehold.domain.forwards import ForwardState
from freehold.ports.relay import TargetState


class Standing(StrEnum):
    """What a list of events may be asked for.

    WAITING has no attempt behind it, or is in hand, or its targets are not worked out; KEPT was
    written while there was no target.
    """

    WAITING = "waiting"
    RETRYING = "retrying"
    DEAD = "dead"
    DELIVERED = "delivered"
    DISCARDED = "discarded"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class SeenForward:
    """One event as one target has it.

    Attributes:
        attempt: attempts since it was last owed.
        reason: why the last attempt failed, or why it was discarded.
        ended_at: delivered, dead or discarded then.
    """

    target: str
    state: ForwardState
    attempt: int
    replay_count: int
    owed_at: datetime
    available_at: datetime
    leased_until: datetime | None
    reason: str | None
    ended_at: datetime | None

    @property
    def standing(self) -> Standing:
        """Return what a list calls it."""
        if self.state in (ForwardState.READY, ForwardState.LEASED):
            return Standing.WAITING
        return Standing(self.state.value)


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """One event of the outbox.

    Attributes:
        state: kept, pending or published.
        routed_at: when its targets were worked out; None while that waits, or for a kept one.
        forwards: by target; those that were asked for.
    """

    id: int
    event: Event
    state: str
    routed_at: datetime | None
    published_at: datetime | None
    forwards: Sequence[SeenForward] = ()

    @property
    def standing(self) -> Standing | None:
        """Return what a list calls it where it has no forward; None: it was for nobody."""
        if self.state == Standing.KEPT:
            return Standing.KEPT
        return Standing.WAITING if self.state == "pending" and self.routed_at is None else None


@dataclass(frozen=True, slots=True)
class EventsAsked:
    """What a list of events is asked for; None asks for all.

    Attributes:
        since: events made at or after it.
        after: where the last page ended.
    """

    target: str | None = None
    standing: Standing | None = None
    rule: str | None = None
    tenant: str | None = None
    hold_key: str | None = None
    since: datetime | None = None
    after: int | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ListedEvents:
    """A page of a list.

    Attributes:
        after: where to go on; None at the end of the list.
    """

    events: Sequence[SeenEvent]
    after: int | None


@dataclass(frozen=True, slots=True)
class SeenFailure:
    """One hand-over that failed.

    Attributes:
        replay_count: how often it had been owed again by a person before.
    """

    target: str
    replay_count: int
    attempt: int
    ended_at: datetime
    failure_class: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class TargetFigures:
    """How one target stands, and what it is owed.

    Attributes:
        waiting_count: ready ones, and those in a relay's hands.
        oldest_owed_at: since when the oldest of those that were counted is owed; dead ones apart.
        oldest_dead_at: since when the first of the dead ones is dead.
    """

    state: TargetState
    waiting_count: int = 0
    retrying_count: int = 0
    dead_count: int = 0
    oldest_owed_at: datetime | None = None
    oldest_dead_at: datetime | None = None

    @property
    def owed_count(self) -> int:
        """Return how much it is to be handed over."""
        return self.waiting_count + self.retrying_count


class EventsInSight(Protocol):
    """Events and targets, in one reading."""

    def find(self, asked: EventsAsked) -> ListedEvents:
        """Return events that match, each with the forwards that match.

        What waits, is tried again or is dead comes oldest first; all else comes newest first. A
        search looks at a bounded number of events, and says where to go on.
        """
        ...

    def read(self, event_id: int) -> SeenEvent | None:
        """Return one event with all its forwards."""
        ...

    def look_up(self, event_key: str) -> SeenEvent | None:
        """Return the event of that key, if it is among the newest ones.

        There is no index of keys: 100,000 events are looked at.
        """
        ...

    def failures(self, event_id: int) -> Sequence[SeenFailure]:
        """Return the failed hand-overs of one event, oldest first."""
        ...

    def forwards(self, event_ids: Sequence[int]) -> Mapping[int, Sequence[SeenForward]]:
        """Return what of these events was owed to whom; nothing for those owed to nobody."""
        ...

    def states(self) -> Mapping[str, TargetState]:
        """Return how all targets stand, by name."""
        ...

    def targets(self, at_most: int) -> Sequence[TargetFigures]:
        """Return all targets by name; each count stops at `at_most`."""
        ...

    def unrouted_count(self, at_most: int) -> int:
        """Count waiting events whose targets are not worked out; stops at `at_most`."""
        ...
