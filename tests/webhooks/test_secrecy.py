"""What is nobody's business is in no reason, no log and no text of an error."""

from __future__ import annotations

import base64
import logging
import traceback
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any

import pytest

from freehold.adapters.webhook import WebhookTarget
from freehold.domain.errors import TargetAway
from tests.webhooks.receiver import PATIENCE_SECONDS, Receiver, answering, parcel

Connect = Callable[..., WebhookTarget]
KEY = b"canary-key-of-thirty-two-bytes!!"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OLD_SECRET = "whsec_" + base64.b64encode(KEY[::-1]).decode()
PATH = "/canary-path?token=canary-token"
BODY = b'{"guest":"canary-guest"}'
CANARIES = ("canary", KEY[::-1].decode(), *(one[6:] for one in (SECRET, OLD_SECRET)), "10.7.7.7")


def echo(status: int) -> Callable[[Any], None]:
    return answering(status, BODY, Location=PATH, X_Echo=SECRET)


def breaking(handler: Any) -> None:
    handler.wfile.write(PATH.encode())
    handler.close_connection = True


PLAYS: list[tuple[Callable[[Any], None] | None, dict[str, Any]]] = [
    *((echo(status), {}) for status in (200, 302, 400, 410, 429, 500)),
    (breaking, {}),
    (None, {"seconds": PATIENCE_SECONDS}),
    (None, {"ca_file": None}),
    (None, {"look_up": lambda *_: (ip_address("10.7.7.7"),)}),
    (None, {"look_up": lambda *_: ()}),
    (None, {"url": f"https://hooks.customer.example:1{PATH}", "ports": (1,)}),
]


def texts_of(target: WebhookTarget) -> Iterator[str]:
    """Return all that anybody is told."""
    yield repr(target)
    try:
        for answer in target.deliver([parcel(1, BODY)]):
            yield repr(answer)
    except TargetAway as away:
        yield "".join(traceback.format_exception(away))


@pytest.mark.parametrize(("play", "how"), PLAYS)
def test_canaries_are_found_nowhere(
    connect: Connect,
    receiver: Receiver,
    caplog: pytest.LogCaptureFixture,
    play: Callable[[Any], None] | None,
    how: dict[str, Any],
) -> None:
    caplog.set_level(logging.INFO)  # below it httpcore writes what the other side answered
    receiver.play = play or (lambda _: receiver.hang())
    chosen = {"url": receiver.url(PATH), "secret": SECRET, "old_secret": OLD_SECRET, **how}
    told = [*texts_of(connect(**chosen)), caplog.text]
    assert all(told[:2])
    assert not [text for text in told for canary in CANARIES if canary in text]


def test_below_information_nothing_of_ours_is_logged_either(
    connect: Connect, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    connect(url=receiver.url(PATH), secret=SECRET).deliver([parcel(1, BODY)])
    assert "send_request_headers" in caplog.text
    assert not [canary for canary in CANARIES if canary in caplog.text]
