"""What becomes of deliveries, whatever the other side does."""

from __future__ import annotations

import gzip
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from freehold import __version__
from freehold.adapters.webhook import WebhookTarget
from freehold.adapters.webhook.reading import WAIT_SECONDS_MOST, read_answer
from freehold.adapters.webhook.target import ANSWER_BYTES_MAX, ANSWER_SECONDS, ROUNDS
from freehold.domain.errors import TargetAway
from freehold.ports.target import Answer, Reception
from tests.webhooks.receiver import NAME, PATIENCE_SECONDS, Receiver, answering, parcel

Connect = Callable[..., WebhookTarget]
NOW = datetime(2026, 3, 29, 12, tzinfo=UTC)


def deliver_one(target: WebhookTarget) -> Answer:
    (answer,) = target.deliver([parcel()])
    return answer


def impatient(connect: Connect, **how: Any) -> WebhookTarget:
    """Return a target that is connected already, so that a busy host cannot be too slow for it."""
    target = connect(**how)
    size = how.get("concurrency", 1)
    assert {one.code for one in target.deliver([parcel()] * size)} == {"204"}
    target._seconds = PATIENCE_SECONDS
    return target


def test_a_parcel_arrives_whole(connect: Connect, receiver: Receiver) -> None:
    answer = deliver_one(connect(url=receiver.url("/hook/7?key=k")))
    assert answer == Answer(Reception.ACCEPTED, "204")
    (got,) = receiver.got
    assert got.body == parcel().body
    assert got.path == "/hook/7?key=k"
    assert got.headers["host"] == f"{NAME}:{receiver.port}"
    assert got.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert got.headers["user-agent"] == f"Freehold/{__version__}"
    assert got.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("status", "reception"),
    [
        (101, Reception.REFUSED),
        (200, Reception.ACCEPTED),
        (202, Reception.ACCEPTED),
        (204, Reception.ACCEPTED),
        (301, Reception.REFUSED),
        (304, Reception.REFUSED),
        (400, Reception.REFUSED),
        (401, Reception.REFUSED),
        (404, Reception.REFUSED),
        (408, Reception.TRANSIENT),
        (410, Reception.GONE),
        (413, Reception.REFUSED),
        (425, Reception.TRANSIENT),
        (429, Reception.TRANSIENT),
        (500, Reception.TRANSIENT),
        (503, Reception.TRANSIENT),
        (599, Reception.TRANSIENT),
        (999, Reception.TRANSIENT),
    ],
)
def test_a_status_decides(status: int, reception: Reception) -> None:
    answer = read_answer(status, {}, NOW)
    assert (answer.reception, answer.code, answer.wait_seconds) == (reception, str(status), None)
    assert answer.reason or reception is Reception.ACCEPTED


@pytest.mark.parametrize(
    ("headers", "wait_seconds"),
    [
        ({"retry-after": "120"}, 120.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "1e99"}, WAIT_SECONDS_MOST),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": format_datetime(NOW - timedelta(days=9), usegmt=True)}, 0.0),
        ({"retry-after": "Thu, 01 Jan 9999999 00:00:00 GMT"}, None),
        (  # their clock is an hour ahead
            {
                "retry-after": format_datetime(NOW + timedelta(seconds=3_630), usegmt=True),
                "date": format_datetime(NOW + timedelta(hours=1), usegmt=True),
            },
            30.0,
        ),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_that_was_asked_for_is_told(
    status: int, headers: dict[str, str], wait_seconds: float | None
) -> None:
    answer = read_answer(status, headers, NOW)
    assert (answer.reception, answer.wait_seconds) == (Reception.TRANSIENT, wait_seconds)


def test_a_wait_is_read_from_the_wire(connect: Connect, receiver: Receiver) -> None:
    receiver.play = answering(429, b"slow down", Retry_After="17")
    assert deliver_one(connect()).wait_seconds == 17.0


def test_a_redirect_is_not_followed(connect: Connect, receiver: Receiver) -> None:
    receiver.play = answering(302, Location="http://169.254.169.254/latest/meta-data/")
    answer = deliver_one(connect())
    assert (answer.reception, answer.code) == (Reception.REFUSED, "302")
    assert "redirects are not followed" in answer.reason
    assert "169" not in answer.reason
    assert len(receiver.got) == 1


def test_an_answer_that_does_not_come_is_given_up(connect: Connect, receiver: Receiver) -> None:
    target = impatient(connect)
    receiver.play = lambda _: receiver.hang()
    answer = deliver_one(target)
    assert answer == Answer(Reception.TRANSIENT, "timeout", f"{NAME} did not answer in time")
    assert len(receiver.got) == 2


def _dripping(receiver: Receiver, head: bytes) -> Callable[[Any], None]:
    def play(handler: Any) -> None:
        handler.wfile.write(head)
        while not receiver.freed.wait(0.02):
            handler.wfile.write(b"x")
            handler.wfile.flush()

    return play


def test_a_dripping_head_has_no_more_time_than_any(connect: Connect, receiver: Receiver) -> None:
    target = impatient(connect)
    receiver.play = _dripping(receiver, b"HTTP/1.1 200 OK\r\nX-Slow: ")
    begun_at = time.monotonic()
    assert deliver_one(target).code == "timeout"
    assert time.monotonic() - begun_at < target.seconds_most


def test_a_dripping_body_does_not_take_back_its_status(
    connect: Connect, receiver: Receiver
) -> None:
    receiver.play = _dripping(receiver, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    target = connect()
    begun_at = time.monotonic()
    assert deliver_one(target).reception is Reception.ACCEPTED
    assert time.monotonic() - begun_at < 10 * ANSWER_SECONDS  # the whole of it takes 20 s


def test_steps_without_an_end_have_no_more_time(connect: Connect, receiver: Receiver) -> None:
    def play(handler: Any) -> None:
        while not receiver.freed.wait(0.01):
            handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")

    target = impatient(connect)
    receiver.play = play
    assert deliver_one(target).code == "timeout"


def test_a_batch_that_hangs_ends_in_its_time(connect: Connect, receiver: Receiver) -> None:
    target = impatient(connect, concurrency=2)
    receiver.play = lambda _: receiver.hang()
    begun_at = time.monotonic()
    parcels = [parcel(number) for number in range(target.batch_most)]
    answers = target.deliver(parcels)
    assert time.monotonic() - begun_at < target.seconds_most
    assert [answer.reception for answer in answers] == [Reception.TRANSIENT] * len(parcels)


def test_so_many_are_under_way_at_once_and_no_more(connect: Connect, receiver: Receiver) -> None:
    together = threading.Barrier(4, timeout=20)
    under_way: set[int] = set()
    most: list[int] = []

    def play(handler: Any) -> None:
        under_way.add(id(handler))
        together.wait()  # comes back only while four are here
        most.append(len(under_way))
        together.wait()
        under_way.discard(id(handler))
        answering(204)(handler)

    receiver.play = play
    answers = connect(concurrency=4, seconds=25.0).deliver([parcel(n) for n in range(8)])
    assert {answer.code for answer in answers} == {"204"}
    assert max(most) == 4


def test_of_a_huge_answer_little_is_read(connect: Connect, receiver: Receiver) -> None:
    sent_bytes: list[int] = []

    def play(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while not receiver.freed.is_set():
            sent_bytes.append(handler.connection.send(b"x" * 65_536))

    receiver.play = play
    target = connect()
    assert deliver_one(target).reception is Reception.ACCEPTED
    target.close()
    assert sum(sent_bytes) < 50_000_000  # what buffers of the system take; the answer is 1 GB


def test_a_huge_head_is_no_answer(connect: Connect, receiver: Receiver) -> None:
    receiver.play = lambda handler: handler.wfile.write(
        b"HTTP/1.1 200 OK\r\n" + b"X-Big: " + b"x" * 300_000 + b"\r\n\r\n"
    )
    assert deliver_one(connect()).code == "broken"


def test_a_packed_answer_is_not_unpacked(
    connect: Connect, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = gzip.compress(bytes(3_000_000))
    assert len(bomb) < ANSWER_BYTES_MAX
    monkeypatch.setattr("zlib.decompressobj", None)
    receiver.play = answering(200, bomb, Content_Encoding="gzip")
    assert deliver_one(connect()).reception is Reception.ACCEPTED


@pytest.mark.parametrize(
    "bytes_back",
    [b"", b"HTTP/1.1 2", b"220 mail.customer.example ESMTP\r\n", os.urandom(64)],
    ids=["nothing", "half", "mail", "noise"],
)
def test_a_connection_that_breaks_tells_nothing(
    connect: Connect, receiver: Receiver, bytes_back: bytes
) -> None:
    def play(handler: Any) -> None:
        handler.wfile.write(bytes_back)
        handler.close_connection = True

    receiver.play = play
    answer = deliver_one(connect())
    assert (answer.reception, answer.code) == (Reception.TRANSIENT, "broken")
    assert len(receiver.got) == 1  # not repeated by us


def test_whoever_wants_another_protocol_gets_none(connect: Connect, receiver: Receiver) -> None:
    receiver.play = answering(101, Upgrade="websocket", Connection="upgrade")
    target = connect()
    assert deliver_one(target).code in {"101", "broken"}  # h11 knows that we asked for none
    receiver.play = answering(204)
    assert deliver_one(target).code == "204"


def test_answers_are_in_the_order_of_parcels(connect: Connect, receiver: Receiver) -> None:
    bodies = [str(number).encode() for number in range(6)]

    def by_body(handler: Any) -> None:
        number = next(one.body for one in receiver.got if one.peer == handler.client_address)
        answering(200 + int(number))(handler)
        handler.close_connection = True

    receiver.play = by_body
    target = connect(concurrency=6)
    answers = target.deliver([parcel(n, body) for n, body in enumerate(bodies)])
    assert [answer.code for answer in answers] == ["200", "201", "202", "203", "204", "205"]


def test_a_thousand_deliveries_use_few_connections(connect: Connect, receiver: Receiver) -> None:
    target = connect(concurrency=4)
    assert target.batch_most == 4 * ROUNDS
    parcels = [parcel(number) for number in range(1_000)]
    for start in range(0, 1_000, target.batch_most):
        answers = target.deliver(parcels[start : start + target.batch_most])
        assert {answer.reception for answer in answers} == {Reception.ACCEPTED}
    assert {one.body for one in receiver.got} == {one.body for one in parcels}
    assert len({one.headers["webhook-id"] for one in receiver.got}) == 1_000
    assert receiver.connected_count <= 4


def test_a_connection_closed_meanwhile_is_opened_again(
    connect: Connect, receiver: Receiver
) -> None:
    def play(handler: Any) -> None:
        answering(200)(handler)
        handler.close_connection = True

    receiver.play = play
    target = connect()
    for _ in range(3):
        assert deliver_one(target).reception is Reception.ACCEPTED
    assert receiver.connected_count == 3


def test_where_nobody_listens_the_target_is_away(
    connect: Connect, receiver: Receiver, unused_port: int
) -> None:
    target = connect(url=f"https://{NAME}:{unused_port}/", ports=(unused_port,))
    with pytest.raises(TargetAway, match=f"{NAME} cannot be reached"):
        target.deliver([parcel(1), parcel(2)])


def test_a_target_that_leaves_within_a_batch_spends_attempts(
    connect: Connect, receiver: Receiver
) -> None:
    def play(handler: Any) -> None:
        answering(200)(handler)
        handler.close_connection = True
        receiver.stop_listening()

    receiver.play = play
    answers = connect(concurrency=1).deliver([parcel(1), parcel(2)])
    assert [answer.code for answer in answers] == ["200", "connect"]


def test_after_a_goodbye_nothing_more_is_sent(connect: Connect, receiver: Receiver) -> None:
    receiver.play = answering(410)
    answers = connect(concurrency=2).deliver([parcel(n) for n in range(6)])
    assert {answer.reception for answer in answers} == {Reception.GONE}
    assert (len(answers), len(receiver.got)) == (6, 2)


def test_a_target_that_asks_to_be_left_alone_gets_no_more_of_the_batch(
    connect: Connect, receiver: Receiver
) -> None:
    receiver.play = answering(429, Retry_After="17")
    answers = connect(concurrency=2).deliver([parcel(n) for n in range(6)])
    assert [one.reception for one in answers] == [Reception.TRANSIENT] * 2 + [Reception.UNSENT] * 4
    assert [one.wait_seconds for one in answers] == [17.0] * 2 + [None] * 4
    assert len(receiver.got) == 2


def test_a_closed_target_opens_again(connect: Connect) -> None:
    target = connect()
    assert deliver_one(target).reception is Reception.ACCEPTED
    target.close()
    target.close()
    assert deliver_one(target).reception is Reception.ACCEPTED


def test_no_parcels_are_no_answers(connect: Connect, receiver: Receiver) -> None:
    assert connect().deliver([]) == []
    assert not receiver.connected_count
