"""What follows each answer of a target, and what a target's failing does to it and to others."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards
from freehold.application.relaying.forwarding import ClaimEnd
from freehold.application.relaying.routing import route_once
from freehold.domain.errors import TargetAway
from freehold.domain.pauses import Pause, Role
from freehold.ports.target import Answer, Reception
from freehold.ports.telemetry import TargetUnreachable
from freehold.testing.postbox import accepting
from tests.relay.room import BUSY, SECOND, Room, Script, policy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from freehold.ports.target import Parcel
    from tests.behaviour.place import Place

REFUSED = Answer(Reception.REFUSED, "400", "bad")
GONE = Answer(Reception.GONE, "410", "go away")
AWAY = TargetAway("refused")


@pytest.fixture
def room(lite: Place, tmp_path: Path) -> Room:
    return Room(lite, tmp_path, [policy("shop"), policy("bus")]).open()


@pytest.fixture
def any_room(one_place: Place, tmp_path: Path) -> Room:
    """The same on either database, for what spans several statements."""
    return Room(one_place, tmp_path, [policy("shop"), policy("bus")]).open()


def test_each_target_gets_what_it_wants_and_the_event_leaves_with_the_last(any_room: Room) -> None:
    room = any_room
    room.policies = [policy("shop", types=frozenset({"hold.expired.v1"})), policy("bus")]
    room.add([1, 2])
    room.add([3], "hold.skipped.v1")
    done = room.relayer().run_until_idle()
    assert (done.routed.event_count, done.routed.forward_count) == (3, 5)
    assert (done.delivered_count, done.failed_count) == (5, 0)
    assert [sum(room.box(name).arrived().values()) for name in ("shop", "bus")] == [2, 3]
    assert room.events() == {"published": 3}
    assert set(room.told.names()) == {"events forwarded"}


@pytest.mark.parametrize(("answer", "kind"), [(BUSY, "transient"), (REFUSED, "broken")])
def test_failures_are_tried_again_and_then_dead(room: Room, answer: Answer, kind: str) -> None:
    room.policies = [policy()]
    room.add([1])
    relayer = room.relayer(shop=Script([answer]))
    for attempt, wait in ((1, 10), (2, 30)):
        assert relayer.run_until_idle().failed_count == 1
        assert room.forwards() == [("retrying", attempt)]
        room.place.advance((wait - 1) * SECOND)
        assert not relayer.run_until_idle().did_something
        room.place.advance(SECOND)
    assert relayer.run_until_idle().dead_count == 1
    assert room.forwards("state, attempt, failure_class") == [("dead", 3, kind)]
    found = room.place.table("forward_attempt", "attempt, failure_class, code")
    assert found == [(number, kind, answer.code) for number in (1, 2, 3)]
    assert room.events() == {"pending": 1}


@pytest.mark.parametrize(("asked", "seconds"), [(40.0, 40), (86_400.0, 3_600), (1.0, 10)])
def test_what_a_target_asks_for_is_kept_within_an_hour(
    room: Room, asked: float, seconds: int
) -> None:
    room.policies = [policy()]
    room.add([1, 2])
    relayer = room.relayer(shop=Script([Answer(Reception.TRANSIENT, "429", "", asked), BUSY]))
    relayer.run_until_idle()
    room.place.advance((seconds - 1) * SECOND)
    assert not relayer.run_until_idle().did_something
    room.place.advance(SECOND)
    assert relayer.run_until_idle().failed_count == 2


def test_a_target_with_a_limit_is_left_alone_and_what_was_not_sent_spends_nothing(
    room: Room,
) -> None:
    room.policies = [policy()]
    room.add([1, 2, 3])
    asked = Answer(Reception.TRANSIENT, "429", "", 40.0)
    mixed = [Answer(Reception.ACCEPTED), asked, Answer(Reception.UNSENT)]
    batches: list[int] = []

    def limited(parcels: Sequence[Parcel]) -> Sequence[Answer]:
        batches.append(len(parcels))
        return mixed if len(batches) == 1 else accepting(parcels)

    relayer = room.relayer(shop=limited)
    relayer.run_until_idle()
    assert room.forwards() == [("delivered", 1), ("retrying", 1), ("ready", 0)]
    room.place.advance(39 * SECOND)
    assert relayer.step().claimed["shop"].end is ClaimEnd.AWAY
    room.place.advance(SECOND)
    assert relayer.run_until_idle().delivered_count == 2
    assert batches == [3, 1, 1]


@pytest.mark.parametrize("answer", [BUSY, REFUSED])
def test_a_target_that_takes_nothing_is_not_thrown_its_backlog(room: Room, answer: Answer) -> None:
    room.policies = [policy()]
    room.add(range(600))
    script = Script([answer])
    relayer = room.relayer(shop=script)
    seconds_between = []
    for _ in range(8):
        asked_count, seconds = script.asked_count, 0
        while script.asked_count == asked_count:
            room.place.advance(SECOND)
            relayer.run_until_idle()
            seconds += 1
        seconds_between.append(seconds)
    assert seconds_between == [1, 1, 1, 2, 4, 8, 16, 32]
    untouched_count = room.forwards().count(("ready", 0))
    assert untouched_count == 600 - len(room.place.table("forward_attempt", "event_id")) > 0
    script.lines = []
    room.place.advance(timedelta(minutes=1))
    assert relayer.run_until_idle().delivered_count == 600


def test_an_event_at_which_the_targets_code_raises_costs_no_other_an_attempt(room: Room) -> None:
    room.policies = [policy()]
    room.add(range(1, 14))

    def touchy(parcels: Sequence[Parcel]) -> Sequence[Answer]:
        if any(b'"key":"5"' in one.body for one in parcels):
            raise ZeroDivisionError
        return accepting(parcels)

    done = room.relayer(shop=touchy).run_until_idle()
    assert (done.delivered_count, done.failed_count) == (12, 1)
    assert room.forwards()[4] == ("retrying", 1)


def test_a_target_that_leaves_while_its_code_raises_spends_only_what_was_tried(room: Room) -> None:
    room.policies = [policy()]
    room.add(range(1, 5))
    script = Script([ZeroDivisionError(), ZeroDivisionError(), ZeroDivisionError(), AWAY])
    ledger = room.open().place.ledger()
    route_once(ledger, room.policies, Onwards())
    room.forwarder(ledger, answers=script).step()
    assert room.forwards() == [("retrying", 1), *[("ready", 0)] * 3]


def test_a_target_whose_code_raises_at_everything_is_not_asked_for_ever(room: Room) -> None:
    room.policies = [policy()]
    room.add(range(100))
    script = Script([ZeroDivisionError()])
    ledger = room.open().place.ledger()
    route_once(ledger, room.policies, Onwards())
    room.forwarder(ledger, answers=script).step()
    assert script.asked_count <= 3 * (100).bit_length()
    assert room.forwards() == [("retrying", 1)] * 100


def test_one_event_that_nobody_takes_delays_no_other(room: Room) -> None:
    room.policies = [policy()]
    relayer = room.relayer(shop=Script([BUSY]))
    for number in range(3):
        room.add([number])
        relayer.run_until_idle()
    assert room.forwards() == [("retrying", 1)] * 3


def test_a_target_that_is_away_spends_nobodys_attempt_and_is_probed(room: Room) -> None:
    room.policies = [policy()]
    room.add(range(1, 6))
    script = Script([AWAY])
    relayer = room.relayer(shop=script)
    for number, wait in enumerate((1, 2, 4, 8, 16, 32, 60, 60), 1):
        assert not relayer.run_until_idle().did_something or number == 1
        assert script.asked_count == number
        room.place.advance((wait - 1) * SECOND)
        assert relayer.step().claimed["shop"].end is ClaimEnd.AWAY
        room.place.advance(SECOND)
    assert room.forwards() == [("ready", 0)] * 5
    assert room.place.table("forward_attempt", "attempt") == []
    script.lines = []
    assert relayer.run_until_idle().delivered_count == 5
    assert room.place.table("target", "failure_count, probe_at")[0] == (0, None)
    told = [one.reason for one in room.told.events if isinstance(one, TargetUnreachable)]
    assert set(told) == {"refused"}


def test_a_target_that_fails_for_long_is_paused_and_told_of(any_room: Room) -> None:
    room = any_room
    room.policies = [policy("shop", pause_after=timedelta(minutes=5)), policy("bus")]
    room.add([1])
    relayer = room.relayer(shop=Script([AWAY]))
    relayer.run_until_idle()
    room.place.advance(timedelta(minutes=5))
    done = relayer.run_until_idle()
    assert done.claimed["shop"].end is ClaimEnd.PAUSED
    assert "target paused" in room.told.names()
    (row,) = room.place.table("target_pause", "target, paused_by, ended_at")
    assert row == ("shop", None, None)
    about = [
        json.loads(body)
        for bodies in room.box("bus").bodies().values()
        for body in bodies
        if b"target.paused.v1" in body
    ]
    assert [one["subject"] for one in about] == ["shop"]
    assert about[0]["data"]["reason"].endswith("refused")
    assert about[0]["source"] == "/freehold/targets/shop"
    room.place.advance(timedelta(days=400))
    room.relayer().run_until_idle()
    assert room.events() == {"pending": 2}  # the hold's, and its own pause
    with room.place.ledger().transaction() as tx:
        tx.relay.resume("shop", "ann")
    assert room.relayer().run_until_idle().delivered_count == 2
    assert room.events() == {"published": 2}


def test_a_target_that_fails_and_delivers_in_turn_is_not_paused(room: Room) -> None:
    room.policies = [policy("shop", pause_after=timedelta(seconds=30))]
    script = Script([BUSY])
    relayer = room.relayer(shop=script)
    for number in range(1, 5):
        room.add([number])
        script.lines = [BUSY] if number % 2 else []
        relayer.run_until_idle()
        room.place.advance(20 * SECOND)
    assert room.place.table("target_pause", "target") == []


def test_a_target_that_is_gone_is_paused_at_once(room: Room) -> None:
    room.policies = [policy()]
    room.add([1, 2])
    done = room.relayer(shop=Script([GONE])).run_until_idle()
    assert done.claimed["shop"].end is ClaimEnd.PAUSED
    assert room.forwards()[:2] == [("ready", 0)] * 2
    (row,) = room.place.table("target_pause", "reason")
    assert row == ("it wants no more events: 410: go away",)


def test_a_pause_with_an_end_ends_by_itself(room: Room) -> None:
    room.policies = [policy()]
    room.add([1])
    with room.place.ledger().transaction() as tx:
        tx.relay.pause("shop", "moving", by="ann", until=tx.now + 60 * SECOND)
    relayer = room.relayer()
    assert relayer.run_until_idle().claimed["shop"].until is not None
    room.place.advance(60 * SECOND)
    assert relayer.run_until_idle().delivered_count == 1
    assert room.place.table("target_pause", "ended_by, ended_at is null")[0][0] is None
    assert "target resumed" in room.told.names()


def test_a_paused_relay_neither_routes_nor_delivers(room: Room) -> None:
    room.add([1])
    relayer = room.relayer()
    assert relayer.run_until_idle().delivered_count == 2
    room.add([2])
    with room.place.ledger().transaction() as tx:
        until = tx.now + 60 * SECOND
        tx.pauses.begin(Pause(Role.RELAY, None, None, "ann", "why", tx.now, until))
    done = relayer.run_until_idle()
    assert done.routed.paused
    assert {one.end for one in done.claimed.values()} == {ClaimEnd.PAUSED}
    room.place.advance(60 * SECOND)
    assert relayer.run_until_idle().delivered_count == 2


def test_one_that_kills_its_relay_each_time_is_dead_in_the_end(room: Room) -> None:
    room.policies = [policy()]
    room.open()
    room.add([1])
    ledger = room.place.ledger()
    route_once(ledger, room.policies, Onwards())
    forwarder = room.forwarder(ledger)
    for _ in range(3):
        assert len(forwarder.claim().forwards) == 1
        room.place.advance(60 * SECOND)
        with ledger.transaction() as tx:
            assert tx.relay.take_back(9) == 1
    claimed = forwarder.claim()
    assert (claimed.end, claimed.forwards) == (ClaimEnd.CLAIMED, [])
    assert room.forwards("state, attempt") == [("dead", 3)]
    assert room.box().arrived() == {}


def test_whatever_a_target_does_instead_of_answering_is_an_answer(room: Room) -> None:
    room.policies = [policy()]
    room.add([1])
    relayer = room.relayer(shop=Script([KeyError("x")]))
    assert relayer.run_until_idle().failed_count == 1
    room.place.advance(10 * SECOND)
    relayer = room.relayer(shop=lambda _: [])
    assert relayer.run_until_idle().failed_count == 1
    found = room.place.table("forward_attempt", "attempt, code, reason")
    words = ("broken: KeyError", "broken: 0 answers to 1 parcels")
    assert found == [(number, "broken", said) for number, said in enumerate(words, 1)]


def test_a_target_that_is_not_followed_gets_nothing(room: Room) -> None:
    room.add([1])
    room.policies = [policy("stranger")]
    claimed = room.forwarder(room.place.ledger(), "stranger").claim()
    assert claimed.end is ClaimEnd.IDLE
