"""Senders that are killed at any boundary, and killed again while they recover: I19 to I23 hold.

`make proof` kills once at each reach, on SQLite in each class of transport and on PostgreSQL in
turns; FREEHOLD_PROOF=long kills everywhere in each class, on every database.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from functools import partial
from random import Random, SystemRandom
from typing import TYPE_CHECKING

import pytest

from freehold.application.audit import audit
from freehold.ports.audit import Check
from freehold.testing.crash import CRASHED, KillAt, Recorder
from freehold.testing.forking import Wire, run
from tests.conftest import DATABASES
from tests.reports.sending_room import CLASSES, IS_LONG, LOOKS, NONE, OVER, REFUSED, Room, alone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freehold.domain.sending import TransportPromise
    from freehold.ports.system import Boundary

pytestmark = pytest.mark.timeout(method="signal")  # the other kind is a thread, and forks want one
SEED_VARIABLE = "FREEHOLD_KILL_SEED"  # a run that failed has its seed in its output
SECOND_KILLS = 6  # pairs of kills of one class, each drawn
AGAIN_MAX = 12  # reaches of a recovery, of which one is killed
SWEPT = pytest.mark.parametrize(
    "sending_place", DATABASES if IS_LONG else DATABASES[:2], indirect=True, scope="module"
)


def trace_of(room: Room) -> Sequence[Boundary]:
    """Return the boundaries that a run reaches which nobody kills."""

    def whole() -> Sequence[Boundary]:
        room.fill()
        room.trouble()
        recorder = Recorder()
        room.run(recorder)
        return recorder.reached

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
    wrong += [] if places[0] != "None" else ["it was not killed"]
    return [f"{room.promise.name}, killed at {reaches} {places}: {one}" for one in wrong]


def recovered(room: Room) -> list[str]:
    """Send the rest, once every lease is over; return what is wrong then."""
    room.clock.instant += 2 * OVER
    room.run()
    wrong = room.wrong()
    doubts = {row[0] for row in room.rows(DOUBTS)}
    states = room.states()
    wanted = {one: due_state(one, room.promise, in_doubt=one in doubts) for one in states}
    if states != wanted:
        wrong.append(f"the sends are {states}, and {doubts} were in doubt")
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
OF_SENDING = (
    *(Check.MAILED_ONCE, Check.SENDS_AGREE, Check.MAILS_UNCHANGED, Check.SENDS_MOVE),
    Check.FACTS_UNCHANGED,
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


def drawn() -> Random:
    """Return the chance of this test, told where it fails."""
    seed = int(os.environ.get(SEED_VARIABLE) or SystemRandom().randrange(10**6))
    print(f"{SEED_VARIABLE}={seed}")  # noqa: T201 -- shown when the test fails
    return Random(seed)


def in_turn(room: Room, name: str) -> slice:
    """Return which of many cases are this class's: all on SQLite, else each is one class's."""
    is_each = room.url.startswith("sqlite")
    return slice(None) if is_each else slice(list(CLASSES).index(name), None, len(CLASSES))


@pytest.mark.parametrize("name", CLASSES)
def test_n20_killed_once_at_each_boundary(room: Room, name: str) -> None:
    room, chance = replace(room, promise=CLASSES[name]), drawn()
    trace = trace_of(room)
    kinds = sorted(set(trace))[in_turn(room, name)]
    reaches = [
        chance.choice([n for n, one in enumerate(trace, 1) if one == kind]) for kind in kinds
    ]
    assert reaches
    assert not [wrong for nth in reaches for wrong in wrong_when_killed(room, nth)]


@SWEPT
@pytest.mark.proof
@pytest.mark.parametrize("name", CLASSES)
def test_killed_at_every_reach(room: Room, name: str) -> None:
    room = replace(room, promise=CLASSES[name])
    count = len(trace_of(room))
    assert count > 40
    reaches = range(1, count + 1)
    due = reaches if IS_LONG else reaches[in_turn(room, name)]
    assert not [wrong for nth in due for wrong in wrong_when_killed(room, nth)]


@SWEPT
@pytest.mark.proof
@pytest.mark.parametrize("name", CLASSES)
def test_killed_again_while_recovering(room: Room, name: str) -> None:
    room, chance = replace(room, promise=CLASSES[name]), drawn()
    count = len(trace_of(room))
    pairs = [(nth, again) for nth in range(2, count + 1) for again in range(1, AGAIN_MAX + 1)]
    due = pairs if IS_LONG else chance.sample(pairs, SECOND_KILLS)[in_turn(room, name)]
    assert not [wrong for pair in due for wrong in wrong_when_killed(room, *pair)]
