"""A queue in memory that drops, repeats, reorders, delays and wipes by a seed.

Without faults it keeps the contract of `ports.queue.Queue`; with them it does whatever that
contract lets a broker do at its worst. *Invariants*: what it does follows from the seed and the
calls alone; payloads go through the bytes that travel. Time is counted in calls of `receive`:
nothing waits here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from freehold.domain.errors import QueueAway
from freehold.domain.messages import Message, read_message, write_message
from freehold.ports.queue import Delivery, Disposition
from freehold.ports.system import Dice
from freehold.testing.dice import SeededDice

DELAY_MOST = 5  # calls of receive


@dataclass(frozen=True, slots=True)
class Faults:
    """Shares from 0 to 1; all zero is the perfect queue.

    Attributes:
        drop: of messages that are confirmed and then lost.
        duplicate: of messages that arrive twice.
        late: of messages that come up to `DELAY_MOST` calls later.
        reorder: of calls that hand over in any order.
        unconfirmed: of messages that arrive, while their confirm does not.
        away: of calls that find no broker.
        wipe: of calls before which the broker loses all it has, handed over or not.
    """

    drop: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0
    reorder: float = 0.0
    unconfirmed: float = 0.0
    away: float = 0.0
    wipe: float = 0.0


@dataclass(frozen=True, slots=True)
class _Parcel:
    payload: bytes
    from_call: int = 0
    redelivered: bool = False


@dataclass(slots=True)
class FaultyBroker:
    """What all connections share."""

    dice: Dice = field(default_factory=lambda: SeededDice(0))
    faults: Faults = Faults()
    reachable: bool = True
    dead: list[bytes] = field(default_factory=list)
    waiting: list[_Parcel] = field(default_factory=list)
    wipe_count: int = 0
    _calls: int = 0
    _queues: list[FaultyQueue] = field(default_factory=list)

    def connect(self) -> FaultyQueue:
        """Open a connection."""
        queue = FaultyQueue(self)
        self._queues.append(queue)
        return queue

    def strikes(self, share: float) -> bool:
        """Draw whether a fault strikes."""
        return share > 0 and self.dice.luck() < share

    def begin_call(self) -> None:
        """Count a call, and let the broker lose everything or be away."""
        self._calls += 1
        if self.strikes(self.faults.wipe):
            self.wipe()
        if not self.reachable or self.strikes(self.faults.away):
            raise QueueAway("the broker cannot be reached")

    def wipe(self) -> None:
        """Lose every message."""
        self.wipe_count += 1
        self.waiting.clear()
        for queue in self._queues:
            queue.forget()

    def accept(self, payload: bytes) -> bool:
        """Take a message in, as the faults have it; return whether it is confirmed."""
        copies = 2 if self.strikes(self.faults.duplicate) else 1
        for _ in range(0 if self.strikes(self.faults.drop) else copies):
            is_late = self.strikes(self.faults.late)
            calls = 1 + int(self.dice.luck() * DELAY_MOST) if is_late else 0
            self.waiting.append(_Parcel(payload, self._calls + calls))
        return not self.strikes(self.faults.unconfirmed)

    def hand_over(self, max_count: int) -> list[_Parcel]:
        """Take out what may come now."""
        ready = [one for one in self.waiting if one.from_call <= self._calls]
        if self.strikes(self.faults.reorder):
            ready.sort(key=lambda _: self.dice.luck())
        taken = ready[:max_count]
        chosen = {id(one) for one in taken}
        self.waiting = [one for one in self.waiting if id(one) not in chosen]
        return taken

    def put_back(self, parcel: _Parcel) -> None:
        """Let somebody take it again."""
        self.waiting.append(replace(parcel, redelivered=True))


class FaultyQueue:
    """One connection; implements `ports.queue.Queue`."""

    def __init__(self, broker: FaultyBroker) -> None:
        self._broker = broker
        self._unsettled: dict[object, _Parcel] = {}

    def publish(self, messages: Sequence[Message]) -> Sequence[bool]:
        """Send messages; the flags are the confirms."""
        self._broker.begin_call()
        return [self._broker.accept(write_message(message)) for message in messages]

    def receive(self, max_count: int, wait_seconds: float) -> Sequence[Delivery]:
        """Take what is there; never waits."""
        self._broker.begin_call()
        return [self._delivery(parcel) for parcel in self._broker.hand_over(max_count)]

    def _delivery(self, parcel: _Parcel) -> Delivery:
        receipt = object()
        self._unsettled[receipt] = parcel
        return Delivery(read_message(parcel.payload), receipt, parcel.redelivered)

    def settle(self, deliveries: Sequence[Delivery], disposition: Disposition) -> None:
        """Forget, put back or set aside."""
        for delivery in deliveries:
            parcel = self._unsettled.pop(delivery.receipt, None)
            if parcel is None:
                continue
            if disposition is Disposition.RETRY:
                self._broker.put_back(parcel)
            elif disposition is Disposition.DEAD_LETTER:
                self._broker.dead.append(parcel.payload)

    def depth(self) -> int | None:
        """Count what waits."""
        self._broker.begin_call()
        return len(self._broker.waiting)

    def forget(self) -> None:
        """Lose what was handed over: its receipts mean nothing any more."""
        self._unsettled.clear()

    def close(self) -> None:
        """Put back what was not settled."""
        for parcel in self._unsettled.values():
            self._broker.put_back(parcel)
        self.forget()
