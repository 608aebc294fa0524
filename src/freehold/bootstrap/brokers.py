"""Which adapters reach the configured broker and the targets of events.

*Invariants*: a client is imported only when its broker or target is configured; what is opened here
connects at its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from freehold.adapters.system import SystemClock
from freehold.domain.errors import UsageError
from freehold.domain.forwards import TargetPolicy
from freehold.ports.queue import Queue
from freehold.ports.queue_facts import QueueInspection
from freehold.ports.target import Target
from freehold.settings import Settings
from freehold.settings.values_brokers import (
    NatsTargetSettings,
    QueueSettings,
    RabbitTargetSettings,
    TargetSettings,
    WebhookSettings,
)


@dataclass(frozen=True, slots=True)
class Aimed:
    """What a target wants, and the connection to it."""

    policy: TargetPolicy
    target: Target


@contextmanager
def _needing(word: str, extra: str) -> Iterator[None]:
    """Say in one sentence which package an import misses."""
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"{word} needs an extra package; run: pip install 'freehold[{extra}]'"
        ) from error


def _rabbitmq(word: str) -> Callable[..., Any]:
    with _needing("RabbitMQ", "rabbitmq"):
        found: Callable[..., Any] = getattr(import_module("freehold.adapters.rabbitmq"), word)
    return found


def open_queue(settings: Settings) -> Queue | None:
    """Return the queue of hints, for one thread; None where there is no broker.

    Raises:
        UsageError: the URL's file cannot be read, or a package is missing.
    """
    return None if settings.queue is None else _queue(settings.queue)


def _queue(chosen: QueueSettings) -> Queue:
    url, confirm_seconds = chosen.url.needed(), chosen.confirm_timeout.total_seconds()
    if chosen.kind == "rabbitmq":
        rabbit: Queue = _rabbitmq("RabbitQueue")(
            url=url,
            name=chosen.name,
            ca_file=chosen.ca_file,
            prefetch=chosen.prefetch,
            confirm_seconds=confirm_seconds,
        )
        return rabbit
    with _needing("NATS", "nats"):
        from freehold.adapters.nats import NatsQueue
    return NatsQueue(
        url=url,
        name=chosen.name,
        ca_file=chosen.ca_file,
        prefetch=chosen.prefetch,
        confirm_seconds=confirm_seconds,
        replicas=chosen.replicas,
    )


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


def open_queue_facts(settings: Settings) -> QueueInspection | None:
    """Return what tells `doctor` how the broker is set up; None where there is no broker.

    Raises:
        UsageError: as `open_queue` says.
    """
    chosen = settings.queue
    if chosen is None:
        return None
    url, name, ca_file = chosen.url.needed(), chosen.name, chosen.ca_file
    monitor = None if chosen.monitor is None else chosen.monitor.needed()
    if chosen.kind == "rabbitmq":
        rabbit: QueueInspection = _rabbitmq("RabbitFacts")(
            url=url, name=name, ca_file=ca_file, monitor=monitor
        )
        return rabbit
    with _needing("NATS", "nats"):
        from freehold.adapters.nats import NatsFacts
    return NatsFacts(url=url, name=name, ca_file=ca_file, monitor=monitor)


def open_targets(settings: Settings) -> Sequence[Aimed]:
    """Return all targets of events, each for one thread.

    Raises:
        UsageError: a secret cannot be read or used, or a package is missing.
    """
    return [Aimed(one.policy, _target(one)) for one in settings.targets]


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


def _target(chosen: TargetSettings) -> Target:
    match chosen.way:
        case RabbitTargetSettings():
            return _exchange(chosen.way)
        case NatsTargetSettings():
            return _subject(chosen.way)
        case WebhookSettings():
            return _webhook(chosen.way)


def _exchange(way: RabbitTargetSettings) -> Target:
    target: Target = _rabbitmq("RabbitTarget")(
        url=way.url.needed(),
        exchange=way.exchange,
        declare=way.declare,
        ca_file=way.ca_file,
        confirm_seconds=way.confirm_timeout.total_seconds(),
    )
    return target


def _subject(way: NatsTargetSettings) -> Target:
    with _needing("NATS", "nats"):
        from freehold.adapters.nats import NatsTarget
    return NatsTarget(
        url=way.url.needed(),
        subject=way.subject,
        stream=way.stream,
        declare=way.declare,
        replicas=way.replicas,
        ca_file=way.ca_file,
        confirm_seconds=way.confirm_timeout.total_seconds(),
    )


def _webhook(way: WebhookSettings) -> Target:
    with _needing("A webhook", "webhooks"):
        from freehold.adapters.webhook import WebhookTarget
    return WebhookTarget(
        way.url.needed(),
        way.secret.needed(),
        SystemClock(),
        old_secret=None if way.old_secret is None else way.old_secret.read(),
        ports=way.ports,
        allow=way.allow,
        insecure=way.insecure,
        ca_file=way.ca_file,
        seconds=way.timeout.total_seconds(),
        concurrency=way.concurrency,
    )
