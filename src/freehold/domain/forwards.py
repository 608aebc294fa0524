"""Forwards: which events are owed to which target, and what follows an answer.

A forward is one event owed to one target. *Invariants*: its attempts are bounded by its target's
retry policy; a target that cannot be reached at all spends no attempt of anybody; a dead forward
waits for a person, for ever. *Not here*: the events themselves (`events`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from freehold.domain.retries import RetryPolicy


class TargetKind(StrEnum):
    """How a target is reached."""

    RABBITMQ = "rabbitmq"
    NATS = "nats"
    WEBHOOK = "webhook"


class ForwardState(StrEnum):
    """Where a forward stands; the last three are ends that only a person changes."""

    READY = "ready"
    LEASED = "leased"
    RETRYING = "retrying"
    DEAD = "dead"
    DISCARDED = "discarded"
    DELIVERED = "delivered"


# Source: Standard Webhooks 1.0.0, "Deliverability and reliability", its example of a schedule.
WEBHOOK_DELAYS = tuple(
    timedelta(seconds=seconds) for seconds in (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400)
)
BROKER_DELAYS = RetryPolicy().delays


@dataclass(frozen=True, slots=True)
class TargetPolicy:
    """What one target wants, and how often it is tried.

    Attributes:
        types: names of event types; None wants every type.
        rules: names of rules; None wants every rule. Events of no rule go to all targets.
        tenant: the one tenant whose events it gets; None wants every tenant.
        pause_after: repeated failure, without one delivery between, that pauses the target.
    """

    name: str
    kind: TargetKind
    types: frozenset[str] | None = None
    rules: frozenset[str] | None = None
    tenant: str | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    pause_after: timedelta = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class EventHead:
    """What of an event decides who gets it.

    Attributes:
        rule: empty for an event that is about no hold.
    """

    id: int
    type: str
    rule: str
    tenant: str | None


def wants(target: TargetPolicy, event: EventHead) -> bool:
    """Tell whether an event is owed to a target.

    A target of one tenant gets nothing that belongs to nobody or to somebody else.
    """
    return (
        (target.types is None or event.type in target.types)
        and (target.rules is None or event.rule in target.rules or not event.rule)
        and (target.tenant is None or event.tenant == target.tenant)
    )


def owed(targets: Collection[TargetPolicy], events: Collection[EventHead]) -> list[tuple[int, str]]:
    """Return (event id, target name) of every forward that the events call for."""
    return [
        (event.id, target.name) for event in events for target in targets if wants(target, event)
    ]
