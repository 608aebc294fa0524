"""From the shapes of `[queue]` and `[[targets]]` to the frozen values behind them.

*Invariants*: what is built here has passed `consistency_brokers.broker_findings`.
"""

from __future__ import annotations

from ipaddress import ip_network

from freehold.domain.forwards import BROKER_DELAYS, WEBHOOK_DELAYS, TargetKind, TargetPolicy
from freehold.domain.retries import RetryPolicy
from freehold.settings.shape_brokers import QueueShape, TargetShape
from freehold.settings.values_brokers import (
    NatsTargetSettings,
    QueueSettings,
    RabbitTargetSettings,
    TargetSettings,
    WebhookSettings,
)
from freehold.settings.values_report import Secret


def queue_settings(shape: QueueShape) -> QueueSettings:
    """Build what `[queue]` says."""
    monitor = Secret("queue.monitor", shape.monitor, shape.monitor_file)
    has_monitor = shape.monitor is not None or shape.monitor_file is not None
    return QueueSettings(
        kind=shape.kind,
        url=Secret("queue.url", shape.url, shape.url_file),
        name=shape.name,
        ca_file=shape.ca_file,
        monitor=monitor if has_monitor else None,
        replicas=shape.replicas,
        prefetch=shape.prefetch,
        confirm_timeout=shape.confirm_timeout,
    )


def target_settings(shape: TargetShape) -> TargetSettings:
    """Build one of `[[targets]]`."""
    return TargetSettings(_policy(shape), _way(shape))


def _policy(shape: TargetShape) -> TargetPolicy:
    usual = WEBHOOK_DELAYS if shape.kind == "webhook" else BROKER_DELAYS
    delays = usual if shape.retry.delays is None else tuple(shape.retry.delays)
    return TargetPolicy(
        name=shape.name,
        kind=TargetKind(shape.kind),
        types=None if shape.types is None else frozenset(shape.types),
        rules=None if shape.rules is None else frozenset(shape.rules),
        tenant=shape.tenant,
        retry=RetryPolicy(delays, shape.retry.jitter),
        pause_after=shape.pause_after,
    )


def _way(shape: TargetShape) -> RabbitTargetSettings | NatsTargetSettings | WebhookSettings:
    url = Secret(f"targets.{shape.name}.url", shape.url, shape.url_file)
    match shape.kind:
        case "rabbitmq":
            return RabbitTargetSettings(
                url=url,
                exchange=shape.exchange,
                declare=shape.declare,
                ca_file=shape.ca_file,
                confirm_timeout=shape.confirm_timeout,
            )
        case "nats":
            return NatsTargetSettings(
                url=url,
                subject=shape.subject,
                stream=shape.stream,
                declare=shape.declare,
                replicas=shape.replicas,
                ca_file=shape.ca_file,
                confirm_timeout=shape.confirm_timeout,
            )
        case "webhook":
            return _webhook(shape, url)


def _webhook(shape: TargetShape, url: Secret) -> WebhookSettings:
    place = f"targets.{shape.name}"
    old = Secret(f"{place}.old_secret", shape.old_secret, shape.old_secret_file)
    has_old = shape.old_secret is not None or shape.old_secret_file is not None
    return WebhookSettings(
        url=url,
        secret=Secret(f"{place}.secret", shape.secret, shape.secret_file),
        old_secret=old if has_old else None,
        ports=tuple(shape.ports),
        allow=tuple(ip_network(one) for one in shape.allow),
        insecure=shape.insecure,
        ca_file=shape.ca_file,
        timeout=shape.timeout,
        concurrency=shape.concurrency,
    )
