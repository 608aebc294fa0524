"""The keys of `[queue]` and `[[targets]]`: a broker of hints, and who is told of events."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal

from pydantic import Field

from freehold.domain.forwards import TargetPolicy
from freehold.domain.retries import RetryPolicy
from freehold.settings.shape import Name, Shape, Span, empty, written
from freehold.settings.values_brokers import (
    WEBHOOK_PORTS,
    NatsTargetSettings,
    QueueSettings,
    RabbitTargetSettings,
    WebhookSettings,
)

_EVERY_KIND = ("name", "kind", "url", "url_file", "types", "rules", "tenant", "retry")
_CARRIED = (*_EVERY_KIND, "pause_after", "ca_file")
KEYS = {  # of a target, by its kind
    "rabbitmq": (*_CARRIED, "exchange", "declare", "confirm_timeout"),
    "nats": (*_CARRIED, "subject", "stream", "declare", "replicas", "confirm_timeout"),
    "webhook": (
        *_CARRIED,
        "secret",
        "secret_file",
        "old_secret",
        "old_secret_file",
        "ports",
        "allow",
        "insecure",
        "timeout",
        "concurrency",
    ),
}

Replicas = Annotated[int, Field(ge=1, le=5)]  # the most that JetStream takes
Port = Annotated[int, Field(ge=1, le=65_535)]
ListName = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")]


def _default(owner: type, name: str) -> Any:
    found = next(one for one in fields(owner) if one.name == name)
    assert found.default is not MISSING
    return written(found.default)


def _file(what: str, name: str) -> Any:
    return Field(
        None,
        description=f"A file that holds the {what}, read when it is needed.",
        examples=[f"/run/secrets/{name}"],
    )


_CA_FILE = "A file of certificates to trust instead of the system's."
_CONFIRM = "How long a batch waits for its confirms; what has none by then is published again."


class QueueShape(Shape):
    """A broker that carries hints to the workers; absent: workers ask the ledger.

    The ledger stays the truth: with the broker away they ask it again.
    """

    kind: Literal["rabbitmq", "nats"] = Field(
        description="Which broker: RabbitMQ with quorum queues, or NATS with JetStream.",
        examples=["rabbitmq"],
    )
    url: Name | None = Field(
        None,
        description="Where it is, with user and password: amqp:, amqps:, nats: or tls:; a secret, "
        "so never shown whole. NATS takes several, with commas between them.",
        examples=["amqps://freehold@mq.example.com/freehold"],
    )
    url_file: Name | None = _file("URL", "queue_url")
    name: ListName = Field(
        _default(QueueSettings, "name"),
        description="The queue or stream; what belongs to it has this name in front.",
    )
    ca_file: Name | None = Field(None, description=_CA_FILE)
    monitor: Name | None = Field(
        None,
        description="The broker's own HTTP interface, for doctor alone: RabbitMQ's management or "
        "NATS's monitoring; a secret, so never shown whole. Absent: what cannot be asked over the "
        "protocol is not checked.",
        examples=["http://127.0.0.1:8222"],
    )
    monitor_file: Name | None = _file("monitor URL", "queue_monitor")
    replicas: Replicas = Field(
        _default(QueueSettings, "replicas"),
        description="Copies of the NATS stream; RabbitMQ places a quorum queue itself.",
    )
    prefetch: int = Field(
        _default(QueueSettings, "prefetch"),
        ge=1,
        le=65_535,
        description="Messages that one worker holds unsettled, at most.",
    )
    confirm_timeout: Span = Field(_default(QueueSettings, "confirm_timeout"), description=_CONFIRM)


class TargetRetryShape(Shape):
    """When an event that a target did not take is tried again."""

    delays: Annotated[list[Span], Field(max_length=100)] | None = Field(
        None,
        description="Pauses after the 1st, 2nd, ... failed attempt; one attempt more than delays. "
        "Absent: 5s, 5m, 30m, 2h, 5h, 10h and 14h for a webhook, those of a rule for a broker.",
        examples=[["5s", "5m"]],
    )
    jitter: float = Field(
        _default(RetryPolicy, "jitter"),
        ge=0,
        le=1,
        description="Share by which a pause may be longer or shorter.",
    )


class TargetShape(Shape):
    """One target of events: an exchange, a subject, or a webhook.

    Each kind has keys of its own, which say so.
    """

    name: ListName = Field(description="What the target is known by.", examples=["crm"])
    kind: Literal["rabbitmq", "nats", "webhook"] = Field(
        description="How events get there.", examples=["webhook"]
    )
    url: Name | None = Field(
        None,
        description="Where it is: amqp:, amqps:, nats:, tls:, or https: for a webhook; a secret, so "
        "never shown whole.",
        examples=["https://crm.example.com/hooks/freehold"],
    )
    url_file: Name | None = _file("URL", "crm_url")
    types: Annotated[list[Name], Field(min_length=1)] | None = Field(
        None, description="Event types that it gets; absent: all.", examples=[["hold.expired.v1"]]
    )
    rules: Annotated[list[Name], Field(min_length=1)] | None = Field(
        None, description="Rules whose events it gets; absent: all.", examples=[["cart"]]
    )
    tenant: Name | None = Field(
        None,
        description="The one tenant whose events it gets, by id, and nobody else's; absent: all.",
    )
    retry: TargetRetryShape = Field(
        default_factory=empty(TargetRetryShape),
        description="When an event that it did not take is tried again.",
    )
    pause_after: Span = Field(
        _default(TargetPolicy, "pause_after"),
        description="How long it may fail, without one event taken between, before it is paused; "
        "events then wait for a person.",
    )
    ca_file: Name | None = Field(None, description=_CA_FILE)
    confirm_timeout: Span = Field(
        _default(RabbitTargetSettings, "confirm_timeout"),
        description=f"rabbitmq and nats: {_CONFIRM[0].lower()}{_CONFIRM[1:]}",
    )
    exchange: Name = Field(
        _default(RabbitTargetSettings, "exchange"),
        description="rabbitmq: a durable topic exchange; the routing key is RULE.TYPE, such as "
        "cart.hold.expired.v1.",
    )
    declare: bool = Field(
        _default(RabbitTargetSettings, "declare"),
        description="rabbitmq and nats: whether the exchange or stream is made where it is missing.",
    )
    subject: Name = Field(
        _default(NatsTargetSettings, "subject"),
        description="nats: events go to SUBJECT.RULE.TYPE.",
    )
    stream: Name = Field(
        _default(NatsTargetSettings, "stream"),
        description="nats: the stream that keeps the subject.",
    )
    replicas: Replicas = Field(
        _default(NatsTargetSettings, "replicas"), description="nats: copies of the stream."
    )
    secret: Name | None = Field(
        None,
        description="webhook: what deliveries are signed with by Standard Webhooks: whsec_ and "
        "base64 of 24 to 64 bytes; never shown; better given by a file.",
    )
    secret_file: Name | None = _file("secret", "crm_secret")
    old_secret: Name | None = Field(
        None,
        description="webhook: signs as well while the other side changes over; never shown; better "
        "given by a file.",
    )
    old_secret_file: Name | None = _file("old secret", "crm_old_secret")
    ports: Annotated[list[Port], Field(min_length=1)] = Field(
        list(WEBHOOK_PORTS),
        description="webhook: ports that its URL may name.",
    )
    allow: list[Name] = Field(
        [],
        description="webhook: networks that may be reached although they are not public.",
        examples=[["10.20.0.0/16"]],
    )
    insecure: bool = Field(
        _default(WebhookSettings, "insecure"),
        description="webhook: take http:, into the networks of allow only; a body can then be read "
        "on its way.",
    )
    timeout: Span = Field(
        _default(WebhookSettings, "timeout"),
        description="webhook: one delivery, from looking up the name to the end of the answer.",
    )
    concurrency: int = Field(
        _default(WebhookSettings, "concurrency"),
        ge=1,
        le=64,
        description="webhook: deliveries under way at once.",
    )


def keys_of(target: TargetShape) -> tuple[str, ...]:
    """Return the keys that mean something for a target of this kind."""
    return KEYS[target.kind]
