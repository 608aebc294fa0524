"""The contract of `ports.queue.Queue`, for every broker and for the faulty queue in perfect mode."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from freehold.domain.errors import QueueAway
from freehold.domain.messages import (
    PAYLOAD_BYTES_MAX,
    RAW_BYTES_KEPT,
    Message,
    Unreadable,
    write_message,
)
from freehold.ports.queue import Delivery, Disposition, Queue
from freehold.testing.contracts.ground import raised

WAIT_SECONDS = 5.0  # for what must come
NOTHING_SECONDS = 0.2  # for what must not


class Broker(Protocol):
    """One empty queue of a broker, with a back door that does not use the adapter."""

    def connect(self) -> Queue:
        """Open one more connection; the broker closes it at the end."""
        ...

    def connect_unreachable(self) -> Queue:
        """Return a queue whose broker cannot be reached."""
        ...

    def put_raw(self, payload: bytes) -> None:
        """Put bytes into the queue."""
        ...

    def count_waiting(self) -> int:
        """Count what waits and is handed to nobody."""
        ...

    def dead_letters(self) -> Sequence[bytes]:
        """Read what was set aside; only where dead letters are kept."""
        ...

    def keeps_dead_letters(self) -> bool:
        """Tell whether the queue keeps dead letters aside."""
        ...

    def cut(self, queue: Queue) -> None:
        """Break one connection, as a killed process or a lost network does."""
        ...


class PublishContract:
    """Give the fixture `broker`."""

    def test_what_is_published_is_received_whole(self, broker: Broker) -> None:
        queue = broker.connect()
        sent = [message(1, hold_key="größe, '1'"), message(2, trace_context="00-ab-cd-01")]
        queue.publish(sent)
        assert sorted(_messages(take(queue, 2)), key=lambda one: one.operation_id) == sent

    def test_every_message_has_its_confirm(self, broker: Broker) -> None:
        queue = broker.connect()
        assert list(queue.publish([message(n) for n in range(1, 4)])) == [True, True, True]
        assert list(queue.publish([])) == []
        assert broker.count_waiting() == 3

    def test_a_repeat_is_delivered_again(self, broker: Broker) -> None:
        queue = broker.connect()
        for _ in range(2):
            assert list(queue.publish([message(1)])) == [True]
            deliveries = take(queue, 1)
            assert _messages(deliveries) == [message(1)]
            queue.settle(deliveries, Disposition.ACK)

    def test_a_missing_broker_is_away(self, broker: Broker) -> None:
        queue = broker.connect_unreachable()
        with raised(QueueAway):
            queue.publish([message(1)])
        with raised(QueueAway):
            queue.receive(1, 0)
        with raised(QueueAway):
            queue.depth()
        queue.close()

    def test_depth_leaves_out_what_is_handed_over(self, broker: Broker) -> None:
        queue = broker.connect()
        queue.publish([message(n) for n in range(1, 4)])
        assert queue.depth() in (3, None)

    def test_a_lost_connection_is_opened_again(self, broker: Broker) -> None:
        queue = broker.connect()
        broker.cut(queue)
        assert list(queue.publish([message(1)])) == [True]
        broker.cut(queue)
        assert len(take(queue, 1)) == 1


class ReceiveContract:
    """Give the fixture `broker`."""

    def test_an_empty_queue_gives_nothing(self, broker: Broker) -> None:
        assert list(broker.connect().receive(10, NOTHING_SECONDS)) == []

    def test_no_more_than_asked_for_is_taken(self, broker: Broker) -> None:
        queue = broker.connect()
        queue.publish([message(n) for n in range(1, 6)])
        first = queue.receive(2, WAIT_SECONDS)
        assert 1 <= len(first) <= 2
        rest = take(queue, 5 - len(first))
        assert {one.operation_id for one in _messages([*first, *rest])} == {1, 2, 3, 4, 5}

    def test_what_one_took_goes_to_nobody_else(self, broker: Broker) -> None:
        first, second = broker.connect(), broker.connect()
        first.publish([message(1)])
        assert len(take(first, 1)) == 1
        assert list(second.receive(1, NOTHING_SECONDS)) == []

    def test_what_was_not_settled_comes_again_after_close(self, broker: Broker) -> None:
        first, second = broker.connect(), broker.connect()
        first.publish([message(1)])
        assert len(take(first, 1)) == 1
        first.close()
        first.close()
        (again,) = take(second, 1)
        assert (again.message, again.redelivered) == (message(1), True)

    def test_what_was_not_settled_comes_again_after_a_crash(self, broker: Broker) -> None:
        first, second = broker.connect(), broker.connect()
        first.publish([message(1)])
        assert len(take(first, 1)) == 1
        broker.cut(first)
        (again,) = take(second, 1)
        assert (again.message, again.redelivered) == (message(1), True)

    def test_unreadable_payloads_stop_nothing(self, broker: Broker) -> None:
        queue = broker.connect()
        payloads = [b"\xff\xfe", b"", b"[]", b'{"v":9}', write_message(message(1))[:-9] + b"}"]
        for payload in payloads:
            broker.put_raw(payload)
        queue.publish([message(2)])
        deliveries = take(queue, len(payloads) + 1)
        unreadable = [one.message for one in deliveries if isinstance(one.message, Unreadable)]
        assert sorted(one.raw for one in unreadable) == sorted(payloads)
        assert all(one.reason for one in unreadable)
        assert _messages(deliveries) == [message(2)]

    def test_what_is_kept_of_an_unreadable_payload_is_bounded(self, broker: Broker) -> None:
        payload = b"x" * (PAYLOAD_BYTES_MAX + 1)
        broker.put_raw(payload)
        (delivery,) = take(broker.connect(), 1)
        assert isinstance(delivery.message, Unreadable)
        assert delivery.message.raw == payload[:RAW_BYTES_KEPT]
        assert delivery.message.length_bytes == len(payload)


class SettleContract:
    """Give the fixture `broker`."""

    def test_ack_takes_out(self, broker: Broker) -> None:
        queue = broker.connect()
        queue.publish([message(1), message(2)])
        queue.settle(take(queue, 2), Disposition.ACK)
        queue.close()
        assert list(broker.connect().receive(1, NOTHING_SECONDS)) == []

    def test_retry_puts_back_for_anybody(self, broker: Broker) -> None:
        first, second = broker.connect(), broker.connect()
        first.publish([message(1)])
        first.settle(take(first, 1), Disposition.RETRY)
        first.close()
        (again,) = take(second, 1)
        assert (again.message, again.redelivered) == (message(1), True)

    def test_a_dead_letter_is_out_and_kept_aside(self, broker: Broker) -> None:
        queue = broker.connect()
        broker.put_raw(b"no message")
        queue.settle(take(queue, 1), Disposition.DEAD_LETTER)
        queue.close()
        second = broker.connect()
        assert list(second.receive(1, NOTHING_SECONDS)) == []
        if broker.keeps_dead_letters():
            assert _kept_aside(broker, second) == [b"no message"]

    def test_a_second_settlement_changes_nothing(self, broker: Broker) -> None:
        queue = broker.connect()
        queue.publish([message(1)])
        deliveries = take(queue, 1)
        for disposition in (Disposition.ACK, Disposition.RETRY, Disposition.DEAD_LETTER):
            queue.settle(deliveries, disposition)
        queue.settle([], Disposition.ACK)
        assert list(queue.receive(1, NOTHING_SECONDS)) == []
        assert not broker.keeps_dead_letters() or list(broker.dead_letters()) == []

    def test_deliveries_of_a_lost_connection_are_passed_over(self, broker: Broker) -> None:
        queue = broker.connect()
        queue.publish([message(1)])
        old = take(queue, 1)
        broker.cut(queue)
        queue.settle(old, Disposition.ACK)
        assert _messages(take(queue, 1)) == [message(1)]


def message(
    number: int, *, hold_key: str | None = None, trace_context: str | None = None
) -> Message:
    """Make a message."""
    return Message(
        operation_id=number,
        operation_key=f"r:{number}",
        rule="r",
        hold_key=hold_key or str(number),
        due_at=datetime(2031, 5, 6, 12, 0, 0, 123456, tzinfo=UTC),
        attempt=1,
        trace_context=trace_context,
    )


def take(queue: Queue, count: int) -> list[Delivery]:
    """Receive until so many came, or nothing more comes."""
    taken: list[Delivery] = []
    while len(taken) < count:
        more = queue.receive(count - len(taken), WAIT_SECONDS)
        if not more:
            break
        taken += more
    assert len(taken) == count, f"{count} deliveries were to come, {len(taken)} did"
    return taken


def _kept_aside(broker: Broker, idle: Queue) -> list[bytes]:
    """Read the dead letters; a broker may take a moment to put one there."""
    for _ in range(round(WAIT_SECONDS / NOTHING_SECONDS)):
        if found := list(broker.dead_letters()):
            return found
        assert list(idle.receive(1, NOTHING_SECONDS)) == []
    return []


def _messages(deliveries: Sequence[Delivery]) -> list[Message]:
    return [one.message for one in deliveries if isinstance(one.message, Message)]
