"""The consumer of examples/consumer-python: one effect an event, from either broker."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.examples.consuming import CONSUMER, consuming
from tests.examples.events import offers, parcels, received
from tests.examples.patience import PATIENCE_SECONDS, wait_for

if TYPE_CHECKING:
    from tests.examples.brokers import Broker

KILLER = Path(__file__).with_name("kill_after_commit.py")
SENT = parcels(20)
KEYS = sorted(one.event_key for one in SENT)


def end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    assert process.wait(PATIENCE_SECONDS) == 0


def test_repeats_in_any_order_have_one_effect(broker: Broker, consumer_url: str) -> None:
    again = SENT * 3
    random.Random(7).shuffle(again)
    junk = replace(SENT[0], body=b"no event")
    with consuming(broker, consumer_url) as process:
        broker.publish([*again, junk, parcels(21)[-1]])
        wait_for(lambda: len(received(consumer_url)) == 21)
        wait_for(lambda: broker.left_count() == 0)
        end(process)
    assert broker.left_count() == 0
    assert (
        offers(consumer_url)
        == received(consumer_url)
        == sorted(one.event_key for one in parcels(21))
    )


def test_a_consumer_killed_between_commit_and_ack_gets_the_message_again(
    broker: Broker, consumer_url: str
) -> None:
    with consuming(broker, consumer_url, KILLER, CONSUMER) as process:
        broker.publish(SENT)
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    assert len(offers(consumer_url)) == len(received(consumer_url)) == 1
    with consuming(broker, consumer_url) as process:
        wait_for(lambda: broker.left_count() == 0 and received(consumer_url) == KEYS)
        end(process)
    assert broker.left_count() == 0
    assert offers(consumer_url) == KEYS


def test_it_says_what_is_missing() -> None:
    ended = subprocess.run(
        [sys.executable, CONSUMER], env={}, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (2, "Set 'DATABASE_URL'; see README.md.\n")


@pytest.mark.parametrize("url", ["amqp://127.0.0.1:1/", "nats://127.0.0.1:1"])
def test_a_broker_that_is_away_ends_it(consumer_url: str, url: str) -> None:
    given = {"PATH": os.environ["PATH"], "DATABASE_URL": consumer_url, "BROKER_URL": url}
    ended = subprocess.run(
        [sys.executable, CONSUMER], env=given, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
