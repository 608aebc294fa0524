"""Senders that are killed, stopped, cut off and run side by side: I19 to I23 hold all the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from freehold.application.audit import audit
from freehold.domain.errors import DatabaseAway
from freehold.ports.audit import Check
from freehold.ports.system import Boundary
from freehold.testing.crash import CRASHED, KillAt, Recorder, StopAt, WaitAt
from freehold.testing.forking import Wire, fork, run
from freehold.testing.mailbox import Fault
from tests.conftest import DATABASES
from tests.contract.grounds import migrate
from tests.crash.conftest import MEMORY
from tests.proxy import CuttingProxy
from tests.reports.sending_room import (
    CLASSES,
    LEASE_SECONDS,
    LOOKS,
    NONE,
    ONWARDS,
    REFUSED,
    REPLAYS,
    Room,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from freehold.domain.sending import TransportPromise
    from freehold.ports.system import Checkpoint
    from freehold.testing.clock import SetClock
    from tests.servers import PostgresServer, Servers

pytestmark = pytest.mark.timeout(method="signal")  # the other kind is a thread, and forks want one
EVERY = 9  # the sample of `make test`: each so-manieth reach, another one for each class
OVER = timedelta(seconds=LEASE_SECONDS)
MANY = {f"tenant {n}": [f"{n}.{k}@x" for k in range(5)] for n in range(12)}
Some = TypeVar("Some")


NEWER = [
    pytest.param(*one.values, id=one.id, marks=[*one.marks, pytest.mark.proof])
    for one in DATABASES[2:]
]


@pytest.fixture(scope="module", params=[*DATABASES[:2], *NEWER])
def place(request: pytest.FixtureRequest, servers: Servers) -> Iterator[tuple[str, Path]]:
    """A migrated database of every kind in turn, and a folder in memory: kills lose nothing of it."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        url = f"sqlite:///{folder}/freehold.db"
        if request.param != "sqlite":
            url = servers.read(request.param).create_database()
        migrate(url)
        yield url, Path(folder)


@pytest.fixture
def room(place: tuple[str, Path]) -> Iterator[Room]:
    """A room with mails, on every database in turn."""
    room = Room(*place)
    room.fill()
    yield room
    room.close()


def alone(step: Callable[[], Some]) -> Some:
    """Do a step in a process of its own, which connects by itself."""
    value: Some = run(lambda _: step()).value
    return value


# ------------------------------------------------------------------------------- killed anywhere


def trace_of(room: Room) -> int:
    """Return how many boundaries a run reaches that nobody kills."""

    def whole() -> int:
        room.fill()
        room.trouble()
        recorder = Recorder()
        room.run(recorder)
        return len(recorder.reached)

    return alone(whole)


def wrong_when_killed(room: Room, *reaches: int) -> list[str]:
    """Run from the beginning, killed at a reach and again after the next; return what is wrong."""

    def victim(wire: Wire, nth: int, *, is_first: bool) -> None:
        if is_first:
            room.fill()
            room.trouble()
        else:
            room.clock.instant += OVER
        room.run(KillAt(nth, tell=wire.tell))

    places = []
    for number, nth in enumerate(reaches):
        ending = run(partial(victim, nth=nth, is_first=not number))
        places.append(str(ending.said(CRASHED)))
    wrong = alone(lambda: recovered(room))
    return [f"{room.promise.name}, killed at {reaches} {places}: {one}" for one in wrong]


def recovered(room: Room) -> list[str]:
    """Send the rest, once every lease is over; return what is wrong then."""
    room.clock.instant += 2 * OVER
    room.run()
    wrong = room.wrong()
    doubts = {row[0] for row in room.rows(DOUBTS)}
    wanted = {one: due_state(one, room.promise, in_doubt=one in doubts) for one in room.states()}
    if room.states() != wanted:
        wrong.append(f"the sends are {room.states()}, and {doubts} were in doubt")
    wrong += audited(room)
    before, asked = room.everything(), len(room.mailbox.asked())
    room.clock.instant += timedelta(days=1)
    room.run()
    if room.everything() != before or len(room.mailbox.asked()) != asked:
        wrong.append("I30: running again changed something")
    return wrong


DOUBTS = (
    "select s.recipient from {s}send_attempt a join {s}send s on s.id = a.send_id"
    " where a.outcome = 'unknown' and a.kind <> 'look-up'"
)


def audited(room: Room) -> list[str]:
    """Return what the product's own audit has to say of sending."""
    room.clock.instant += timedelta(hours=2)
    results = audit(room.ledger(), [])
    return [
        f"{one.check}: {one.violations or one.not_asked}"
        for one in results
        if one.check in OF_SENDING and not one.clean
    ]


def due_state(recipient: str, promise: TransportPromise, *, in_doubt: bool) -> str:
    """Return where a send must be at the end."""
    if in_doubt and (promise == NONE or (recipient == REFUSED and promise != LOOKS)):
        return "review"
    return "refused" if recipient == REFUSED else "accepted"


@pytest.mark.parametrize("name", CLASSES)
def test_killed_at_some_boundaries(room: Room, name: str) -> None:
    room = replace(room, promise=CLASSES[name])
    first = 1 + list(CLASSES).index(name)
    reaches = range(
        first, trace_of(room) + 1, EVERY if room.url.startswith("sqlite") else 4 * EVERY
    )
    assert not [wrong for nth in reaches for wrong in wrong_when_killed(room, nth)]


@pytest.mark.proof
@pytest.mark.parametrize("name", CLASSES)
def test_killed_at_every_boundary(room: Room, name: str) -> None:
    room = replace(room, promise=CLASSES[name])
    count = trace_of(room)
    assert count > 40
    wrong = [one for nth in range(1, count + 1) for one in wrong_when_killed(room, nth)]
    pairs = [(nth, again) for nth in range(2, count, 5) for again in (2, 5, 9)]
    wrong += [one for pair in pairs for one in wrong_when_killed(room, *pair)]
    assert not wrong


# ------------------------------------------------------------------------------ stopped for long


@dataclass(slots=True)
class StopForLong(StopAt):
    """Stops the process; when it goes on, its clocks say that its lease is over."""

    clock: SetClock | None = None

    def act(self, boundary: Boundary) -> None:
        StopAt.act(self, boundary)
        assert self.clock is not None
        self.clock.instant += 3 * OVER


OF_SENDING = (
    *(Check.MAILED_ONCE, Check.SENDS_AGREE, Check.MAILS_UNCHANGED, Check.SENDS_MOVE),
    Check.FACTS_UNCHANGED,
)
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
    for boundary in STANDING_STILL if room.url.startswith("sqlite") else STANDING_STILL[1:3]:
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


@pytest.mark.proof
@pytest.mark.parametrize(
    "lose", [CuttingProxy.lose_commit, CuttingProxy.lose_commit_answer], ids=["commit", "answer"]
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
@pytest.mark.parametrize("boundary", [Boundary.SEND_BEGUN, Boundary.PROVIDER_ANSWERED])
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
