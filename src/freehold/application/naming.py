"""What a dispatcher remembers: which operations it named, and how far a queue may have come.

A queue tells how many messages wait in it, and hands them over about in order. So the messages that
wait are about the newest, and one that lies further back than that was handed over or lost.

*Invariants*: nothing here is needed for safety; what is forgotten is named once more.
*Not here*: reading the ledger and publishing (`dispatch`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, takewhile

from freehold.ports.ledger import ReadyAfter, ReadyOperation

# Operations a rule; 220 bytes each, as measured with tracemalloc. With the bound of a sweep of 15 s it lets 13,000 a second
# through, and it bounds what is put into a queue that cannot tell its depth.
NAMED_MOST = 200_000


@dataclass(slots=True)
class _Stretch:
    """Messages of one rule that were published one after another."""

    rule: str
    first: int
    count: int


@dataclass(slots=True)
class Lead:
    """How far one connection's messages are ahead of those who take them.

    Attributes:
        number: of the message that was published last, from 1 since the beginning.
        depth: messages that wait in the queue; None when it cannot tell.
    """

    number: int = 0
    depth: int | None = None
    _stretches: deque[_Stretch] = field(default_factory=deque)

    def look(self, depth: int | None) -> None:
        """Take note of the queue's depth, and forget what cannot be in it any more."""
        self.depth = depth
        begin = self.number - (depth or 0)
        while self._stretches and self._stretches[0].first + self._stretches[0].count - 1 <= begin:
            self._stretches.popleft()

    def add(self, rule: str, count: int) -> None:
        """Number messages that were published, confirmed or not: they may have arrived."""
        newest = self._stretches[-1] if self._stretches else None
        if newest is not None and newest.rule == rule:
            newest.count += count
        else:
            self._stretches.append(_Stretch(rule, self.number + 1, count))
        self.number += count

    def waiting(self, rule: str) -> int:
        """Return how many messages of a rule wait; those of unknown origin count for each rule."""
        if self.depth is None:
            return 0
        begin = self.number - self.depth
        ours = (s for s in self._stretches if s.rule == rule)
        return max(0, -begin) + sum(s.first + s.count - 1 - max(begin, s.first - 1) for s in ours)

    def may_wait(self, number: int) -> bool:
        """Tell whether a message may still be in the queue, as far as its depth tells."""
        return self.depth is not None and self.number - number < self.depth


@dataclass(frozen=True, slots=True)
class _Named:
    """That an operation was named: for which instant, when, and by which message."""

    available_at: datetime
    at: datetime
    number: int


@dataclass(slots=True)
class Place:
    """How far one rule has been named.

    Attributes:
        began_at: when the reading began at the oldest operation.
        after: where it goes on; None begins.
    """

    began_at: datetime
    after: ReadyAfter | None = None
    _named: dict[int, _Named] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Tell that no more can be remembered."""
        return len(self._named) >= NAMED_MOST

    def is_new(self, ready: ReadyOperation) -> bool:
        """Tell whether an operation was not named for the instant since when it is ready."""
        named = self._named.get(ready.operation_id)
        return named is None or named.available_at != ready.available_at

    def note(self, ready: ReadyOperation, at: datetime, number: int) -> None:
        """Remember that an operation was named, behind all others."""
        self._named.pop(ready.operation_id, None)
        self._named[ready.operation_id] = _Named(ready.available_at, at, number)

    def forget(self, operation_ids: Sequence[int]) -> None:
        """Forget operations that are not ready any more."""
        for one in operation_ids:
            self._named.pop(one, None)

    def missed(self, before: datetime, lead: Lead, limit: int) -> list[int]:
        """Return what was named at or before an instant and cannot be in the queue any more."""
        oldest = takewhile(
            lambda item: item[1].at <= before and not lead.may_wait(item[1].number),
            self._named.items(),
        )
        return [key for key, _ in islice(oldest, limit)]
