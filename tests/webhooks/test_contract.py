"""Webhooks keep the contract of targets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from freehold.adapters.webhook import WebhookTarget
from freehold.testing.contracts.targets import (
    RULE,
    DeliverContract,
    Wrong,
    WrongContract,
    parcel,
)
from tests.webhooks.receiver import NAME, Receiver, answering

Connect = Callable[..., WebhookTarget]
KEYS = [parcel(number, rule=rule).event_key for number in range(100) for rule in (RULE, "")]
BY_ID = {f"msg_{hashlib.sha256(key.encode()).hexdigest()[:32]}": key for key in KEYS}


def _cut(handler: Any) -> None:
    handler.close_connection = True


class Customer:
    """A customer's endpoint; implements the contract's `Ground`."""

    def __init__(self, receiver: Receiver, connect: Connect, unused_port: int) -> None:
        self._receiver = receiver
        self._connect = connect
        self._unused_port = unused_port

    def connect(self, *, impatient: bool = False) -> WebhookTarget:
        return self._connect(seconds=1.0 if impatient else 10.0)

    def connect_unreachable(self) -> WebhookTarget:
        port = self._unused_port
        return self._connect(url=f"https://{NAME}:{port}/", ports=(port,))

    def arrived(self) -> Sequence[tuple[str, bytes]]:
        return [(BY_ID[one.headers["webhook-id"]], one.body) for one in self._receiver.got]

    def plays(self, wrong: Wrong) -> bool:
        return True

    def go(self, wrong: Wrong | None) -> None:
        plays = {
            None: answering(204),
            Wrong.REFUSE: answering(400),
            Wrong.SILENT: lambda _: self._receiver.hang(),
            Wrong.TAKE_THEN_CUT: _cut,
        }
        self._receiver.play = plays[wrong]


@pytest.fixture
def ground(receiver: Receiver, connect: Connect, unused_port: int) -> Customer:
    return Customer(receiver, connect, unused_port)


class TestDeliver(DeliverContract):
    pass


class TestWrong(WrongContract):
    pass
