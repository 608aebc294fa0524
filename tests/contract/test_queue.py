"""The faulty queue without faults keeps the queue's contract; with faults it breaks as promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.domain.messages import Message
from freehold.ports.queue import Disposition
from freehold.testing.contracts.queue import (
    PublishContract,
    ReceiveContract,
    SettleContract,
    message,
)
from freehold.testing.dice import SeededDice
from freehold.testing.faulty_queue import Faults, FaultyBroker, FaultyQueue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehold.ports.queue import Queue


class MemoryBroker:
    """The faulty broker behind the contract's back door."""

    def __init__(self) -> None:
        self.broker = FaultyBroker()

    def connect(self) -> Queue:
        return self.broker.connect()

    def connect_unreachable(self) -> Queue:
        return FaultyBroker(reachable=False).connect()

    def put_raw(self, payload: bytes) -> None:
        self.broker.accept(payload)

    def count_waiting(self) -> int:
        return len(self.broker.waiting)

    def dead_letters(self) -> Sequence[bytes]:
        return self.broker.dead

    def keeps_dead_letters(self) -> bool:
        return True

    def cut(self, queue: Queue) -> None:
        queue.close()


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


class TestPublish(PublishContract):
    pass


class TestReceive(ReceiveContract):
    pass


class TestSettle(SettleContract):
    pass


SENT = [message(n) for n in range(1, 201)]


def received(faults: Faults, seed: int = 1, calls: int = 20) -> list[int]:
    queue = FaultyBroker(SeededDice(seed), faults).connect()
    queue.publish(SENT)
    return [number for _ in range(calls) for number in _take(queue)]


def _take(queue: FaultyQueue) -> list[int]:
    deliveries = queue.receive(50, 0)
    queue.settle(deliveries, Disposition.ACK)
    messages = (one.message for one in deliveries)
    return [one.operation_id for one in messages if isinstance(one, Message)]


def test_one_seed_is_one_history() -> None:
    faults = Faults(drop=0.2, duplicate=0.2, late=0.2, reorder=0.5)
    assert received(faults, seed=3) == received(faults, seed=3)
    assert received(faults, seed=3) != received(faults, seed=4)


@pytest.mark.parametrize(
    ("faults", "count", "order"),
    [
        (Faults(), "same", "kept"),
        (Faults(drop=0.3), "fewer", "kept"),
        (Faults(duplicate=0.3), "more", "kept"),
        (Faults(late=0.3), "same", "broken"),
        (Faults(reorder=1.0), "same", "broken"),
    ],
    ids=["none", "drop", "duplicate", "delay", "reorder"],
)
def test_each_fault_does_its_own(faults: Faults, count: str, order: str) -> None:
    numbers = received(faults)
    assert set(numbers) <= set(range(1, 201))
    assert (len(set(numbers)) == 200) is (count != "fewer")
    assert (len(numbers) > len(set(numbers))) is (count == "more")
    assert (numbers == sorted(numbers)) is (order == "kept")


def test_a_missing_confirm_does_not_mean_a_missing_message() -> None:
    broker = FaultyBroker(SeededDice(1), Faults(unconfirmed=0.5))
    flags = broker.connect().publish(SENT)
    assert 0 < sum(flags) < 200
    assert len(broker.waiting) == 200


def test_a_wipe_loses_what_was_handed_over_too() -> None:
    broker = FaultyBroker()
    queue = broker.connect()
    queue.publish(SENT)
    deliveries = queue.receive(10, 0)
    broker.wipe()
    queue.settle(deliveries, Disposition.RETRY)
    queue.close()
    assert broker.waiting == []
