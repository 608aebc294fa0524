"""The relay in the service and in one-shots: one thread for SQL, and one for each target.

*Invariants*: one connection to the ledger, whatever the number of targets; only its own thread uses
a target. *Not here*: what a step does (`application.relaying`), how loops end (`service`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from queue import SimpleQueue
from typing import Any, TypeVar

from freehold.adapters.system import StopRequest, SystemClock, SystemDice
from freehold.application.relaying.forwarding import ClaimEnd, Forwarder
from freehold.application.relaying.relayer import Lane, Relayer, RelayPass
from freehold.bootstrap import Aimed, open_ledger, open_targets, require_targets
from freehold.domain.errors import DatabaseError
from freehold.entrypoints.pacing import Loop
from freehold.ports.ledger import Ledger
from freehold.ports.system import Checkpoint
from freehold.ports.telemetry import DatabaseTrouble, Telemetry
from freehold.settings import Settings

T = TypeVar("T")

CLOSE_SECONDS = 5.0  # of all targets together: saying good-bye is a courtesy
LOOK_SECONDS_LEAST = 0.02  # the first wait after a pass without anything to do; then it doubles
UNDER_WAY_SECONDS = 0.1  # a hand-over wakes its own target only; others are looked at after this


class OwnThread:
    """The thread of one target; implements `application.relaying.relayer.Hand`.

    It does not keep the process alive: a target that answers nobody must not outlast the drain.
    """

    def __init__(self, target: str) -> None:
        """Begin to wait for calls."""
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        threading.Thread(target=self._run, name=f"target {target}", daemon=True).start()

    def submit(self, call: Callable[[], T], /) -> Future[T]:
        """Let the thread do a call, behind those that it has; return what comes of it."""
        done: Future[T] = Future()
        self._calls.put((call, done))
        return done

    def end(self) -> None:
        """Let the thread end behind the calls that it has."""
        self._calls.put(None)

    def _run(self) -> None:
        while (next_call := self._calls.get()) is not None:
            call, done = next_call
            try:
                done.set_result(call())
            except BaseException as error:  # noqa: BLE001 - whoever waits for it is told
                done.set_exception(error)


@dataclass(slots=True)
class Crew:
    """The relayer, and the threads that hand over.

    Attributes:
        hands: one a target, so that a target is used by one thread only.
    """

    relayer: Relayer
    aimed: Sequence[Aimed]
    hands: Sequence[OwnThread]

    def close(self) -> None:
        """Settle what is under way, and end connections and threads, all at the same time."""
        try:
            self.relayer.finish()
        finally:
            pairs = zip(self.aimed, self.hands, strict=True)
            wait([hand.submit(one.target.close) for one, hand in pairs], CLOSE_SECONDS)
            for hand in self.hands:
                hand.end()


def crew_of(
    ledger: Ledger, settings: Settings, checkpoint: Checkpoint, telemetry: Telemetry
) -> Crew:
    """Return a relayer over all configured targets.

    Raises:
        UsageError: there is none, a secret cannot be used, or a package is missing.
    """
    require_targets(settings)
    aimed = open_targets(settings)
    dice = SystemDice()
    hands = [OwnThread(one.policy.name) for one in aimed]
    lanes = [
        Lane(Forwarder(ledger, one.target, one.policy, checkpoint, dice, telemetry), hand)
        for one, hand in zip(aimed, hands, strict=True)
    ]
    return Crew(Relayer(ledger, lanes, checkpoint, telemetry), aimed, hands)


def follow_targets(ledger: Ledger, settings: Settings) -> None:
    """Make the ledger know the configured targets, before anything is released.

    Raises:
        DatabaseAway: the database cannot be reached; a repeat is safe.
    """
    with ledger.transaction() as tx:
        tx.relay.follow_targets([(one.policy.name, one.policy.kind) for one in settings.targets])


@dataclass(slots=True)
class Relaying:
    """Makes the loop of the role `relay`."""

    settings: Settings
    checkpoint: Checkpoint
    telemetry: Telemetry
    stop: StopRequest

    def loop(self) -> Loop:
        """Return the loop.

        Raises:
            UsageError: as `crew_of` says.
        """
        ledger = open_ledger(self.settings, checkpoint=self.checkpoint)
        crew = crew_of(ledger, self.settings, self.checkpoint, self.telemetry)
        most_seconds = self.settings.loops.poll.total_seconds()
        idle_seconds = LOOK_SECONDS_LEAST

        def step() -> float:
            nonlocal idle_seconds
            done = crew.relayer.step()
            if done.did_something or done.full:
                idle_seconds = LOOK_SECONDS_LEAST
            if crew.relayer.under_way_count:
                crew.relayer.rest(done, self.stop, UNDER_WAY_SECONDS)
                return 0.0
            if done.did_something or done.full:
                return 0.0
            idle_seconds = min(idle_seconds * 2, most_seconds)
            return idle_seconds

        def close() -> None:
            try:
                crew.close()
            except DatabaseError as error:  # what was handed over is told once more after its lease
                told = DatabaseTrouble("relay", type(error).__name__, error.code)
                self.telemetry.tell(told)
            finally:
                ledger.close()

        return Loop("relay", step, close)


@dataclass(slots=True)
class Relayed:
    """What a one-shot did.

    Attributes:
        is_left: the time or the limit was used up before the events were.
        is_paused: people paused the relay as a whole.
        away: targets that cannot be reached, each with what is known of it.
        paused: targets that are paused, the same.
    """

    event_count: int = 0
    delivered_count: int = 0
    failed_count: int = 0
    dead_count: int = 0
    is_left: bool = False
    is_paused: bool = False
    away: dict[str, str] = field(default_factory=dict)
    paused: dict[str, str] = field(default_factory=dict)
    troubles: list[tuple[str, DatabaseError]] = field(default_factory=list)
    _reasons: dict[str, str] = field(default_factory=dict)

    def add(self, done: RelayPass) -> None:
        """Add one pass."""
        self.event_count += done.routed.event_count
        self.delivered_count += done.delivered_count
        self.failed_count += done.failed_count
        self.dead_count += done.dead_count
        self.is_paused = done.routed.paused
        self.troubles = done.troubles
        self._reasons |= done.away
        for name, claimed in done.claimed.items():
            self.away.pop(name, None)
            self.paused.pop(name, None)
            if claimed.end is ClaimEnd.AWAY:
                reason = f"{self._reasons[name]}; " if name in self._reasons else ""
                self.away[name] = _until(f"{reason}it takes nothing", claimed.until)
            elif claimed.end is ClaimEnd.PAUSED and not self.is_paused:
                self.paused[name] = _until("it is paused", claimed.until)


def _until(word: str, until: datetime | None) -> str:
    return word if until is None else f"{word} until {until:%Y-%m-%d %H:%M:%S} UTC"


def relay_once(
    settings: Settings,
    checkpoint: Checkpoint,
    telemetry: Telemetry,
    stop: StopRequest,
    *,
    limit: int | None = None,
    seconds: float | None = None,
) -> Relayed:
    """Route and hand over what is owed now, in this process: the one-shot of a crontab.

    Events that are tried again later are left for later.

    Args:
        limit: begin no pass after so many events arrived; None for no bound.
        seconds: begin no pass after so long; None for no bound.
    """
    clock = SystemClock()
    began = clock.monotonic()
    done = Relayed()

    def is_over() -> bool:
        late = seconds is not None and clock.monotonic() - began >= seconds
        return late or stop.stopping or (limit is not None and done.delivered_count >= limit)

    with _opened(settings, checkpoint, telemetry) as (ledger, relayer):
        follow_targets(ledger, settings)
        while True:
            done.is_left = is_over()
            if done.is_left:
                return done
            this = relayer.step()
            done.add(this)
            if relayer.under_way_count:
                relayer.rest(this, stop, UNDER_WAY_SECONDS)
            elif not (this.did_something or this.full):
                return done


@contextmanager
def _opened(
    settings: Settings, checkpoint: Checkpoint, telemetry: Telemetry
) -> Iterator[tuple[Ledger, Relayer]]:
    ledger = open_ledger(settings, checkpoint=checkpoint, create=False, considerate=False)
    try:
        crew = crew_of(ledger, settings, checkpoint, telemetry)
        try:
            yield ledger, crew.relayer
        finally:
            crew.close()
    finally:
        ledger.close()
