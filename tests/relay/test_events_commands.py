"""What people do about events by `freehold events ...`, between hand-overs of a real relay."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

from freehold.application.events import Chosen, EventActs
from freehold.application.review import Person
from freehold.domain.forwards import TargetKind, TargetPolicy
from freehold.ports.forwards import ReplayAsked
from tests.relay.desk import BUS, SHOP, WHO

if TYPE_CHECKING:
    from tests.relay.desk import Desk


# -------------------------------------------------------------------------------------- retry


def test_what_is_dead_is_retried_and_arrives(desk: Desk) -> None:
    desk.dead(1, 2, 3)
    found = desk.data("list", "--target", "shop", "--state", "dead")
    assert [(one["key"], one["forwards"][0]["reason"]) for one in found["events"]] == [
        (str(number), "attempts used up: 503: busy") for number in (1, 2, 3)
    ]
    first, second = (one["id"] for one in found["events"][:2])
    words = ("retry", "--target", "shop", "--id", first, "--id", second, *WHO)
    assert desk(*words).out == "retried 2 for shop\n"
    again = desk(*words)
    assert (again.code, again.out) == (2, "")
    assert again.sentence == (
        f"freehold: Events {first}, {second} are not dead at shop; "
        "`freehold events list --target shop --state dead` shows what is."
    )
    assert desk.acts() == [
        ("ann", "retry events", "target shop", WHO[3], "dead", f"asked for 2: {first}, {second}")
    ]
    desk.relay()
    assert sum(desk.arrived().values()) == 2
    assert desk.room.events() == {"published": 2, "pending": 1}
    seen = desk.data("show", first)
    assert seen["cloud_event"]["id"] == seen["event_key"]
    assert [(one["attempt"], one["code"]) for one in seen["failures"]] == [(1, "503")]
    assert [(one["target"], one["state"], one["replay_count"]) for one in seen["forwards"]] == [
        ("bus", "delivered", 0),
        ("shop", "delivered", 1),
    ]
    assert desk.data("show", seen["event_key"]) == seen


def test_all_that_is_dead_takes_its_count(desk: Desk) -> None:
    desk.dead(1, 2, 3)
    words = ("retry", "--target", "shop", "--all", *WHO)
    for more in ((), ("--confirm", "2")):
        ended = desk(*words, *more)
        assert ended.code == 6
        assert "3 events are stuck at shop" in ended.sentence
        assert "--confirm 3" in ended.sentence
    assert desk.acts() == []
    assert desk(*words, "--confirm", "3").code == 0
    assert desk(*words, "--confirm", "3").sentence.startswith("freehold: Nothing is dead at shop")
    assert len(desk.acts()) == 1


def test_of_two_people_at_once_one_acts(desk: Desk) -> None:
    desk.dead(1, 2, 3)
    ids = [int(one["id"]) for one in desk.data("list", "--state", "dead")["events"]]
    counts: list[int] = []
    begin = threading.Barrier(2)

    def press() -> None:
        ledger = desk.room.place.ledger()
        acts = EventActs(ledger, ledger, [SHOP, BUS])
        begin.wait(20)
        counts.append(acts.retry("shop", Chosen(ids), Person("ann", "twice")))

    both = [threading.Thread(target=press) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(20)
    assert sorted(counts) == [0, 3]
    assert len(desk.acts()) == 1


# ------------------------------------------------------------------------------------ discard


def test_what_is_discarded_leaves_and_can_be_replayed(desk: Desk) -> None:
    desk.dead(1, 2)
    words = ("discard", "--target", "shop", "--all", "--confirm", "2", "--by", "ann", "--reason")
    assert desk(*words, "test data").out == "discarded 2 for shop\n"
    assert desk.room.events() == {"published": 2}
    found = desk.data("list", "--state", "discarded")
    assert [one["forwards"][0]["reason"] for one in found["events"]] == ["test data"] * 2
    assert desk("replay", "--target", "shop", "--key", "1", *WHO).out == "replayed 1 for shop\n"
    desk.relay()
    assert sum(desk.arrived().values()) == 1


def test_what_waits_for_a_target_that_left_is_discarded(desk: Desk) -> None:
    desk("pause", "shop", *WHO)
    desk.room.add([1, 2])
    desk.relay()
    refused = desk("discard", "--target", "shop", "--all", *WHO)
    assert "Nothing is dead at shop" in refused.sentence
    desk.configure(BUS)
    (bus, shop) = desk.data("targets")
    assert (bus["condition"], bus["waiting_count"]) == ("working", 0)
    assert (shop["condition"], shop["waiting_count"]) == ("gone", 2)
    findings = desk.program("status", "--json").data["findings"]
    assert any("2 events wait for the target shop, which is not conf" in one for one in findings)
    assert desk("retry", "--target", "shop", "--all", "--confirm", "2", *WHO).code == 6
    assert desk("discard", "--target", "shop", "--all", "--confirm", "2", *WHO).code == 0
    assert desk.room.events() == {"published": 2}


# ------------------------------------------------------------------------------ pause, resume


def test_a_paused_target_waits_and_goes_on(desk: Desk) -> None:
    assert desk("pause", "shop", "--for", "2h", "--by", "ann", "--reason", "a\x1b[31mb").code == 0
    desk.room.add([1])
    desk.relay()
    assert (sum(desk.arrived("bus").values()), sum(desk.arrived().values())) == (1, 0)
    twice = desk("pause", "shop", *WHO)
    assert twice.code == 6
    assert "is paused already, by ann: a\ufffd[31mb, until" in twice.sentence
    shown = desk("targets")
    assert "\x1b" not in shown.out
    assert "by ann: a\ufffd[31mb" in shown.out
    shop = desk.data("targets")[1]
    assert (shop["condition"], shop["paused"]["by"], shop["waiting_count"]) == ("paused", "ann", 1)
    assert desk("resume", "shop", *WHO).out == "target shop goes on\n"
    assert desk("resume", "shop", *WHO).code == 6
    desk.relay()
    assert sum(desk.arrived().values()) == 1
    assert [row[1] for row in desk.acts()] == ["pause target", "resume target"]


def test_a_pause_that_is_over_does_not_stand_in_the_way(desk: Desk) -> None:
    with desk.room.place.ledger().transaction() as tx:
        until = tx.now - timedelta(hours=1)
        tx.relay.pause("shop", "long ago", by="bob", until=until)
    assert desk.data("targets")[1]["condition"] == "working"
    assert desk("pause", "shop", *WHO).code == 0
    assert desk.data("targets")[1]["paused"]["by"] == "ann"


# ------------------------------------------------------------------------------------- replay


def test_delivered_events_are_told_again(desk: Desk) -> None:
    desk.room.add([1, 2, 3])
    desk.relay()
    words = ("replay", "--target", "shop", "--since", "2026-01-01", "--rule", "cart")
    dry = desk(*words, "--dry-run")
    assert dry.out == "3 events would be told to shop again\n"
    assert desk.acts() == []
    assert desk(*words, *WHO).out == "replayed 3 for shop\n"
    again = desk(*words, *WHO)
    assert (again.code, len(desk.acts())) == (6, 1)
    assert "There is nothing to replay" in again.sentence
    assert desk.room.events() == {"pending": 3}
    desk.relay()
    assert set(desk.arrived().values()) == {2}
    assert set(desk.arrived("bus").values()) == {1}
    assert desk.room.events() == {"published": 3}


def test_a_target_is_told_of_nobody_elses_events(desk: Desk) -> None:
    """A replay is no way around what a target may know: these events belong to no tenant."""
    desk.room.add([1, 2])
    desk.relay()
    acts = _acts(desk, TargetPolicy("shop", TargetKind.WEBHOOK, tenant="harbour"))
    assert acts.replayable(ReplayAsked("shop")).count == 0
    assert _acts(desk, SHOP).replayable(ReplayAsked("shop")).count == 2


def _acts(desk: Desk, *policies: TargetPolicy) -> EventActs:
    ledger = desk.room.place.ledger()
    return EventActs(ledger, ledger, policies)


def test_kept_events_are_told_to_a_target_that_came_later(lite_desk: Desk) -> None:
    desk = lite_desk
    desk.room.add(range(1, 103))
    desk.room.place.host.run(f"update {desk.room.place.prefix}outbox set state = 'kept'")
    assert len(desk.data("list", "--state", "kept", "--limit", "200")["events"]) == 102
    words = ("replay", "--target", "shop", "--since", "2026-01-01", *WHO)
    refused = desk(*words)
    assert refused.code == 6
    assert "102 events would be told to shop again; if that is right" in refused.sentence
    assert desk(*words, "--confirm", "101").code == 6
    assert desk(*words, "--confirm", "102").code == 0
    desk.relay()
    assert (sum(desk.arrived().values()), sum(desk.arrived("bus").values())) == (102, 0)
    assert desk.room.events() == {"published": 102}
