"""The webhook receiver of examples/consumer-node: one effect an event, whatever comes how often."""

from __future__ import annotations

import base64
import random
import signal
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest
from standardwebhooks import Webhook

from freehold.ports.target import Reception
from tests.examples.events import offers, parcels, received
from tests.examples.receiving import HOOK, SECRET, Receiver, receiving

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHER_SECRET = "whsec_" + base64.b64encode(b"another one of the tests, the same").decode()


@pytest.fixture(scope="module")
def running(prepared_consumer_url: str) -> Iterator[Receiver]:
    with receiving(prepared_consumer_url) as receiver:
        yield receiver


@pytest.fixture
def receiver(running: Receiver, consumer_url: str) -> Receiver:
    """The running receiver over empty tables."""
    return running


def test_repeats_in_any_order_have_one_effect(receiver: Receiver, consumer_url: str) -> None:
    sent = parcels(20, others=5)
    again = sent * 3
    random.Random(7).shuffle(again)
    for start in range(0, len(again), 25):
        assert set(receiver.deliver(again[start : start + 25])) == {Reception.ACCEPTED}
    assert received(consumer_url) == sorted(one.event_key for one in sent)
    assert offers(consumer_url) == sorted(one.event_key for one in sent[:20])


def test_a_receiver_killed_between_commit_and_answer_is_asked_again(consumer_url: str) -> None:
    (sent,) = parcels(1)
    with receiving(consumer_url, "--import", str(HOOK)) as receiver:
        assert receiver.deliver([sent]) == [Reception.TRANSIENT]
        assert receiver.process.wait(30) == -signal.SIGKILL
    assert offers(consumer_url) == [sent.event_key]
    with receiving(consumer_url) as receiver:
        assert receiver.deliver([sent]) == [Reception.ACCEPTED]
    assert offers(consumer_url) == received(consumer_url) == [sent.event_key]


def test_both_secrets_are_good_while_one_replaces_the_other(
    receiver: Receiver, consumer_url: str
) -> None:
    (sent,) = parcels(1)
    assert receiver.deliver([sent], OTHER_SECRET, SECRET) == [Reception.ACCEPTED]
    assert receiver.deliver([sent], OTHER_SECRET) == [Reception.REFUSED]
    assert offers(consumer_url) == [sent.event_key]


def _signed(body: bytes, secret: str = SECRET, *, age: timedelta = timedelta()) -> dict[str, str]:
    at = datetime.now(UTC) - age
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign("msg_1", at, body.decode()),
    }


def _bad() -> Iterator[tuple[str, bytes, list[tuple[str, str]]]]:
    body = parcels(1)[0].body
    good = _signed(body)
    yield "altered body", body.replace(b"seat 0", b"seat 1"), list(good.items())
    yield "one more byte", body + b" ", list(good.items())
    yield "another secret", body, list(_signed(body, OTHER_SECRET).items())
    yield "too old", body, list(_signed(body, age=timedelta(minutes=6)).items())
    yield "from the future", body, list(_signed(body, age=-timedelta(minutes=6)).items())
    yield "another id", body, list({**good, "webhook-id": "msg_2"}.items())
    yield "a header twice", body, [*good.items(), ("webhook-id", "msg_1")]
    yield "no signature", body, [(k, v) for k, v in good.items() if k != "webhook-signature"]
    yield "an empty one", body, list({**good, "webhook-signature": ""}.items())
    yield "another scheme", body, list({**good, "webhook-signature": "v0,x v1a"}.items())


def test_a_bad_signature_is_refused_and_leaves_nothing(
    receiver: Receiver, consumer_url: str
) -> None:
    body = parcels(1)[0].body
    for what, altered, headers in _bad():
        assert httpx.post(receiver.url, content=altered, headers=headers).status_code == 401, what
    assert received(consumer_url) == offers(consumer_url) == []
    assert httpx.post(receiver.url, content=body, headers=_signed(body)).status_code == 204
    assert len(offers(consumer_url)) == 1


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"no JSON", b'{"specversion":"1.0","id":7}'])
def test_what_is_signed_and_no_event_is_refused(
    receiver: Receiver, consumer_url: str, body: bytes
) -> None:
    assert httpx.post(receiver.url, content=body, headers=_signed(body)).status_code == 400
    assert received(consumer_url) == []


def test_a_body_without_end_and_other_requests_are_refused(
    receiver: Receiver, consumer_url: str
) -> None:
    long = b"x" * 1_000_001
    assert httpx.post(receiver.url, content=long, headers=_signed(long)).status_code == 413
    assert httpx.get(receiver.url).status_code == 404
    assert httpx.post(f"{receiver.url}/else").status_code == 404
    assert received(consumer_url) == []


def test_an_effect_that_fails_leaves_the_event_new(receiver: Receiver, consumer_url: str) -> None:
    (sent,) = parcels(1)
    with psycopg.connect(consumer_url, autocommit=True) as connection:
        connection.execute("alter table offers rename to away")
        assert receiver.deliver([sent]) == [Reception.TRANSIENT]
        assert received(consumer_url) == []
        connection.execute("alter table away rename to offers")
    assert receiver.deliver([sent]) == [Reception.ACCEPTED]
    assert offers(consumer_url) == received(consumer_url) == [sent.event_key]


def test_a_stop_signal_ends_it_in_order(consumer_url: str) -> None:
    with receiving(consumer_url) as receiver:
        receiver.process.terminate()
        assert receiver.process.wait(30) == 0
