"""What follows a hand-over: of a forward that failed, of a target that is away, of one that fails on.

*Invariants*: a forward is tried again no sooner than its target asked for, within a bound; a target
that cannot be reached spends nobody's attempt; what fails for too long without one delivery is
paused, never given up.
*Not here*: who wants which event (`forwards`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from freehold.domain.forwards import ForwardState, TargetPolicy
from freehold.domain.retries import FailureClass, RetryPolicy

WAIT_MOST = timedelta(hours=1)  # whatever a target asks for
PROBE_FIRST = timedelta(seconds=1)
PROBE_MOST = timedelta(seconds=60)
FAILURES_BORNE = 10  # without one delivery between; one event that nobody takes has fewer attempts
LEASE_ROOM = timedelta(seconds=30)  # beside what handing over may take


@dataclass(frozen=True, slots=True)
class AfterFailure:
    """Where a failed attempt leaves a forward.

    Attributes:
        after: until it is tried again; None where it is dead.
    """

    state: ForwardState
    after: timedelta | None
    failure_class: FailureClass


def after_failure(
    retry: RetryPolicy,
    spent_count: int,
    luck: float,
    *,
    refused: bool = False,
    wait_seconds: float | None = None,
) -> AfterFailure:
    """Decide what follows a failed attempt at one forward.

    Args:
        spent_count: attempts before this one.
        luck: a uniform draw in [0, 1).
        refused: the other side will not take it as it is; it is tried again all the same, since
            people mend their side.
        wait_seconds: for how long the other side asked to be left alone.
    """
    kind = FailureClass.BROKEN if refused else FailureClass.TRANSIENT
    delay = retry.delay_after(spent_count + 1, luck)
    if delay is None:
        return AfterFailure(ForwardState.DEAD, None, kind)
    asked = timedelta(0) if wait_seconds is None else asked_wait(wait_seconds)
    return AfterFailure(ForwardState.RETRYING, max(delay, asked), kind)


def asked_wait(wait_seconds: float) -> timedelta:
    """Bound what a target asked for; a number that is none, or negative, asks for nothing."""
    most = WAIT_MOST.total_seconds()
    return timedelta(seconds=min(wait_seconds, most)) if wait_seconds > 0 else timedelta(0)


def is_used_up(retry: RetryPolicy, spent_count: int) -> bool:
    """Tell whether no attempt is left, as after a relay that was killed at each of them."""
    return spent_count >= retry.attempts_max


def probe_after(failure_count: int) -> timedelta:
    """Return how long a target that is away is left alone, by its failures so far, from 1."""
    return min(PROBE_FIRST * int(2 ** min(failure_count - 1, 10)), PROBE_MOST)


def failing_wait(
    failing_since: datetime | None, failure_count: int, now: datetime
) -> timedelta | None:
    """Return how long a target that answers, but takes nothing, is left alone; None: not yet.

    It is as long again as it has failed, so that its backlog is not thrown at it and no more than a
    few of its events spend attempts.

    Args:
        failure_count: since its last delivery, with those that were heard now.
    """
    if failure_count < FAILURES_BORNE:
        return None
    failed_for = timedelta(0) if failing_since is None else now - failing_since
    return min(max(failed_for, PROBE_FIRST), PROBE_MOST)


def lease_for(seconds_most: float) -> timedelta:
    """Return how long forwards are leased for a hand-over that may take so long."""
    return timedelta(seconds=2 * seconds_most) + LEASE_ROOM


def pauses_itself(policy: TargetPolicy, failing_since: datetime | None, now: datetime) -> bool:
    """Tell whether a target has failed for long enough, without one delivery, to be paused."""
    return failing_since is not None and now - failing_since >= policy.pause_after
