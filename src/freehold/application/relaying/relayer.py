"""The relay over all targets: SQL in one thread, the hand-overs of each target in its own.

*Invariants*: one connection to the ledger, whatever the number of targets; each target has at most
one batch under way, so that a slow one keeps nobody else waiting; what was heard is settled before
anything else of that target is claimed, also when the database was away meanwhile.
*Not here*: making threads and connections (the entry point).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Protocol

from freehold.application.relaying.forwarding import Claimed, Forwarded, Forwarder
from freehold.application.relaying.hearing import Heard
from freehold.application.relaying.routing import Routed, route_once
from freehold.domain.errors import DatabaseAway, DatabaseError
from freehold.ports.ledger import Ledger
from freehold.ports.relay import ClaimedForward
from freehold.ports.system import Checkpoint, Pause
from freehold.ports.telemetry import UNHEARD, DatabaseTrouble, Telemetry


class Hand(Protocol):
    """A thread that one target belongs to; an executor with one worker is one."""

    def submit(self, call: Callable[[], Heard], /) -> Future[Heard]:
        """Begin the call, and return what comes of it."""
        ...


class OwnHand:
    """The calling thread itself: every hand-over is waited for; implements `Hand`."""

    def submit(self, call: Callable[[], Heard], /) -> Future[Heard]:
        """Do the call."""
        done: Future[Heard] = Future()
        done.set_result(call())
        return done


@dataclass(slots=True)
class Lane:
    """One target's way through the relay.

    Attributes:
        under_way: the batch in hand, and what comes of it.
    """

    forwarder: Forwarder
    hand: Hand = field(default_factory=OwnHand)
    under_way: tuple[Sequence[ClaimedForward], Future[Heard]] | None = None

    def begin(self) -> Claimed:
        """Claim a batch and begin to hand it over."""
        claimed = self.forwarder.claim()
        forwards = claimed.forwards
        if forwards:
            heard = self.hand.submit(lambda: self.forwarder.deliver(forwards))
            self.under_way = forwards, heard
        return claimed

    def end(self) -> Forwarded | None:
        """Settle the batch in hand if it was answered; None while it was not."""
        if self.under_way is None:
            return Forwarded()
        forwards, heard = self.under_way
        if not heard.done():
            return None
        forwarded = self.forwarder.settle(forwards, heard.result())
        self.under_way = None
        return forwarded


@dataclass(slots=True)
class RelayPass:
    """What one pass over all targets did.

    Attributes:
        full: there may be more to do at once.
        claimed: what the last look at each target brought, by its name.
        away: why a target that was asked could be handed nothing, by its name.
        troubles: targets that the database refused, each with its error.
    """

    routed: Routed = field(default_factory=Routed)
    delivered_count: int = 0
    failed_count: int = 0
    dead_count: int = 0
    full: bool = False
    claimed: dict[str, Claimed] = field(default_factory=dict)
    away: dict[str, str] = field(default_factory=dict)
    troubles: list[tuple[str, DatabaseError]] = field(default_factory=list)

    @property
    def did_something(self) -> bool:
        """Tell whether anything moved on."""
        counts = (self.delivered_count, self.failed_count, self.dead_count)
        return bool(self.routed.event_count or any(counts))


@dataclass(slots=True)
class Relayer:
    """Relays on one ledger connection; belongs to one thread."""

    ledger: Ledger
    lanes: Sequence[Lane]
    checkpoint: Checkpoint
    telemetry: Telemetry = UNHEARD

    def step(self) -> RelayPass:
        """Route a batch; settle what was answered, and begin a batch for each target at rest.

        Again: goes on with what is left.

        Raises:
            DatabaseAway: the database cannot be reached; what was heard is kept for the next step.
        """
        done = RelayPass()
        policies = [lane.forwarder.policy for lane in self.lanes]

        def route() -> None:
            done.routed = route_once(self.ledger, policies, self.checkpoint)
            done.full = done.routed.full

        self._take("routing", route, done)
        for lane in self.lanes:
            self._take(lane.forwarder.policy.name, lambda lane=lane: _serve(lane, done), done)  # type: ignore[misc]
        return done

    @property
    def under_way_count(self) -> int:
        """Return how many targets have a batch under way."""
        return sum(lane.under_way is not None for lane in self.lanes)

    def rest(self, done: RelayPass, pause: Pause, seconds: float) -> None:
        """Wait until a hand-over ends, the process is asked to stop, or so long after a pass.

        While more events want a route there is no rest: who waits behind them waits for no target.
        """
        if done.routed.full:
            return
        under_way = [lane.under_way[1] for lane in self.lanes if lane.under_way is not None]
        if under_way:
            wait(under_way, timeout=seconds, return_when=FIRST_COMPLETED)
        else:
            pause.wait(seconds)

    def run_until_idle(self) -> RelayPass:
        """Go on until nothing is to be routed or handed over now; return the last pass.

        The counts are those of all passes.
        """
        total = RelayPass()
        while True:
            done = self.step()
            _add(total, done)
            under_way = [lane.under_way[1] for lane in self.lanes if lane.under_way is not None]
            if under_way:
                wait(under_way, return_when=FIRST_COMPLETED)
            elif not done.did_something and not done.full:
                return total

    def finish(self) -> None:
        """Wait for what is under way, and settle it; claims nothing any more.

        Crash: what was not settled is taken back once its lease is over, and told once more.

        Raises:
            DatabaseAway: the database cannot be reached; a repeat is safe.
        """
        for lane in self.lanes:
            if lane.under_way is not None:
                wait([lane.under_way[1]])
                lane.end()

    def _take(self, name: str, step: Callable[[], None], done: RelayPass) -> None:
        """Take one step; what it is refused is noted, and the next one taken."""
        try:
            step()
        except DatabaseAway:
            raise
        except DatabaseError as error:
            done.troubles.append((name, error))
            told = DatabaseTrouble(f"relay, {name}", type(error).__name__, error.code)
            self.telemetry.tell(told)


def _serve(lane: Lane, done: RelayPass) -> None:
    """Settle a lane's batch if it was answered, and begin the next."""
    forwarded = lane.end()
    if forwarded is None:
        return
    done.delivered_count += forwarded.delivered_count
    done.failed_count += forwarded.failed_count
    done.dead_count += forwarded.dead_count
    name = lane.forwarder.policy.name
    if forwarded.away is not None:
        done.away[name] = forwarded.away
    claimed = done.claimed[name] = lane.begin()
    done.full = done.full or claimed.full or forwarded.paused  # the pause's event is to be routed


def _add(total: RelayPass, done: RelayPass) -> None:
    total.routed = Routed(
        total.routed.event_count + done.routed.event_count,
        total.routed.forward_count + done.routed.forward_count,
        paused=done.routed.paused,
        unknown=done.routed.unknown,
    )
    total.delivered_count += done.delivered_count
    total.failed_count += done.failed_count
    total.dead_count += done.dead_count
    total.claimed |= done.claimed
    total.away |= done.away
    total.troubles = done.troubles
