"""A broker's client that fails as nobody foresaw is a broker that is away, and no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import SystemClock
from freehold.application.sturdy import SturdyQueue
from freehold.application.supply import Hints
from freehold.domain.errors import QueueAway
from freehold.ports.queue import Disposition
from freehold.ports.telemetry import QueueFound, QueueLost
from freehold.testing.faulty_queue import FaultyBroker

if TYPE_CHECKING:
    from collections.abc import Callable

    from freehold.ports.queue import Queue
    from freehold.ports.telemetry import Event

ACTS: dict[str, Callable[[Queue], object]] = {
    "publish": lambda queue: queue.publish([]),
    "receive": lambda queue: queue.receive(1, 0.0),
    "settle": lambda queue: queue.settle([], Disposition.ACK),
    "depth": lambda queue: queue.depth(),
}


class Broken:
    """A connection of which every call fails, the last one included."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def fail(*_: object) -> None:
            raise RuntimeError(f"{name} fails")

        return fail


@dataclass
class Heard:
    """What was told."""

    events: list[Event] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        self.events.append(event)


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_it_is_away_once_and_then_connected_anew(act: Callable[[Queue], object]) -> None:
    connections = iter([Broken(), FaultyBroker().connect()])
    queue = SturdyQueue(lambda: next(connections))  # type: ignore[arg-type,return-value]
    with pytest.raises(QueueAway, match="the client of the broker failed: RuntimeError"):
        act(queue)
    act(queue)
    queue.close()
    assert next(connections, None) is None


def test_what_an_adapter_names_itself_keeps_its_connection() -> None:
    broker = FaultyBroker(reachable=False)
    connections = iter([broker.connect()])
    queue = SturdyQueue(lambda: next(connections))
    with pytest.raises(QueueAway, match="cannot be reached"):
        queue.depth()
    broker.reachable = True
    assert queue.depth() == 0


def test_a_connection_that_cannot_be_made_again_is_away_too() -> None:
    connections = iter([Broken()])
    queue = SturdyQueue(lambda: next(connections))  # type: ignore[arg-type,return-value]
    for failure in ("RuntimeError", "StopIteration"):
        with pytest.raises(QueueAway, match=failure):
            queue.depth()
    queue.close()


def test_closing_one_that_fails_is_quiet() -> None:
    queue = SturdyQueue(Broken)  # type: ignore[arg-type]
    queue.close()
    queue.close()


def test_what_failed_is_told_by_its_own_name() -> None:
    heard = Heard()
    hints = Hints(SystemClock(), heard)
    queue = SturdyQueue(Broken)  # type: ignore[arg-type]
    with pytest.raises(QueueAway) as caught:
        queue.depth()
    hints.lost(caught.value)
    hints.answered(0)
    assert heard.events == [QueueLost("deliveries", "RuntimeError"), QueueFound("deliveries")]
