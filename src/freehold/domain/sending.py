"""Sending one mail to one recipient: what an attempt can end as, and what may be done next.

*Invariants*: an end that nobody knows is its own state and never rests; a mail that may have been
accepted is never sent again unless its provider promises to notice, or the installation said so.
*Not here*: talking to a provider (`ports.mail`), the rows (`ports.sends`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from freehold.domain.reports import ReportReason, ReportState


class SendState(StrEnum):
    """Where the sending of one mail to one recipient stands.

    READY, RETRYING and UNKNOWN wait for their `available_at`; LEASED is in somebody's hands; REVIEW
    waits for a person. The others are ends.
    """

    READY = "ready"
    LEASED = "leased"
    RETRYING = "retrying"
    UNKNOWN = "unknown"
    REVIEW = "review"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    ABANDONED = "abandoned"
    UNSUBSCRIBED = "unsubscribed"


ENDS = (SendState.ACCEPTED, SendState.REFUSED, SendState.ABANDONED, SendState.UNSUBSCRIBED)
CLAIMABLE = (SendState.READY, SendState.RETRYING, SendState.UNKNOWN)


class AttemptKind(StrEnum):
    """What an attempt does; REPLAY sends under a key that the provider still knows."""

    SEND = "send"
    REPLAY = "replay"
    LOOK_UP = "look-up"
    RESOLVE = "resolve"


class SendOutcome(StrEnum):
    """How an attempt ended.

    ACCEPTED: the provider took the mail. REFUSED: it will never take it so. TRANSIENT: it surely
    did not take it, and may later. UNKNOWN: it may have taken it. FOUND and NOT_FOUND end a look-up.
    ABANDONED and SEND_AGAIN are a person's words: it shall not be sent, or it shall be once more.
    """

    ACCEPTED = "accepted"
    REFUSED = "refused"
    TRANSIENT = "transient"
    UNKNOWN = "unknown"
    FOUND = "found"
    NOT_FOUND = "not found"
    ABANDONED = "abandoned"
    SEND_AGAIN = "send again"


class Repeat(StrEnum):
    """What a provider does with the same mail under the same key, within its window."""

    REPLAYS = "replays"  # the first answer comes back, and nothing is sent
    CONFLICTS = "conflicts"  # a refusal that means: accepted before
    SENDS = "sends again"


@dataclass(frozen=True, slots=True)
class TransportPromise:
    """What a transport promises about repeats; it decides what may be done with an unknown end.

    Attributes:
        window: how long the provider remembers a key, counted from the first attempt; zero where
            it sends again.
        looks_up: whether it can be asked for a mail by its key.
        indexing: how long an accepted mail may stay unfound; "not found" proves nothing before.
        attempt_seconds_max: the longest that one attempt may take; the lease of what is begun lasts longer.
    """

    name: str
    repeat: Repeat = Repeat.SENDS
    window: timedelta = timedelta(0)
    looks_up: bool = False
    indexing: timedelta = timedelta(0)
    attempt_seconds_max: float = 60.0


def report_standing(counts: Mapping[SendState, int]) -> tuple[ReportState, ReportReason | None]:
    """Return where a report stands by its sends, none of them open.

    A recipient who has unsubscribed keeps no report from being sent.

    Args:
        counts: how many sends are in each state.
    """
    there = {state for state, count in counts.items() if count}
    if SendState.REVIEW in there:
        return ReportState.IN_REVIEW, None
    if SendState.ACCEPTED in there:
        if there <= {SendState.ACCEPTED, SendState.UNSUBSCRIBED}:
            return ReportState.SENT, None
        return ReportState.PARTLY_SENT, ReportReason.SOME_NOT_ACCEPTED
    if not there:
        return ReportState.NOT_SENT, ReportReason.NO_RECIPIENT
    if there == {SendState.UNSUBSCRIBED}:
        return ReportState.NOT_SENT, ReportReason.UNSUBSCRIBED
    return ReportState.NOT_SENT, ReportReason.NOT_ACCEPTED
