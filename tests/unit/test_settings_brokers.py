"""`[queue]` and `[[targets]]`: what they become, what is refused, and that no secret is shown."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path

import pytest

from freehold.domain.errors import UsageError
from freehold.domain.forwards import BROKER_DELAYS, WEBHOOK_DELAYS, TargetKind
from freehold.settings import Settings, load_settings
from freehold.settings.sources import read_settings, settings_of
from freehold.settings.values_brokers import (
    NatsTargetSettings,
    QueueSettings,
    RabbitTargetSettings,
    WebhookSettings,
)
from tests.unit.test_settings import LEAST

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HOOK = f'name = "crm"\nkind = "webhook"\nurl = "https://crm.test/h?t=s3cret"\nsecret = "{SECRET}"\n'
RABBIT = 'name = "bus"\nkind = "rabbitmq"\nurl = "amqps://f:s3cret@mq.test/shop"\n'
NATS = 'name = "log"\nkind = "nats"\nurl = "nats://f:s3cret@n1.test:4222,nats://f:s3cret@n2.test"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(*tables: str, **environ: str) -> Settings:
    Path("freehold.toml").write_text("\n".join(tables) + LEAST, encoding="utf-8")
    return load_settings(None, environ)


def complaint(*tables: str, **environ: str) -> str:
    with pytest.raises(UsageError) as caught:
        loaded(*tables, **environ)
    assert "s3cret" not in str(caught.value)
    assert SECRET not in str(caught.value)
    return str(caught.value).replace("freehold.toml: ", "")


def test_there_is_neither_by_default() -> None:
    settings = loaded()
    assert settings.queue is None
    assert settings.targets == ()


def test_a_queue_has_the_defaults_of_its_values() -> None:
    settings = loaded('[queue]\nkind = "nats"\nurl = "nats://127.0.0.1"')
    assert settings.queue is not None
    assert settings.queue == QueueSettings("nats", settings.queue.url)
    assert settings.queue.url.read() == "nats://127.0.0.1"


def test_a_queue_can_come_from_the_environment_and_its_url_from_a_file(folder: Path) -> None:
    (folder / "url").write_text("amqp://f:s3cret@mq.test\n", encoding="utf-8")
    settings = loaded(
        FREEHOLD_QUEUE__KIND="rabbitmq",
        FREEHOLD_QUEUE__URL_FILE=str(folder / "url"),
        FREEHOLD_QUEUE__PREFETCH="50",
        FREEHOLD_QUEUE__MONITOR="http://f:s3cret@mq.test:15672",
    )
    assert settings.queue is not None
    assert settings.queue.prefetch == 50
    assert settings.queue.url.read() == "amqp://f:s3cret@mq.test"
    assert settings.queue.monitor is not None
    assert "s3cret" not in repr(settings)


def test_each_kind_of_target_becomes_its_own_values() -> None:
    settings = loaded(
        "[[targets]]",
        RABBIT,
        'exchange = "shop"\ndeclare = false\n[[targets]]',
        NATS,
        'stream = "shop"\nreplicas = 3\nretry = { delays = ["1s"] }\n[[targets]]',
        HOOK,
        'old_secret_file = "old"\nallow = ["10.0.0.0/8"]\nports = [443, 9443]\ntenant = "harbour"\n'
        'types = ["hold.expired.v1"]\nrules = ["cart"]\npause_after = "2h"',
    )
    bus, log, crm = settings.targets
    assert bus.policy.kind is TargetKind.RABBITMQ
    assert bus.policy.retry.delays == BROKER_DELAYS
    assert isinstance(bus.way, RabbitTargetSettings)
    assert (bus.way.exchange, bus.way.declare) == ("shop", False)
    assert isinstance(log.way, NatsTargetSettings)
    assert (log.way.stream, log.way.replicas) == ("shop", 3)
    assert log.policy.retry.delays == (timedelta(seconds=1),)
    assert isinstance(crm.way, WebhookSettings)
    assert crm.way.allow == (ip_network("10.0.0.0/8"),)
    assert crm.way.old_secret is not None
    assert crm.policy.retry.delays == WEBHOOK_DELAYS
    assert crm.policy.types == frozenset({"hold.expired.v1"})
    assert crm.policy.pause_after == timedelta(hours=2)
    assert "s3cret" not in repr(settings)
    assert SECRET not in repr(settings)


def test_what_is_shown_has_neither_secrets_nor_keys_of_other_kinds() -> None:
    loaded('[queue]\nkind = "nats"\nurl = "nats://f:s3cret@n1.test:4222"\n[[targets]]', HOOK)
    shown = {one.name: one.value for one in settings_of(*read_settings(None, {}))}
    assert shown["queue.url"] == "nats://***@n1.test:4222"
    assert shown["targets.crm.url"] == "https://crm.test/***"
    assert shown["targets.crm.secret"] == "***"
    assert "targets.crm.exchange" not in shown
    assert "s3cret" not in str(shown)
    assert SECRET not in str(shown)


@pytest.mark.parametrize(
    ("kind", "url", "expected"),
    [
        ("rabbitmq", "amqp://f:2024,s3cret@mq.test/v", "amqp://***@mq.test/***"),
        ("nats", "nats://f:p@n1.test, tls://n2.test", "nats://***@n1.test,tls://n2.test"),
    ],
)
def test_a_password_with_a_comma_is_shown_in_no_part(kind: str, url: str, expected: str) -> None:
    loaded(f'[queue]\nkind = "{kind}"\nurl = "{url}"')
    shown = {one.name: one.value for one in settings_of(*read_settings(None, {}))}
    assert shown["queue.url"] == expected


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('kind = "kafka"\nurl = "x"', "queue.kind must be one of rabbitmq, nats."),
        ('kind = "nats"', "queue.url is missing; set FREEHOLD_QUEUE__URL, or name a file with"),
        ('kind = "nats"\nurl = "amqp://mq"', "queue.url must begin with nats: or tls:."),
        (
            'kind = "rabbitmq"\nurl = "amqp://f:s3cret/@mq"',
            "queue.url is no URL: the port must be a number",
        ),
        (
            'kind = "rabbitmq"\nurl = "amqp://f:12/s3cret@mq"',
            "queue.url is no URL: the port must be a number, and any of / ? # @",
        ),
        ('kind = "rabbitmq"\nurl = "amqp://"', "queue.url names no host."),
        (
            'kind = "rabbitmq"\nurl = "amqp://mq"\nurl_file = "x"',
            "queue.url and url_file are both set; keep one of them.",
        ),
        (
            'kind = "rabbitmq"\nurl = "amqp://mq"\nreplicas = 3',
            "queue.replicas is for NATS; RabbitMQ places a quorum queue itself; remove it.",
        ),
        (
            'kind = "nats"\nurl = "nats://n"\nname = "a.b"',
            "queue.name must be 1 to 64 of the letters a-z, digits, _ and -.",
        ),
        ('kind = "nats"\nurl = "nats://n"\npre = 1', "queue.pre is unknown"),
    ],
)
def test_what_a_queue_is_refused_for(table: str, expected: str) -> None:
    assert expected in complaint(f"[queue]\n{table}")


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            f'{RABBIT}secret = "{SECRET}"',
            "targets[0].secret means nothing for a target of kind rabbitmq; remove it",
        ),
        (
            f'{NATS}stream = "a.b"',
            "targets[0].stream must be 1 to 200 ASCII letters, digits, _ and -",
        ),
        (
            f'{HOOK}rules = ["card"]',
            "targets[0].rules names 'card', which is no rule; did you mean",
        ),
        (f'{HOOK}types = ["hold.expired"]', "names 'hold.expired', which is no type of event"),
        (f"{HOOK}types = []", "targets[0].types is empty; name at least one (target 'crm')."),
        (HOOK.replace("https", "http"), "targets[0].url must begin with https:"),
        (
            HOOK.replace("https", "http") + "insecure = true\nports = [80]",
            "targets[0].insecure takes http: into the networks of allow only, and there are none",
        ),
        (
            HOOK.replace("crm.test/", "crm.test:22/"),
            "targets[0].url must use one of the ports 443, 8443",
        ),
        (
            HOOK.replace("//crm", "//u:s3cret@crm"),
            "targets[0].url must have no user and no password",
        ),
        (f'{HOOK}allow = ["10.0.0.1/8"]', "'10.0.0.1/8' is no network"),
        (f'{HOOK}allow = ["0.0.0.0/0"]', "is every address there is"),
        (
            HOOK.replace(SECRET, "whsec_c2hvcnQ="),
            "targets[0].secret must be whsec_ and base64 of 24 to 64 bytes",
        ),
        (
            HOOK.replace("secret =", "old_secret ="),
            "targets[0].secret is missing; add it, or name a file with secret_file",
        ),
        (f"{HOOK}concurrency = 0", "targets[0].concurrency must be at least 1 (target 'crm')."),
        (f"{HOOK}[[targets]]\n{HOOK}", "'crm' is the name of targets[0] too; rename one of them."),
    ],
)
def test_what_a_target_is_refused_for(table: str, expected: str) -> None:
    assert expected in complaint(f"[[targets]]\n{table}")


def test_a_webhook_over_http_may_go_into_networks_that_are_named() -> None:
    table = HOOK.replace("https", "http") + 'insecure = true\nports = [80]\nallow = ["10.0.0.0/8"]'
    (crm,) = loaded("[[targets]]", table).targets
    assert isinstance(crm.way, WebhookSettings)
    assert crm.way.insecure


def test_a_variable_of_a_target_says_where_targets_come_from() -> None:
    said = complaint(FREEHOLD_TARGETS__CRM__SECRET="s3cret")
    assert said == (
        "FREEHOLD_TARGETS__CRM__SECRET: targets come from the file only; set it in freehold.toml."
    )
