"""Senders that are stopped, cut off and run side by side: I19 to I23 hold all the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from freehold.domain.errors import DatabaseAway
from freehold.ports.system import Boundary
from freehold.testing.crash import CRASHED, StopAt, WaitAt
from freehold.testing.forking import Wire, fork
from freehold.testing.mailbox import Fault
from tests.conftest import POSTGRES
from tests.contract.grounds import migrate
from tests.proxy import CuttingProxy
from tests.reports.sending_room import IS_LONG, LOOKS, NONE, ONWARDS, OVER, REPLAYS, Room, alone

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from freehold.ports.system import Checkpoint
    from freehold.testing.clock import SetClock
    from tests.servers import PostgresServer

pytestmark = pytest.mark.timeout(method="signal")  # the other kind is a thread, and forks want one
MANY = {f"tenant {n}": [f"{n}.{k}@x" for k in range(5)] for n in range(12)}


# ------------------------------------------------------------------------------ stopped for long


@dataclass(slots=True)
class StopForLong(StopAt):
    """Stops the process; when it goes on, its clocks say that its lease is over."""

    clock: SetClock | None = None

    def act(self, boundary: Boundary) -> None:
        StopAt.act(self, boundary)
        assert self.clock is not None
        self.clock.instant += 3 * OVER


STANDING_STILL = (
    Boundary.SEND_CLAIMED,
    Boundary.SEND_BEGUN,
    Boundary.PROVIDER_ANSWERED,
    Boundary.SEND_SETTLED,
)


@pytest.mark.parametrize("promise", [NONE, REPLAYS, LOOKS], ids=lambda one: one.name)
def test_a_sender_that_stood_still_changes_nothing(room: Room, promise: Any) -> None:
    room = replace(room, promise=promise)
    wrong = []
    boundaries = STANDING_STILL if room.url.startswith("sqlite") else STANDING_STILL[1:3]
    for boundary in boundaries:
        if (boundary, promise) == (Boundary.PROVIDER_ANSWERED, NONE):
            continue  # what it heard ends the review: the next test
        alone(room.fill)
        wrong += [f"{boundary}: {one}" for one in wrong_when_stopped(room, boundary)]
    assert not wrong


def wrong_when_stopped(room: Room, boundary: Boundary) -> list[str]:
    """Stop one sender beyond its lease, let another one send all, and let the first go on."""

    def other() -> list[Any]:
        room.clock.instant += 2 * OVER
        room.run()
        return room.states_and_reports()

    second = 1 if boundary is Boundary.SEND_CLAIMED else 2
    with fork(
        lambda wire: room.run(StopForLong(second, boundary, wire.tell, clock=room.clock))
    ) as it:
        it.wait_until_stopped()
        before = alone(other)
        it.resume()
        it.end()
    after = alone(room.states_and_reports)
    wrong = alone(room.wrong)
    return [*wrong, *([f"{before} became {after}"] if before != after else [])]


def test_a_late_acceptance_ends_a_review(room: Room) -> None:
    """Nobody needs to ask a person what the sender itself heard, late."""

    def other() -> dict[str, str]:
        room.clock.instant += 2 * OVER
        room.run()
        return room.states()

    stops = StopForLong(2, Boundary.PROVIDER_ANSWERED, clock=room.clock)
    with fork(lambda _: room.run(stops)) as victim:
        victim.wait_until_stopped()
        assert Counter(alone(other).values()) == {"accepted": 5, "review": 1}
        victim.resume()
        victim.end()
    assert set(alone(room.states).values()) == {"accepted"}
    assert set(alone(room.report_states).values()) == {"sent"}
    assert alone(room.wrong) == []


def test_a_late_acceptance_is_used_by_the_next(room: Room) -> None:
    """Between two senders that take the send from each other, the trail has the answer."""
    room = replace(room, promise=LOOKS)

    def take_back() -> None:
        room.clock.instant += 2 * OVER
        room.mailbox.play(*[Fault.TRANSIENT] * 9, what="look-up")
        room.send()

    with fork(
        lambda wire: room.run(
            StopForLong(1, Boundary.PROVIDER_ANSWERED, wire.tell, clock=room.clock)
        )
    ) as victim:
        victim.wait_until_stopped()
        alone(take_back)
        victim.resume()
        victim.end()
    assert alone(lambda: recovered_states(room)) == {"accepted": 6}
    assert alone(room.wrong) == []


def recovered_states(room: Room) -> dict[str, int]:
    room.clock.instant += timedelta(minutes=20)
    room.run()
    return Counter(room.states().values())


# -------------------------------------------------------------------------------- side by side


@pytest.mark.parametrize("count", [2, 4])
def test_senders_side_by_side_send_each_mail_once(room: Room, count: int) -> None:
    room = replace(room, recipients=MANY)
    alone(room.fill)
    children = [fork(lambda wire: go_on(room, wire)) for _ in range(count)]
    for child in children:
        child.wait_for("ready")
    for child in children:
        child.go_on()
    shares = []
    for child in children:
        with child:
            shares.append(child.end().value)
    assert sum(shares) == 60
    assert alone(room.wrong) == []
    assert alone(lambda: len(room.mailbox.asked())) == 60
    assert set(alone(room.report_states).values()) == {"sent"}


def go_on(room: Room, wire: Wire) -> int:
    """Send whatever is there, at most ten at a time, from the word on."""
    sender = room.sender()
    wire.tell("ready")
    wire.wait()
    total = 0
    while count := sum(sender.send(10).counts.values()):
        total += count
    return total


# ------------------------------------------------------------------------------ a lost database


@pytest.mark.parametrize("is_kept", [True, False], ids=["answer lost", "commit lost"])
def test_whatever_commit_is_lost_nothing_is_in_doubt(room: Room, *, is_kept: bool) -> None:
    """The sender lives on, so it knows what it heard, and what it never handed over."""
    every = 1 if room.url.startswith("sqlite") else 9
    wrong, nth = [], 1
    while True:
        room.fill()
        room.trouble()
        session = room.session()
        commit, count = session.commit, iter(range(1, 999))

        def losing(commit: Any = commit, count: Any = count, nth: int = nth) -> None:
            number = next(count)
            if number != nth or is_kept:
                commit()
            if number == nth:
                raise DatabaseAway("the answer was lost")

        session.commit = losing  # type: ignore[method-assign]
        lost = sent_in_spite(room, session)
        states = Counter(room.states().values())
        wrong += [f"commit {nth}: {one}" for one in room.wrong()]
        wrong += [] if states == {"accepted": 5, "refused": 1} else [f"commit {nth}: {states}"]
        room.close()
        if not lost:
            break
        nth += every
    assert nth > 10
    assert not wrong


def sent_in_spite(room: Room, session: Any, checkpoint: Checkpoint = ONWARDS) -> int:
    """Send until all is done, with one sender, through lost connections; return how many."""
    ledger, lost = room.ledger(checkpoint, session), 0
    sender = room.sender(checkpoint, ledger)
    for _ in range(60):
        try:
            next_at = sender.send(100).next_at
        except DatabaseAway:
            lost += 1
            continue
        if next_at is None:
            return lost
        room.clock.instant = max(room.clock.instant, next_at)
    raise AssertionError("it never ended")


def shared_out(*cases: object) -> list[Any]:
    """Give each PostgreSQL one of the cases; all of them at length."""
    return [
        pytest.param(*server.values, case, id=f"{server.id}-{name(case)}", marks=server.marks)
        for number, server in enumerate(POSTGRES)
        for case in (cases if IS_LONG else [cases[number % len(cases)]])
    ]


def name(case: Any) -> str:
    return str(getattr(case, "__name__", case))


@pytest.mark.proof
@pytest.mark.parametrize(
    ("postgres", "lose"),
    shared_out(CuttingProxy.lose_commit, CuttingProxy.lose_commit_answer),
    indirect=["postgres"],
)
def test_a_connection_cut_while_the_provider_answers(
    postgres_url: str, tmp_path: Path, lose: Callable[..., None]
) -> None:
    migrate(postgres_url)
    room = Room(postgres_url, tmp_path)
    room.fill()
    with CuttingProxy.for_url(postgres_url) as proxy:
        through = replace(room, url=proxy.url(postgres_url))
        lose(proxy, occurrence=4)
        lost = sent_in_spite(room, through.session())
        proxy.wait_until_cut()
        room.close()
    assert lost == 1
    assert room.states() == dict.fromkeys(room.states(), "accepted")
    assert not room.wrong()


@pytest.mark.proof
@pytest.mark.parametrize(
    ("postgres", "boundary"),
    shared_out(Boundary.SEND_BEGUN, Boundary.PROVIDER_ANSWERED),
    indirect=["postgres"],
)
def test_the_server_is_killed_while_the_provider_is_asked(
    postgres: PostgresServer, tmp_path: Path, boundary: Boundary
) -> None:
    """Nothing is in doubt: the sender outlives the server, and its lease still stands."""
    url = postgres.create_database()
    migrate(url)
    room = Room(url, tmp_path)
    alone(room.fill)
    with fork(lambda wire: outlive(room, wire, boundary)) as sender:
        sender.wait_for(CRASHED)
        postgres.kill9()
        postgres.start()
        sender.go_on()
        assert sender.end().value == 1
    assert set(alone(room.states).values()) == {"accepted"}
    assert alone(room.wrong) == []
    postgres.drop_database(url)


def outlive(room: Room, wire: Wire, boundary: Boundary) -> int:
    """Send all in spite of a lost connection, standing at a boundary until the word comes."""
    checkpoint = WaitAt(2, boundary, wire.tell, go=wire.wait)
    return sent_in_spite(room, room.session(), checkpoint)
