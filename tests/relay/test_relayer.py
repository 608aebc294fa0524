"""Several targets beside each other: a slow one keeps nobody waiting, and nothing heard is lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards, StopRequest
from freehold.application.relaying import relayer as relaying
from freehold.application.relaying.relayer import Lane, Relayer
from freehold.application.relaying.routing import ROUTE_MOST
from freehold.domain.errors import DatabaseAway, DatabaseBusy
from freehold.testing.postbox import accepting
from tests.relay.room import Room, policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from freehold.adapters.sql.ledger import SqlLedger
    from freehold.ports.target import Answer, Parcel
    from tests.behaviour.place import Place

BOUND_SECONDS = 20  # within which a condition is met, or the test fails


@pytest.fixture
def room(one_place: Place, tmp_path: Path) -> Room:
    return Room(one_place, tmp_path, [policy("slow"), policy("fast")]).open()


@contextmanager
def threaded(room: Room, **answers: object) -> Iterator[Relayer]:
    """A relayer each of whose targets has a thread of its own."""
    ledger = room.place.ledger()
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        lanes = [
            Lane(room.forwarder(ledger, name, answers=answers.get(name, accepting)), hand)  # type: ignore[arg-type]
            for name, hand in (("slow", one), ("fast", two))
        ]
        yield Relayer(ledger, lanes, Onwards(), room.told)
    ledger.close()


def test_a_slow_target_keeps_no_other_waiting(room: Room) -> None:
    begun, release = threading.Event(), threading.Event()

    def stuck(parcels: Sequence[Parcel]) -> Sequence[Answer]:
        begun.set()
        assert release.wait(BOUND_SECONDS)
        return accepting(parcels)

    with threaded(room, slow=stuck) as relayer:
        try:
            room.add([1])
            relayer.step()
            assert begun.wait(BOUND_SECONDS)
            for number in range(2, 6):
                room.add([number])
                while room.box("fast").arrived().total() != number:
                    done = relayer.step()
                    relayer.rest(done, StopRequest(), 0.05)
            assert room.box("slow").arrived().total() == 0
            assert room.events() == {"pending": 5}
        finally:
            release.set()
        relayer.run_until_idle()
        relayer.finish()
    assert room.box("slow").arrived().total() == 5
    assert room.events() == {"published": 5}


def test_events_get_their_route_without_a_rest_while_a_target_is_slow(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, release, rests = threading.Event(), threading.Event(), list[float]()

    def stuck(parcels: Sequence[Parcel]) -> Sequence[Answer]:
        begun.set()
        assert release.wait(BOUND_SECONDS)
        return accepting(parcels)

    room.policies = [policy("slow"), policy("fast", types=frozenset({"hold.skipped.v1"}))]
    monkeypatch.setattr(relaying, "wait", lambda *_, timeout, **__: rests.append(timeout))
    with threaded(room, slow=stuck) as relayer:
        room.add([1])
        relayer.step()
        assert begun.wait(BOUND_SECONDS)
        batch = relayer.ledger.batch_limit or ROUTE_MOST
        room.add(range(2, 2 * batch + 3))
        try:
            routed = []
            for _ in range(3):
                done = relayer.step()
                routed.append(done.routed.event_count)
                relayer.rest(done, StopRequest(), 9.0)
        finally:
            release.set()
    assert routed == [batch, batch, 1]
    assert rests == [9.0]


def test_what_was_heard_is_settled_once_the_database_is_back(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers outlive the trouble: nothing is handed over twice because of it."""
    room.add([1, 2])
    ledger = room.place.ledger()
    relayer = room.relayer(ledger)
    relayer.step()
    assert relayer.under_way_count == 2
    troubles: list[Exception] = [DatabaseBusy("busy"), DatabaseAway("away")]
    _refusing(monkeypatch, ledger, troubles)
    with pytest.raises(DatabaseAway):
        relayer.step()
    assert room.told.names() == ["database"]  # of routing, which was asked to repeat
    assert relayer.under_way_count == 2
    monkeypatch.undo()
    assert relayer.run_until_idle().delivered_count == 4
    assert room.box("slow").arrived() == room.box("fast").arrived()
    assert set(room.box("slow").arrived().values()) == {1}
    assert room.events() == {"published": 2}


def _refusing(
    monkeypatch: pytest.MonkeyPatch, ledger: SqlLedger, troubles: list[Exception]
) -> None:
    """Let the next commits fail, each by its trouble."""
    commit = ledger.session.commit

    def fail() -> None:
        if troubles:
            raise troubles.pop(0)
        commit()

    monkeypatch.setattr(ledger.session, "commit", fail)


def test_an_end_settles_what_is_under_way_and_claims_no_more(room: Room) -> None:
    room.add(range(1, 4))
    with threaded(room) as relayer:
        relayer.step()
        room.add([9])
        relayer.finish()
    assert room.events() == {"published": 3, "pending": 1}
    assert relayer.under_way_count == 0


def test_who_was_told_of_fewer_targets_leaves_events_to_others(room: Room) -> None:
    """While a new configuration is rolled out, the old process must not decide who gets nothing."""
    room.policies = [policy("slow")]
    old = room.relayer()
    room.policies = [policy("slow"), policy("fast")]
    room.open()
    room.add([1])
    done = old.run_until_idle()
    assert done.routed.event_count == 0
    assert done.routed.unknown == ("fast",)
    assert room.events() == {"pending": 1}
    assert room.relayer().run_until_idle().delivered_count == 2


def test_nothing_is_owed_to_a_target_that_left(room: Room) -> None:
    """Or its events would wait for ever, with nobody to hand them over."""
    old = room.relayer()
    room.policies = [policy("fast")]
    room.open()
    room.add([1])
    assert old.run_until_idle().delivered_count == 1
    assert room.forwards("target, state") == [("fast", "delivered")]
    assert room.events() == {"published": 1}
