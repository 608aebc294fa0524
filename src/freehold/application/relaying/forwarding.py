"""Forwarding: one target's events are claimed, handed over outside any transaction, and settled.

*Invariants*: the lease is committed before anything leaves; what is settled is fenced by it; while a
target cannot be reached nobody's attempt is spent; a pause keeps its events waiting, for ever.
*Not here*: what follows a failure (`domain.forwards_next`), several targets beside each other
(`relayer`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from freehold.application.relaying.handing import hand_over
from freehold.application.relaying.hearing import Heard, rest_of
from freehold.application.relaying.routing import is_paused
from freehold.domain.forwards import ForwardState, TargetPolicy
from freehold.domain.forwards_next import (
    asked_wait,
    failing_wait,
    is_used_up,
    lease_for,
    pauses_itself,
    probe_after,
)
from freehold.ports.ledger import Ledger, Transaction
from freehold.ports.relay import ClaimedForward, Handed, TargetState
from freehold.ports.system import Boundary, Checkpoint, Dice
from freehold.ports.target import Target
from freehold.ports.telemetry import (
    UNHEARD,
    EventsForwarded,
    TargetPaused,
    TargetResumed,
    TargetUnreachable,
    Telemetry,
)

CLAIM_MOST = 500  # forwards of one claim, whatever a target takes
USED_UP = "attempts used up: whoever delivered it was lost each time"


class ClaimEnd(StrEnum):
    """Why there is something to hand over, or nothing."""

    CLAIMED = "claimed"
    IDLE = "idle"
    AWAY = "away"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Claimed:
    """What one claim brought.

    Attributes:
        until: for AWAY and PAUSED, when it is worth a look again; None where only a person knows.
        full: there may be more at once.
    """

    end: ClaimEnd
    forwards: Sequence[ClaimedForward] = ()
    until: datetime | None = None
    full: bool = False


@dataclass(frozen=True, slots=True)
class Forwarded:
    """What one hand-over came to.

    Attributes:
        returned_count: went back with no attempt spent.
        paused: the target paused itself over it.
        away: why nothing could be handed over at all.
    """

    delivered_count: int = 0
    failed_count: int = 0
    dead_count: int = 0
    returned_count: int = 0
    paused: bool = False
    away: str | None = None


@dataclass(frozen=True, slots=True)
class Forwarder:
    """Works for one target, on one ledger connection."""

    ledger: Ledger
    target: Target
    policy: TargetPolicy
    checkpoint: Checkpoint
    dice: Dice
    telemetry: Telemetry = UNHEARD

    def step(self) -> tuple[Claimed, Forwarded]:
        """Claim a batch, hand it over and settle it, all in this thread."""
        claimed = self.claim()
        if not claimed.forwards:
            return claimed, Forwarded()
        return claimed, self.settle(claimed.forwards, self.deliver(claimed.forwards))

    # -------------------------------------------------------------------------------- claiming

    def claim(self) -> Claimed:
        """Lease a batch, in a transaction of its own; a target that was away is asked with one.

        Crash: what was leased is taken back once its lease is over, an attempt counted.

        Raises:
            DatabaseAway: the database cannot be reached; a repeat is safe.
            DatabaseBusy: repeat the step.
        """
        with self.ledger.transaction() as tx:
            state = self._state(tx)
            claimed = self._hindered(tx, state) or self._claim(tx, state)
        if state is not None and state.pause_id is not None and claimed.end is not ClaimEnd.PAUSED:
            self.telemetry.tell(TargetResumed(self.policy.name))
        if claimed.forwards:
            self.checkpoint.reach(Boundary.FORWARDS_CLAIMED)
        return claimed

    def _state(self, tx: Transaction) -> TargetState | None:
        return next((one for one in tx.relay.targets() if one.name == self.policy.name), None)

    def _hindered(self, tx: Transaction, state: TargetState | None) -> Claimed | None:
        """Return why nothing may be claimed now, and end a pause that is over by its `until`."""
        if state is None or not state.active:
            return Claimed(ClaimEnd.IDLE)
        if is_paused(tx) or state.is_paused(tx.now):
            return Claimed(ClaimEnd.PAUSED, until=state.paused_until)
        if state.pause_id is not None:
            tx.relay.resume(state.name, None)
        elif state.probe_at is not None and tx.now < state.probe_at:
            return Claimed(ClaimEnd.AWAY, until=state.probe_at)
        return None

    def _claim(self, tx: Transaction, state: TargetState | None) -> Claimed:
        is_probe = state is not None and state.probe_at is not None and state.pause_id is None
        limit = 1 if is_probe else self._limit()
        found = tx.relay.claim(self.policy.name, limit, lease_for(self.target.seconds_most))
        used_up = [one for one in found if is_used_up(self.policy.retry, one.attempt)]
        tx.relay.settle([Handed(one, ForwardState.DEAD, reason=USED_UP) for one in used_up])
        forwards = [one for one in found if one not in used_up] if used_up else found
        end = ClaimEnd.CLAIMED if found else ClaimEnd.IDLE
        return Claimed(end, forwards, full=len(found) == limit)

    def _limit(self) -> int:
        return min(self.target.batch_most, CLAIM_MOST, self.ledger.batch_limit or CLAIM_MOST)

    # ------------------------------------------------------------------------------ delivering

    def deliver(self, forwards: Sequence[ClaimedForward]) -> Heard:
        """Hand a batch over; touches no database, so that another thread may do it.

        Whatever the target's code raises is an answer: it must not end the process with the batch
        in hand, again and again.
        """
        heard = hand_over(self.target, forwards)
        self.checkpoint.reach(Boundary.PARCELS_DELIVERED)
        return heard

    # -------------------------------------------------------------------------------- settling

    def settle(self, forwards: Sequence[ClaimedForward], heard: Heard) -> Forwarded:
        """Write down what was heard, in one transaction with what it means for the target.

        Again: a lease that is over changes nothing.

        Raises:
            DatabaseAway: it may or may not be written; a repeat is safe.
            DatabaseBusy: repeat the step.
        """
        retry, dice = self.policy.retry, self.dice
        with self.ledger.transaction() as tx:
            handed = [
                rest_of(one, answer, retry, tx.now, dice.luck())
                for one, answer in zip(forwards, heard.each(len(forwards)), strict=True)
            ]
            tx.relay.settle(handed)
            retry_at = self._note(tx, heard)
            paused = self._pause(tx, heard)
        self.checkpoint.reach(Boundary.FORWARDS_SETTLED)
        done = _counted(handed, paused=paused, away=heard.away)
        self._tell(done, retry_at)
        return done

    def _note(self, tx: Transaction, heard: Heard) -> datetime | None:
        """Note what was heard with the target; return when it is tried again, where it must wait.

        What it asked for stands beside what it took: an endpoint with a limit does both at once.
        """
        if heard.accepted_count:
            tx.relay.note_success(self.policy.name)
        if not heard.failed_count or (heard.accepted_count and not heard.wait_seconds):
            return None
        wait = self._wait(tx, heard)
        probe_at = None if wait is None else tx.now + wait
        tx.relay.note_failure(self.policy.name, heard.failed_count, probe_at)
        return probe_at

    def _wait(self, tx: Transaction, heard: Heard) -> timedelta | None:
        if heard.away is None and heard.wait_seconds:
            return asked_wait(heard.wait_seconds)
        state = self._state(tx)
        failed = heard.failed_count + (0 if state is None else state.failure_count)
        if heard.away is not None:
            return probe_after(failed)
        return failing_wait(None if state is None else state.failing_since, failed, tx.now)

    def _pause(self, tx: Transaction, heard: Heard) -> bool:
        """Pause the target where it wants nothing more, or fails for too long."""
        state = self._state(tx)
        if state is None or state.is_paused(tx.now):
            return False
        if heard.gone is None and not pauses_itself(self.policy, state.failing_since, tx.now):
            return False
        reason = heard.gone or f"nothing arrived since {state.failing_since}: {heard.complaint}"
        pause_id = tx.relay.pause(self.policy.name, reason)
        return pause_id is not None and tx.relay.tell_paused(pause_id)

    def _tell(self, done: Forwarded, retry_at: datetime | None) -> None:
        name = self.policy.name
        if done.away is not None and retry_at is not None:
            self.telemetry.tell(TargetUnreachable(name, retry_at, done.away))
        else:
            counts = (done.delivered_count, done.failed_count, done.dead_count)
            self.telemetry.tell(EventsForwarded(name, *counts))
        if done.paused:
            self.telemetry.tell(TargetPaused(name))


def _counted(handed: Sequence[Handed], *, paused: bool, away: str | None) -> Forwarded:
    states = [one.state for one in handed]
    return Forwarded(
        delivered_count=states.count(ForwardState.DELIVERED),
        failed_count=states.count(ForwardState.RETRYING),
        dead_count=states.count(ForwardState.DEAD),
        returned_count=states.count(ForwardState.READY),
        paused=paused,
        away=away,
    )
