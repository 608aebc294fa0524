"""What doctor makes of a broker's facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from freehold.application.doctor.brokers import broker_findings, judge
from freehold.application.doctor.findings import Code, Severity
from freehold.domain.errors import QueueAway, QueueUnfit
from freehold.ports.queue_facts import QueueFacts

RABBIT = QueueFacts(
    kind="rabbitmq",
    version="3.10.8",
    is_made=True,
    queue_type="quorum",
    is_persistent=True,
    is_clustered=True,
    replicas=3,
    delivery_limit=1_000,
    dead_letter_target="freehold.dead",
    overflow="reject-publish",
    user="freehold",
    vhost="holds",
    is_monitored=True,
    waiting_count=5,
    dead_count=0,
)
NATS = QueueFacts(
    kind="nats",
    version="2.10.23",
    is_made=True,
    queue_type="workqueue",
    is_persistent=True,
    is_clustered=False,
    replicas=1,
    sync_seconds=0.0,
    dead_letter_target="freehold-dead",
    overflow="old",
    user="freehold",
    is_monitored=True,
)


class Told:
    def __init__(self, told: QueueFacts | QueueAway) -> None:
        self._told = told

    def read(self) -> QueueFacts:
        if isinstance(self._told, QueueAway):
            raise self._told
        return self._told


@pytest.mark.parametrize("facts", [RABBIT, NATS])
def test_a_sound_broker_is_fine(facts: QueueFacts) -> None:
    (found,) = broker_findings(Told(facts))
    assert (found.code, found.severity, found.rule) == (Code.BROKER, Severity.OK, None)
    assert facts.version in found.sentence


@pytest.mark.parametrize(
    ("facts", "code", "word"),
    [
        (replace(RABBIT, version="3.9.29"), Code.BROKER_VERSION, "3.10.0"),
        (replace(NATS, version="2.10.22"), Code.BROKER_VERSION, "2.10.23"),
        (replace(RABBIT, queue_type="classic"), Code.BROKER_QUEUE, "of type classic"),
        (replace(NATS, queue_type="limits"), Code.BROKER_QUEUE, "of type limits"),
        (replace(NATS, is_persistent=False), Code.BROKER_QUEUE, "in memory"),
        (replace(RABBIT, dead_letter_target=None), Code.BROKER_QUEUE, "After 1000 hand-overs"),
        (replace(RABBIT, overflow="drop-head"), Code.BROKER_QUEUE, "reject-publish"),
        (replace(RABBIT, replicas=1), Code.BROKER_REPLICAS, "on it alone"),
        (replace(NATS, sync_seconds=120.0), Code.BROKER_SYNC, "for 120 s"),
        (replace(RABBIT, dead_count=1_200), Code.BROKER_DEAD_LETTERS, "1,200 messages"),
        (replace(RABBIT, user="guest"), Code.BROKER_ACCOUNT, "guest"),
        (replace(RABBIT, vhost="/"), Code.BROKER_ACCOUNT, "virtual host /"),
        (replace(RABBIT, is_in_clear=True), Code.BROKER_IN_CLEAR, "amqps:"),
        (replace(NATS, is_in_clear=True), Code.BROKER_IN_CLEAR, "tls:"),
    ],
)
def test_each_risk_is_warned_of_alone(facts: QueueFacts, code: Code, word: str) -> None:
    (found,) = judge(facts)
    assert (found.code, found.severity) == (code, Severity.WARN)
    assert word in found.sentence


@pytest.mark.parametrize(
    "facts",
    [
        replace(RABBIT, version="4.1.0-rc.1"),
        replace(NATS, version="2.15.1"),
        replace(NATS, sync_seconds=120.0, replicas=3, is_clustered=True),
        replace(RABBIT, is_clustered=False, replicas=1),
    ],
)
def test_what_is_no_risk_is_not_warned_of(facts: QueueFacts) -> None:
    assert [one.code for one in judge(facts)] == [Code.BROKER]


def test_who_comes_as_nobody_from_afar_is_warned_twice() -> None:
    facts = replace(NATS, user=None, is_in_clear=True)
    assert [one.code for one in judge(facts)] == [Code.BROKER_ACCOUNT, Code.BROKER_IN_CLEAR]
    assert [one.code for one in judge(replace(NATS, user=None))] == [Code.BROKER]


def test_what_was_not_asked_is_said() -> None:
    facts = QueueFacts(kind="rabbitmq", version="3.10.8", user="freehold", vhost="holds")
    found = list(judge(facts))
    assert [one.code for one in found] == [Code.BROKER_UNASKED, Code.BROKER]
    assert "made at first use" in found[1].sentence


def test_a_broker_that_is_away_is_a_warning_and_one_that_is_unfit_is_refused() -> None:
    (away,) = broker_findings(Told(QueueAway("no answer in time")))
    (unfit,) = broker_findings(Told(QueueUnfit("it refuses this user")))
    assert (away.code, away.severity) == (Code.BROKER_AWAY, Severity.WARN)
    assert (unfit.code, unfit.severity) == (Code.BROKER_UNFIT, Severity.REFUSE)
    assert "it refuses this user" in unfit.sentence
