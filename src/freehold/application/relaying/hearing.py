"""What a target said to a batch, and where each answer leaves its forward.

*Invariants*: what was not surely accepted counts as not arrived. *Not here*: the policy of retries
(`domain.forwards_next`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from freehold.domain.events import cloud_event
from freehold.domain.forwards import ForwardState
from freehold.domain.forwards_next import after_failure
from freehold.domain.retries import RetryPolicy
from freehold.ports.relay import ClaimedForward, Handed
from freehold.ports.target import Answer, Parcel, Reception

FAILURES = (Reception.TRANSIENT, Reception.REFUSED)
UNSPENT = (Reception.GONE, Reception.UNSENT)


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said to one batch.

    Attributes:
        answers: one a parcel, in order; none where the target was away.
        away: why nothing could be handed over at all.
    """

    answers: Sequence[Answer] = ()
    away: str | None = None

    @classmethod
    def of(cls, answers: Sequence[Answer], count: int) -> Self:
        """Take the answers of a batch; another number of them says nothing about any parcel."""
        if len(answers) == count:
            return cls(answers)
        return cls.broken(f"{len(answers)} answers to {count} parcels", count)

    @classmethod
    def broken(cls, what: str, count: int) -> Self:
        """Make answers of what the target's code did instead of answering."""
        return cls([Answer(Reception.TRANSIENT, "broken", what)] * count)

    def each(self, count: int) -> Sequence[Answer | None]:
        """Return an answer a forward; None where the target was away."""
        return [None] * count if self.away is not None else self.answers

    @property
    def accepted_count(self) -> int:
        """Return how many parcels arrived."""
        return sum(one.reception is Reception.ACCEPTED for one in self.answers)

    @property
    def failed_count(self) -> int:
        """Return how many hand-overs failed; one where the target was away."""
        failed = sum(one.reception in FAILURES for one in self.answers)
        return 1 if self.away is not None else failed

    @property
    def wait_seconds(self) -> float | None:
        """Return the longest time for which the target asked to be left alone."""
        asked = (one.wait_seconds for one in self.answers if one.wait_seconds is not None)
        return max(asked, default=None)

    @property
    def gone(self) -> str | None:
        """Return why the target wants nothing any more; None where it did not say so."""
        said = (one for one in self.answers if one.reception is Reception.GONE)
        return next((_words("it wants no more events", one) for one in said), None)

    @property
    def complaint(self) -> str:
        """Return what was said last."""
        return self.away or (_words("", self.answers[-1]) if self.answers else "nothing was said")


def parcel_of(forward: ClaimedForward) -> Parcel:
    """Write the parcel of a forward, the same bytes at every attempt."""
    event = forward.event
    body = cloud_event(event).encode()
    return Parcel(event.event_key, event.type.value, event.rule, event.tenant, body)


def rest_of(
    forward: ClaimedForward, answer: Answer | None, retry: RetryPolicy, now: datetime, luck: float
) -> Handed:
    """Decide where an answer leaves a forward; None: the target was away.

    Args:
        luck: a uniform draw in [0, 1).
    """
    if answer is None or answer.reception in UNSPENT:
        return Handed(forward, ForwardState.READY)
    if answer.reception is Reception.ACCEPTED:
        return Handed(forward, ForwardState.DELIVERED)
    refused = answer.reception is Reception.REFUSED
    spent_count, wait = forward.attempt, answer.wait_seconds
    rest = after_failure(retry, spent_count, luck, refused=refused, wait_seconds=wait)
    said = _words("", answer)
    return Handed(
        forward,
        rest.state,
        available_at=None if rest.after is None else now + rest.after,
        failure_class=rest.failure_class,
        code=answer.code,
        reason=f"attempts used up: {said}" if rest.state is ForwardState.DEAD else said,
    )


def _words(first: str, answer: Answer) -> str:
    words = (first, answer.code, answer.reason)
    return ": ".join(word for word in words if word) or answer.reception.value
