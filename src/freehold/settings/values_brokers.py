"""What an installation chooses beside its database: a queue of hints, and targets of events.

*Invariants*: a secret, and a URL that may hold one, is in no `repr`; where a file holds it, it is
read when it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network
from typing import Literal

from freehold.domain.forwards import TargetPolicy
from freehold.settings.values_report import Secret

QUEUE_NAME = "freehold"
EVENTS_NAME = "freehold.events"
WEBHOOK_PORTS = (443, 8443)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """A broker that carries hints from dispatchers to workers; without one workers ask the ledger.

    Attributes:
        url: amqp, amqps, nats or tls, with user and password; NATS takes several, by commas.
        name: of the queue or stream; what belongs to it has this name in front.
        ca_file: certificates to trust instead of the system's.
        monitor: the broker's own HTTP interface, for `doctor` alone: RabbitMQ's management or
            NATS's monitoring; None: what cannot be asked over the protocol is not checked.
        replicas: of the NATS stream; RabbitMQ places a quorum queue itself.
        prefetch: deliveries that one worker holds unsettled at most.
        confirm_timeout: how long a publisher waits for the confirms of a batch.
    """

    kind: Literal["rabbitmq", "nats"]
    url: Secret
    name: str = QUEUE_NAME
    ca_file: str | None = None
    monitor: Secret | None = None
    replicas: int = 1
    prefetch: int = 2_000
    confirm_timeout: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class RabbitTargetSettings:
    """A RabbitMQ exchange.

    Attributes:
        exchange: a durable topic exchange; routing keys are RULE.TYPE, such as cart.hold.expired.v1.
        declare: whether we make the exchange where it is missing.
    """

    url: Secret
    exchange: str = EVENTS_NAME
    declare: bool = True
    ca_file: str | None = None
    confirm_timeout: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class NatsTargetSettings:
    """A subject of NATS JetStream.

    Attributes:
        subject: events go to SUBJECT.RULE.TYPE.
        stream: the stream that keeps the subject.
        declare: whether we make the stream where it is missing.
    """

    url: Secret
    subject: str = EVENTS_NAME
    stream: str = "freehold-events"
    declare: bool = True
    replicas: int = 1
    ca_file: str | None = None
    confirm_timeout: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """A customer's HTTPS endpoint, signed by Standard Webhooks.

    Attributes:
        secret: the signing secret, whsec_ and base64 of 24 to 64 bytes.
        old_secret: still signs beside the new one while the customer changes over.
        ports: the ports that the URL may name.
        allow: networks that may be reached although they are not public.
        insecure: whether http is taken; only into `allow`.
        ca_file: certificates to trust instead of the system's.
        timeout: of one delivery, from the look-up of the name to the end of the answer.
        concurrency: deliveries under way at once.
    """

    url: Secret
    secret: Secret
    old_secret: Secret | None = None
    ports: tuple[int, ...] = WEBHOOK_PORTS
    allow: tuple[IPv4Network | IPv6Network, ...] = ()
    insecure: bool = False
    ca_file: str | None = None
    timeout: timedelta = timedelta(seconds=15)
    concurrency: int = 8


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """One target of events."""

    policy: TargetPolicy
    way: RabbitTargetSettings | NatsTargetSettings | WebhookSettings = field(repr=False)
