"""Failure classes and the retry policy.

*Invariants*: attempts are counted from 1; the number of attempts is always `len(delays) + 1`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class FailureClass(StrEnum):
    """Why an attempt failed, which decides what happens next (DESIGN's three classes)."""

    TRANSIENT = "transient"
    MALFORMED = "malformed"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a failed operation is tried again.

    Attributes:
        delays: pauses after the 1st, 2nd, ... failed attempt.
        jitter: share of a delay by which it may be longer or shorter, 0 to 1.
    """

    delays: tuple[timedelta, ...] = tuple(timedelta(seconds=s) for s in (10, 30, 90, 270, 810))
    jitter: float = 0.2

    @property
    def attempts_max(self) -> int:
        """Return how often an operation is tried before it is dead."""
        return len(self.delays) + 1

    def delay_after(self, attempt: int, luck: float) -> timedelta | None:
        """Return the pause after the failed attempt, or None when the attempts are used up.

        Args:
            attempt: the attempt that failed, from 1.
            luck: a uniform draw in [0, 1) that places the pause within the jitter.
        """
        if attempt > len(self.delays):
            return None
        return self.delays[attempt - 1] * (1 + self.jitter * (2 * luck - 1))


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with one operation, in the database's own words.

    Attributes:
        message: at most `MESSAGE_LENGTH` characters; may quote values, so never logged.
        code: SQLSTATE or the like; empty where there is none.
    """

    failure_class: FailureClass
    message: str
    code: str = ""


MESSAGE_LENGTH = 1_000  # characters; an error text is evidence, not an archive


@dataclass(frozen=True, slots=True)
class RetryAt:
    """Try again after this pause."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Bury:
    """Give up: the operation is a dead letter and waits in review."""

    reason: str


def after_failure(
    policy: RetryPolicy, attempt: int, failure: Failure, luck: float
) -> RetryAt | Bury:
    """Decide what follows a failed attempt; a malformed one is dead at once."""
    if failure.failure_class is FailureClass.MALFORMED:
        return Bury("malformed")
    delay = policy.delay_after(attempt, luck)
    return Bury(f"attempts used up: {failure.failure_class}") if delay is None else RetryAt(delay)
