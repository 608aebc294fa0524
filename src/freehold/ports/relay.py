"""The outbox as the relay sees it: events without a route, forwards to claim, targets and pauses.

*Invariants*: everything is claimed row by row, never by a cursor over ids; of one forward at most
one lease stands, and whoever lost it changes nothing; an event is published once, when its last
forward has arrived or was discarded by a person. *Not here*: writing events (`ports.holds`),
handing them over (`ports.target`), who wants what (`domain.forwards`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from freehold.domain.events import Event
from freehold.domain.forwards import EventHead, ForwardState, TargetKind
from freehold.domain.retries import FailureClass


@dataclass(frozen=True, slots=True)
class TargetState:
    """How one target stands.

    Attributes:
        failing_since: the first failure since the last delivery; None while it works.
        failure_count: failed hand-overs since then.
        probe_at: while it is away, when it is tried again; None where nothing stands against it.
        pause_id: of the standing pause; None where it is not paused.
        paused_by: None where it paused itself.
    """

    name: str
    kind: TargetKind
    active: bool
    failing_since: datetime | None = None
    failure_count: int = 0
    probe_at: datetime | None = None
    pause_id: int | None = None
    pause_reason: str | None = None
    paused_by: str | None = None
    paused_at: datetime | None = None
    paused_until: datetime | None = None

    def is_paused(self, now: datetime) -> bool:
        """Tell whether a pause stands at this instant."""
        return self.pause_id is not None and (self.paused_until is None or now < self.paused_until)


@dataclass(frozen=True, slots=True)
class ClaimedForward:
    """One forward in this process's hands.

    Attributes:
        attempt: attempts that were spent so far.
        lease_token: the fencing token.
    """

    event: Event
    event_id: int
    target: str
    attempt: int
    replay_count: int
    lease_token: int
    owed_at: datetime


@dataclass(frozen=True, slots=True)
class Handed:
    """Where one hand-over leaves a forward.

    Attributes:
        state: DELIVERED, RETRYING, DEAD, or READY where it goes back with no attempt spent.
        available_at: for RETRYING and READY.
        code: of the failed attempt; the attempt is written down where `failure_class` is given.
    """

    forward: ClaimedForward
    state: ForwardState
    available_at: datetime | None = None
    failure_class: FailureClass | None = None
    code: str = ""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """What one page of waiting events came to.

    Attributes:
        after_id: where the next page begins; 0 when this one was the last.
    """

    published_count: int
    after_id: int


class Relay(Protocol):
    """The outbox and its forwards, inside one transaction."""

    def follow_targets(self, targets: Sequence[tuple[str, TargetKind]]) -> Sequence[str]:
        """Make the known targets those that are configured; return what changed, by name.

        It writes in the order of names, so that two that do it at once do not block each other.

        From the commit on, events are written as waiting while any target is active, and as kept
        while none is. A target that left keeps what is owed to it, and nobody works on it.
        Again: changes nothing.
        """
        ...

    def targets(self) -> Sequence[TargetState]:
        """Read all targets by name, those that left as well."""
        ...

    def claim_unrouted(self, limit: int) -> Sequence[EventHead]:
        """Lock waiting events whose targets are not worked out, the oldest first.

        What another transaction holds is passed over. The locks end with this transaction.
        """
        ...

    def route(self, events: Sequence[EventHead], owed: Sequence[tuple[int, str]]) -> int:
        """Write what the events owe to targets; return how many forwards are new.

        An event that is owed to nobody is published at once, since nobody waits for it.
        Again: leaves those that are there as they are.
        """
        ...

    def claim(self, target: str, limit: int, lease: timedelta) -> Sequence[ClaimedForward]:
        """Lease what a target is owed and is available, the longest available first.

        What is in others' hands stays theirs. A forward whose event was pruned is discarded.
        """
        ...

    def settle(self, handed: Sequence[Handed]) -> int:
        """Write down what became of hand-overs, fenced by their leases; return how many counted.

        An event whose last open forward this ends is published, at `now`; of two that end its last
        ones at once, the later one publishes it. Delivered, and failed, is an attempt more.
        Again: a lease that is over changes nothing.
        """
        ...

    def renew(self, forwards: Sequence[ClaimedForward], lease: timedelta) -> int:
        """Prolong leases, fenced by their tokens; return how many still stood."""
        ...

    def take_back(self, limit: int) -> int:
        """Make forwards ready whose leases are over, an attempt counted; return how many.

        What another transaction holds is passed over. Attempts beyond the policy's are met when
        they are claimed the next time.
        """
        ...

    def publish_finished(self, after_id: int, limit: int) -> Finished:
        """Publish waiting events that were routed and have no open forward left.

        For the sweep, which walks all waiting events, a page a step: settling publishes what it
        ends, so this finds only what was changed behind the relay's back.
        """
        ...

    def note_success(self, target: str) -> None:
        """Write that a target took something: it does not fail any more."""
        ...

    def note_failure(self, target: str, count: int, probe_at: datetime | None) -> TargetState:
        """Write that a target failed so many times more, once at least; return how it stands now.

        Raises:
            KeyError: there is no such target.
        """
        ...

    def pause(
        self, target: str, reason: str, *, by: str | None = None, until: datetime | None = None
    ) -> int | None:
        """Begin a pause; return its id, or None where one stands already."""
        ...

    def resume(self, target: str, by: str | None) -> bool:
        """End the standing pause, and forget the failures; tell whether there was one."""
        ...

    def tell_paused(self, pause_id: int) -> bool:
        """Write the event `target.paused.v1` of a pause; tell whether it is new.

        Like every event it waits while a target is active, else it is kept.
        Again: changes nothing.
        """
        ...
