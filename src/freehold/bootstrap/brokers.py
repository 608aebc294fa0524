"""Which adapters reach the configured broker and the targets of events.

*Invariants*: a client is imported only when its broker or target is configured; what is opened here
connects at its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from freehold.adapters.system import SystemClock
from freehold.domain.errors import UsageError
from freehold.domain.forwards import TargetPolicy
from freehold.ports.queue import Queue
from freehold.ports.target import Target
from freehold.settings import Settings
from freehold.settings.values_brokers import (
    NatsTargetSettings,
    QueueSettings,
    RabbitTargetSettings,
    TargetSettings,
    WebhookSettings,
)

WORDS = {"rabbitmq": "RabbitMQ", "nats": "NATS", "webhook": "A webhook"}
TARGETS = {"rabbitmq": "RabbitTarget", "nats": "NatsTarget", "webhook": "WebhookTarget"}
EXTRAS = {"rabbitmq": "rabbitmq", "nats": "nats", "webhook": "webhooks"}


@dataclass(frozen=True, slots=True)
class Aimed:
    """What a target wants, and the connection to it."""

    policy: TargetPolicy
    target: Target


def open_queue(settings: Settings) -> Queue | None:
    """Return the queue of hints, for one thread; None where there is no broker.

    Raises:
        UsageError: the URL's file cannot be read, or a package is missing.
    """
    chosen = settings.queue
    if chosen is None:
        return None
    word = {"rabbitmq": "RabbitQueue", "nats": "NatsQueue"}[chosen.kind]
    queue: Queue = _adapter(chosen.kind, word)(**_queue_arguments(chosen))
    return queue


def require_queue(settings: Settings) -> QueueSettings:
    """Return what was chosen as a queue.

    Raises:
        UsageError: there is no broker.
    """
    if settings.queue is None:
        raise UsageError(
            "No broker is configured, so that nothing is to be dispatched and workers ask the "
            "ledger; add [queue] to freehold.toml to use one."
        )
    return settings.queue


def require_targets(settings: Settings) -> Sequence[TargetSettings]:
    """Return the targets of events.

    Raises:
        UsageError: there is none.
    """
    if not settings.targets:
        raise UsageError(
            "No target is configured, so that events are kept and nobody is told; add [[targets]] "
            "to freehold.toml."
        )
    return settings.targets


def _queue_arguments(chosen: QueueSettings) -> dict[str, Any]:
    common = {
        "url": chosen.url.needed(),
        "name": chosen.name,
        "ca_file": chosen.ca_file,
        "prefetch": chosen.prefetch,
        "confirm_seconds": chosen.confirm_timeout.total_seconds(),
    }
    return common | ({"replicas": chosen.replicas} if chosen.kind == "nats" else {})


def open_queue_facts(settings: Settings) -> Any | None:
    """Return what tells `doctor` how the broker is set up; None where there is no broker.

    Raises:
        UsageError: as `open_queue` says.
    """
    chosen = settings.queue
    if chosen is None:
        return None
    word = {"rabbitmq": "RabbitFacts", "nats": "NatsFacts"}[chosen.kind]
    monitor = None if chosen.monitor is None else chosen.monitor.needed()
    return _adapter(chosen.kind, word)(
        url=chosen.url.needed(), name=chosen.name, ca_file=chosen.ca_file, monitor=monitor
    )


def open_targets(settings: Settings) -> Sequence[Aimed]:
    """Return all targets of events, each for one thread.

    Raises:
        UsageError: a secret cannot be read or used, or a package is missing.
    """
    return [open_target(one) for one in settings.targets]


def open_target(chosen: TargetSettings) -> Aimed:
    """Return one target of events, for one thread.

    Raises:
        UsageError: as `open_targets` says.
    """
    return Aimed(chosen.policy, _target(chosen))


def _target(chosen: TargetSettings) -> Target:
    way = chosen.way
    reaches = _adapter(chosen.policy.kind.value, TARGETS[chosen.policy.kind.value])
    match way:
        case RabbitTargetSettings():
            target: Target = reaches(
                url=way.url.needed(),
                exchange=way.exchange,
                declare=way.declare,
                ca_file=way.ca_file,
                confirm_seconds=way.confirm_timeout.total_seconds(),
            )
        case NatsTargetSettings():
            target = reaches(
                url=way.url.needed(),
                subject=way.subject,
                stream=way.stream,
                declare=way.declare,
                replicas=way.replicas,
                ca_file=way.ca_file,
                confirm_seconds=way.confirm_timeout.total_seconds(),
            )
        case _:
            target = reaches(**_webhook_arguments(way))
    return target


def _webhook_arguments(way: WebhookSettings) -> dict[str, Any]:
    return {
        "url": way.url.needed(),
        "secret": way.secret.needed(),
        "old_secret": None if way.old_secret is None else way.old_secret.read(),
        "clock": SystemClock(),
        "ports": way.ports,
        "allow": way.allow,
        "insecure": way.insecure,
        "ca_file": way.ca_file,
        "seconds": way.timeout.total_seconds(),
        "concurrency": way.concurrency,
    }


def _adapter(kind: str, word: str) -> Callable[..., Any]:
    """Import what reaches a broker or target.

    Raises:
        UsageError: a package that it needs is not installed.
    """
    try:
        found: Callable[..., Any] = getattr(import_module(f"freehold.adapters.{kind}"), word)
    except ImportError as error:
        raise UsageError(
            f"{WORDS[kind]} needs an extra package; run: pip install 'freehold[{EXTRAS[kind]}]'"
        ) from error
    return found
