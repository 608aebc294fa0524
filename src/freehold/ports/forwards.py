"""What a person may do to forwards: try again, discard, and have events told once more.

*Invariants*: nothing that is in a relay's hands is touched; an event that is owed to anybody again
waits again, so that nothing prunes it. *Not here*: who may, and the action log
(`application.events`); pauses of a target (`ports.relay`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from freehold.domain.forwards import EventHead


@dataclass(frozen=True, slots=True)
class ReplayAsked:
    """Which events a target is to be told again.

    Attributes:
        since, until: made in [since, until); None: from the first one, up to now.
        rule: of this rule only.
        hold_key: about this hold only.
    """

    target: str
    since: datetime | None = None
    until: datetime | None = None
    rule: str | None = None
    hold_key: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayPage:
    """Events that a target may be told again, in the order of ids.

    Attributes:
        after_id: where the next page begins; None when this one was the last.
    """

    events: Sequence[EventHead]
    after_id: int | None


class Forwards(Protocol):
    """Forwards, for people, inside one transaction."""

    def find_stuck(self, target: str, limit: int, *, waiting: bool = False) -> Sequence[int]:
        """Return ids of events that are dead at a target, in id order.

        Args:
            waiting: those that wait or are tried again come too, behind the dead ones.
        """
        ...

    def retry(self, target: str, event_ids: Sequence[int]) -> Sequence[int]:
        """Make dead forwards ready with a fresh count of attempts; return which, in id order.

        Failed attempts stay on record, under the old count of replays.
        Again: there is nothing dead, and nothing changes.
        """
        ...

    def discard(
        self, target: str, event_ids: Sequence[int], reason: str, *, waiting: bool = False
    ) -> Sequence[int]:
        """Set dead forwards aside; return which, in id order.

        An event is published where this was the last that it was owed to.

        Args:
            waiting: those that wait or are tried again as well, of a target that left.
        """
        ...

    def replayable(self, asked: ReplayAsked, after_id: int | None, limit: int) -> ReplayPage:
        """Return events that a target has, was spared, or was never told of.

        Left out is what it is owed at present, in whatever state, and what has no route yet. A page
        looks at a bounded number of events, and may be empty though more follow.
        """
        ...

    def replay(self, target: str, event_ids: Sequence[int]) -> Sequence[int]:
        """Owe events to a target, again or at last; return which, in id order.

        Each waits until it has arrived, whatever it was before; no other target is told.
        Again: what is owed already stays as it is, as does what is gone.
        """
        ...
