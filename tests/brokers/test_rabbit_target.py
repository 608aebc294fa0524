"""Events to a RabbitMQ exchange keep the contract of targets."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.rabbitmq import RabbitTarget
from freehold.domain.errors import TargetAway
from freehold.ports.target import Reception, Target
from freehold.testing.contracts.targets import (
    TYPE,
    DeliverContract,
    Wrong,
    WrongContract,
    parcel,
)
from tests.brokers.rabbit_door import RabbitDoor
from tests.brokers.rabbit_server import READER
from tests.proxy import Cut, CuttingProxy, contains

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.brokers.rabbit_server import RabbitServer

SENT = contains(TYPE.encode())  # a message, and nothing that comes before it


class RabbitGround:
    """An exchange with one queue behind it, and a proxy before it."""

    def __init__(self, server: RabbitServer, name: str, stack: ExitStack) -> None:
        self.server, self.exchange, self.queue_name = server, name, f"{name}.bound"
        self.door = RabbitDoor(server.url)
        self.proxy = stack.enter_context(CuttingProxy.for_url(server.url))
        self._stack = stack
        (answer,) = self.connect().deliver([parcel(0)])  # makes the exchange
        assert answer.reception is Reception.TRANSIENT, "nothing is bound yet"
        self.door.bind(self.queue_name, name, "#")

    def connect(self, *, impatient: bool = False) -> Target:
        target = RabbitTarget(
            url=self.proxy.url(self.server.url),
            exchange=self.exchange,
            confirm_seconds=0.3 if impatient else 10.0,
        )
        self._stack.callback(target.close)
        return target

    def connect_unreachable(self) -> Target:
        with CuttingProxy.for_url(self.server.url) as gone:
            url = gone.url(self.server.url)
        return RabbitTarget(url=url, exchange=self.exchange)

    def arrived(self) -> Sequence[tuple[str, bytes]]:
        found = self.door.take(self.queue_name)
        return [(str(one.header.properties.message_id), one.body) for one in found]

    def plays(self, wrong: Wrong) -> bool:
        return True

    def go(self, wrong: Wrong | None) -> None:
        match wrong:
            case Wrong.REFUSE:
                self.door.delete(self.queue_name)
            case Wrong.SILENT:
                self.proxy.cut_at(SENT, Cut.AFTER_REPLY, reply=lambda _: False)
            case Wrong.TAKE_THEN_CUT:
                self.proxy.cut_at(SENT, Cut.AFTER_REPLY)
            case _:
                self.door.bind(self.queue_name, self.exchange, "#")


@pytest.fixture
def ground(rabbit_server: RabbitServer, queue_name: str) -> Iterator[RabbitGround]:
    with ExitStack() as stack:
        yield RabbitGround(rabbit_server, queue_name, stack)


class TestDeliver(DeliverContract):
    pass


class TestWrong(WrongContract):
    pass


def test_an_event_is_what_cloudevents_says_and_routed_by_rule_and_type(
    rabbit_server: RabbitServer, queue_name: str
) -> None:
    door = RabbitDoor(rabbit_server.url)
    target = RabbitTarget(url=rabbit_server.url, exchange=queue_name)
    target.deliver([parcel(0)])
    door.bind(f"{queue_name}.cart", queue_name, f"cart.{TYPE}")
    door.bind(f"{queue_name}.none", queue_name, f"freehold.{TYPE}")
    answers = target.deliver([parcel(1), parcel(2, rule=""), parcel(3, rule="other")])
    target.close()
    assert [one.reception for one in answers[:2]] == [Reception.ACCEPTED] * 2
    (one,) = door.take(f"{queue_name}.cart")
    assert one.body == parcel(1).body
    properties = one.header.properties
    assert properties.content_type == "application/cloudevents+json"
    assert (properties.message_id, properties.message_type) == (parcel(1).event_key, TYPE)
    assert properties.delivery_mode == 2
    assert len(door.take(f"{queue_name}.none")) == 1
    assert (answers[2].reception, answers[2].code) == (Reception.TRANSIENT, "312")
    assert answers[2].reason == "no queue is bound for this routing key"


def test_what_amqp_cannot_carry_is_refused_and_stops_nothing(ground: RabbitGround) -> None:
    answers = ground.connect().deliver([parcel(1, rule="r" * 250), parcel(2)])
    assert [one.reception for one in answers] == [Reception.REFUSED, Reception.ACCEPTED]
    assert "255 bytes" in answers[0].reason


def test_an_exchange_that_may_not_be_made_is_used_where_it_is(ground: RabbitGround) -> None:
    ground.door.delete(ground.queue_name)
    target = RabbitTarget(url=ground.server.url, exchange=f"{ground.exchange}-none", declare=False)
    (answer,) = target.deliver([parcel(1)])
    target.close()
    assert (answer.reception, answer.reason) == (
        Reception.TRANSIENT,
        "there is no such exchange",
    )


def test_a_missing_right_keeps_a_target_away(ground: RabbitGround) -> None:
    for exchange in (ground.exchange, f"{ground.exchange}-other"):
        target = RabbitTarget(url=ground.server.url_of(READER), exchange=exchange)
        with pytest.raises(TargetAway, match="does not let us: ACCESS_REFUSED"):
            target.deliver([parcel(1)])
        target.close()


def test_an_exchange_of_another_kind_is_told(rabbit_server: RabbitServer) -> None:
    target = RabbitTarget(url=rabbit_server.url, exchange="amq.fanout")
    with pytest.raises(TargetAway, match=r"exchange amq.fanout exists and is made otherwise"):
        target.deliver([parcel(1)])
    target.close()
