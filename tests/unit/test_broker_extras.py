"""A package that is missing is one sentence that names the extra."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from freehold.bootstrap import open_queue, open_queue_facts, open_targets
from freehold.domain.errors import UsageError
from freehold.domain.forwards import TargetKind, TargetPolicy
from freehold.settings import Settings
from freehold.settings.values_brokers import (
    NatsTargetSettings,
    QueueSettings,
    RabbitTargetSettings,
    TargetSettings,
    WebhookSettings,
)
from freehold.settings.values_report import Secret

URL = Secret("queue.url", "amqp://f:s3cret@127.0.0.1")
SENTENCES = {
    "rabbitmq": "RabbitMQ needs an extra package; run: pip install 'freehold[rabbitmq]'",
    "nats": "NATS needs an extra package; run: pip install 'freehold[nats]'",
    "webhook": "A webhook needs an extra package; run: pip install 'freehold[webhooks]'",
}
WAYS: dict[str, RabbitTargetSettings | NatsTargetSettings | WebhookSettings] = {
    "rabbitmq": RabbitTargetSettings(URL),
    "nats": NatsTargetSettings(URL),
    "webhook": WebhookSettings(URL, URL),
}


@pytest.fixture(params=list(SENTENCES))
def missing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kind whose packages are not installed."""
    kind: str = request.param
    monkeypatch.setitem(sys.modules, f"freehold.adapters.{kind}", None)
    return kind


def test_a_missing_package_is_one_sentence(missing: str) -> None:
    said = []
    settings = Settings()
    if missing in ("rabbitmq", "nats"):
        queue = QueueSettings(missing, URL)  # type: ignore[arg-type]
        settings = replace(settings, queue=queue)
        for opening in (open_queue, open_queue_facts):
            with pytest.raises(UsageError) as caught:
                opening(settings)
            said.append(str(caught.value))
    policy = TargetPolicy("one", TargetKind(missing))
    with pytest.raises(UsageError) as caught:
        open_targets(replace(settings, targets=(TargetSettings(policy, WAYS[missing]),)))
    said.append(str(caught.value))
    assert set(said) == {SENTENCES[missing]}


def test_without_queue_and_targets_nothing_is_imported() -> None:
    assert open_queue(Settings()) is None
    assert open_queue_facts(Settings()) is None
    assert open_targets(Settings()) == []
