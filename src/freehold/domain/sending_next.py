"""What happens next to a send: which attempt is begun, and where its answer leads.

*Invariants*: pure decisions. A mail whose sending may have been accepted is handed over again only
under a key that its own provider still knows, after its provider surely does not have it, or where
the installation said `resend`; every path ends, since tries, look-ups and time are bounded.
*Not here*: doing it (`application.reporting.sending`), the rows (`ports.sends`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from freehold.domain.retries import RetryPolicy
from freehold.domain.sending import (
    AttemptKind,
    Repeat,
    SendOutcome,
    SendState,
    TransportPromise,
)

EVERYONE_PAUSE = timedelta(
    minutes=15
)  # after trouble that every mail would meet, and no word of how long
EVERYONE_PAUSE_LEAST = timedelta(seconds=1)  # doubled each time in a row
EVERYONE_PATIENCE = timedelta(hours=24)  # with such trouble, since the mails were due
RETRY_AFTER_MAX = timedelta(hours=24)  # of what a provider may ask to wait

NOBODY_KNOWS = "nobody knows whether it was accepted"
USED_UP = "the attempts are used up, and it was surely not accepted"
HEARD_LATE = "its acceptance came after the lease was over"
RESENT = "sent again by on_unknown = resend; an earlier attempt may have been accepted too"


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a send when it is decided on.

    Attributes:
        state: READY, RETRYING or UNKNOWN, as it was before it was leased.
        due_at: when the report's mails were due, or its facts were frozen where that was later: a
            day that is caught up with has not waited for its provider.
        spent_count: attempts to send that count against the bound.
        look_count: look-ups since the last attempt to send, counted likewise.
        first_tried_at: when the first attempt by the same transport as the last began, from which
            its window counts; None before it.
        last_tried_at: when the last attempt to send began.
        transport: by which the last attempt to send went.
        begun_at: when the attempt in hand began; None without one.
    """

    state: SendState
    due_at: datetime
    spent_count: int = 0
    look_count: int = 0
    first_tried_at: datetime | None = None
    last_tried_at: datetime | None = None
    transport: str | None = None
    begun_at: datetime | None = None

    def begun(self, kind: AttemptKind, transport: str, now: datetime) -> Standing:
        """Return the same with one more attempt in hand."""
        if kind is AttemptKind.LOOK_UP:
            return replace(self, look_count=self.look_count + 1, begun_at=now)
        return replace(
            self,
            spent_count=self.spent_count + 1,
            look_count=0,
            first_tried_at=(self.first_tried_at if self.transport == transport else None) or now,
            last_tried_at=now,
            transport=transport,
            begun_at=now,
        )


@dataclass(frozen=True, slots=True)
class Terms:
    """By what it is decided: the transport's promise, and the installation's choices."""

    promise: TransportPromise
    on_unknown: Literal["review", "resend"] = "review"
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @property
    def attempt_max(self) -> timedelta:
        """Return the longest that one attempt takes."""
        return timedelta(seconds=self.promise.attempt_seconds_max)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a provider answered, as far as it decides.

    Attributes:
        said: code and text for the reason of a refusal.
        parked_count: how often in a row such trouble of everyone was met before this.
    """

    outcome: SendOutcome
    said: str = ""
    retry_after: timedelta | None = None
    everyone: bool = False
    parked_count: int = 0


@dataclass(frozen=True, slots=True)
class Rest:
    """Where a send stands when nobody has it in hand.

    Attributes:
        available_at: when RETRYING or UNKNOWN is looked at again; None for the others.
        counts: whether the attempt counts against the bound.
    """

    state: SendState
    reason: str | None = None
    available_at: datetime | None = None
    counts: bool = True


def planned(standing: Standing, terms: Terms, now: datetime) -> AttemptKind | Rest:
    """Decide which attempt is begun now; a Rest where none may be."""
    may_send = standing.spent_count < terms.retry.attempts_max
    if standing.state is not SendState.UNKNOWN:
        return AttemptKind.SEND if may_send else Rest(SendState.REVIEW, USED_UP)
    ours = standing.transport == terms.promise.name
    if ours and may_send and _knows_key(standing, terms, now):
        return AttemptKind.REPLAY
    looks_left = standing.look_count < terms.retry.attempts_max
    if ours and terms.promise.looks_up and looks_left:
        return AttemptKind.LOOK_UP
    if terms.on_unknown == "resend" and may_send:
        return AttemptKind.SEND
    return Rest(SendState.REVIEW, _why_nobody_knows(standing, terms, may_send=may_send))


def _knows_key(standing: Standing, terms: Terms, now: datetime) -> bool:
    """Tell whether a mail handed over now meets a provider that remembers the first one's key."""
    if terms.promise.repeat is Repeat.SENDS or standing.first_tried_at is None:
        return False
    return now + terms.attempt_max < standing.first_tried_at + terms.promise.window


def _why_nobody_knows(standing: Standing, terms: Terms, *, may_send: bool) -> str:
    if standing.transport != terms.promise.name:
        return f"{NOBODY_KNOWS}: it was tried by {standing.transport}, which is not used any more"
    if terms.promise.looks_up:
        return f"{NOBODY_KNOWS}: the look-ups are used up"
    if terms.promise.repeat is Repeat.SENDS:
        return f"{NOBODY_KNOWS}, and {terms.promise.name} cannot tell"
    why = "its key may be forgotten by now" if may_send else "the attempts are used up"
    return f"{NOBODY_KNOWS}: {why}"


def settled(
    standing: Standing,
    kind: AttemptKind,
    heard: Heard,
    terms: Terms,
    now: datetime,
    luck: float,
) -> Rest:
    """Decide where an answer leads.

    Args:
        standing: with the attempt in hand counted (`Standing.begun`).
        luck: a uniform draw in [0, 1) that places a delay within its jitter.
    """
    if heard.outcome in (SendOutcome.ACCEPTED, SendOutcome.FOUND):
        return Rest(SendState.ACCEPTED, _how_accepted(standing, kind))
    if heard.everyone and heard.outcome is not SendOutcome.UNKNOWN:
        return _parked(standing, heard, now)
    if kind is AttemptKind.LOOK_UP:
        return _looked_up(standing, heard, terms, now, luck)
    return _not_accepted(standing, heard, terms, now, luck)


def _not_accepted(
    standing: Standing, heard: Heard, terms: Terms, now: datetime, luck: float
) -> Rest:
    """Decide after an attempt to send; its answer says nothing about an earlier, unknown one."""
    in_doubt = standing.state is SendState.UNKNOWN
    if heard.outcome is SendOutcome.REFUSED and in_doubt:
        return Rest(SendState.REVIEW, f"{NOBODY_KNOWS}: a repeat was refused ({heard.said})")
    if heard.outcome is SendOutcome.REFUSED:
        return Rest(SendState.REFUSED, f"refused: {heard.said}")
    delay = terms.retry.delay_after(standing.spent_count, luck)
    if heard.outcome is SendOutcome.UNKNOWN or in_doubt:
        return _doubtful(standing, terms, now, _longer(delay or timedelta(0), heard))
    if delay is None:
        return Rest(SendState.REVIEW, f"{USED_UP} ({heard.said})")
    return Rest(SendState.RETRYING, f"not now: {heard.said}", now + _longer(delay, heard))


def _how_accepted(standing: Standing, kind: AttemptKind) -> str | None:
    if standing.state is not SendState.UNKNOWN:
        return None
    ways = {AttemptKind.LOOK_UP: "found by a look-up", AttemptKind.SEND: RESENT}
    return ways.get(kind, "accepted under a key that its provider still knew")


def _longer(delay: timedelta, heard: Heard) -> timedelta:
    """Return the delay, or what the provider asked for where that is longer, within bounds."""
    return max(delay, min(heard.retry_after or timedelta(0), RETRY_AFTER_MAX))


def _parked(standing: Standing, heard: Heard, now: datetime) -> Rest:
    """Wait for somebody to mend the account; no mail pays for it with an attempt."""
    in_doubt = standing.state is SendState.UNKNOWN
    if now >= standing.due_at + EVERYONE_PATIENCE:
        why = f"for a day after it was due, no mail was taken ({heard.said})"
        why = f"{NOBODY_KNOWS}; {why}" if in_doubt else why
        return Rest(SendState.REVIEW, why, counts=False)
    state = SendState.UNKNOWN if in_doubt else SendState.RETRYING
    at = now + _everyone_pause(heard)
    return Rest(state, f"no mail is taken now: {heard.said}", at, counts=False)


def _everyone_pause(heard: Heard) -> timedelta:
    """Return what the provider asked for, as a rate limit of some seconds does; else our own pause.

    A figure that proves too short again and again is believed less each time.
    """
    if heard.retry_after is None:
        return EVERYONE_PAUSE
    doublings = min(heard.parked_count, 10)  # 2**10 seconds are more than the pause
    least = min(EVERYONE_PAUSE_LEAST * 2**doublings, EVERYONE_PAUSE)
    return _longer(least, heard)


def _doubtful(standing: Standing, terms: Terms, now: datetime, delay: timedelta) -> Rest:
    """Rest an unknown end until something can be done about it; to a person where nothing can."""
    unknown = replace(standing, state=SendState.UNKNOWN)
    plan = planned(unknown, terms, now + delay)
    if isinstance(plan, Rest):  # at once, where the provider forgets the key meanwhile
        delay = timedelta(0)
        plan = planned(unknown, terms, now)
    if isinstance(plan, Rest):
        return plan
    return Rest(SendState.UNKNOWN, _what_follows(plan), now + delay)


def _what_follows(plan: AttemptKind) -> str:
    follows = {
        AttemptKind.REPLAY: "its provider still knows the key, and is asked again",
        AttemptKind.LOOK_UP: "its provider is asked for it",
        AttemptKind.SEND: "it is sent again by on_unknown = resend",
    }
    return f"{NOBODY_KNOWS}: {follows[plan]}"


def _looked_up(standing: Standing, heard: Heard, terms: Terms, now: datetime, luck: float) -> Rest:
    """Decide after a look-up that did not find the mail."""
    if heard.outcome is SendOutcome.NOT_FOUND:
        proves_from = _last_end(standing, terms, now) + terms.promise.indexing
        if (standing.begun_at or now) < proves_from:
            return _doubtful(standing, terms, now, proves_from - now)
        if standing.spent_count >= terms.retry.attempts_max:
            return Rest(SendState.REVIEW, f"{USED_UP} (not found by a look-up)")
        return Rest(
            SendState.RETRYING, f"{terms.promise.name} does not have it, so it is sent again", now
        )
    delay = terms.retry.delay_after(standing.look_count, luck)
    return _doubtful(standing, terms, now, _longer(delay or timedelta(0), heard))


def _last_end(standing: Standing, terms: Terms, now: datetime) -> datetime:
    """Return the latest instant at which the last attempt to send can have been accepted."""
    return (standing.last_tried_at or now) + terms.attempt_max
