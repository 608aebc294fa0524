"""A target: who is told of events, over a broker's exchange or subject, or a signed webhook.

*Invariants*: delivery is at least once; the event's key and bytes are the same in every attempt, so
that the consumer's inbox knows a repeat. *Not here*: which events, when and how often
(`application.relaying`), the outbox (`ports.relay`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Parcel:
    """One event on its way.

    Attributes:
        event_key: what a consumer knows a repeat by; CloudEvents `id`, message id; a webhook's id is
            made of it.
        type: of the event; the last part of routing keys and subjects.
        rule: empty for an event about no hold.
        body: CloudEvents 1.0 JSON in UTF-8, the same at every attempt.
    """

    event_key: str
    type: str
    rule: str
    tenant: str | None
    body: bytes


class Reception(StrEnum):
    """What became of one parcel."""

    ACCEPTED = "accepted"
    TRANSIENT = "transient"
    REFUSED = "refused"
    GONE = "gone"
    UNSENT = "unsent"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a target said to one parcel.

    Attributes:
        reception: ACCEPTED only when the other side confirmed it. TRANSIENT: it may have arrived,
            try again. REFUSED: it will not be taken as it is; an attempt is spent all the same,
            since people mend their side. GONE: the target wants nothing any more and is paused.
            UNSENT: nothing of it left, since the target asked to be left alone within this batch;
            no attempt is spent.
        code: an HTTP status, a broker's reply code, or a short word; empty where there is none.
        reason: a few words for people, without guest data and without the payload.
        wait_seconds: the other side asked to be left alone so long; None where it did not.
    """

    reception: Reception
    code: str = ""
    reason: str = ""
    wait_seconds: float | None = None


class Target(Protocol):
    """One connection to one target, batch by batch. Belongs to one thread.

    A lost connection is opened again by the next call that needs one.
    """

    def deliver(self, parcels: Sequence[Parcel]) -> Sequence[Answer]:
        """Hand over parcels and wait for what is said to each, for a bounded time.

        Returns:
            One answer a parcel, in order. No order of arrival is promised.

        Raises:
            TargetAway: nothing at all could be handed over, and no parcel is to blame.
        Again: hands over once more, with the same key and bytes.
        Crash: before return any subset may have arrived.
        """
        ...

    @property
    def seconds_most(self) -> float:
        """Return how long `deliver` may take at most, in seconds; leases are longer."""
        ...

    @property
    def batch_most(self) -> int:
        """Return how many parcels one call takes at most."""
        ...

    def close(self) -> None:
        """End the connection. A second call does nothing."""
        ...
