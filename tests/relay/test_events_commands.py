"""`freehold events ...` as an operator types it, between hand-overs of a real relay."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.sql.session import DatabaseClock
from freehold.application.events import Chosen, EventActs
from freehold.application.review import Person
from freehold.domain.forwards import TargetKind, TargetPolicy
from freehold.domain.retries import RetryPolicy
from freehold.ports.forwards import ReplayAsked
from tests.e2e.inprocess import Program
from tests.relay.room import BUSY, Room, Script

if TYPE_CHECKING:
    from pathlib import Path

    from tests.behaviour.place import Place
    from tests.e2e.command import Ended

WHO = ("--by", "ann", "--reason", "the endpoint is mended")
ONCE = RetryPolicy(())
SHOP = TargetPolicy("shop", TargetKind.WEBHOOK, retry=ONCE)
BUS = TargetPolicy("bus", TargetKind.NATS, retry=ONCE)
FILE = """
[database]
url = "{url}"
"""
TARGETS = {
    "shop": """
[[targets]]
name = "shop"
kind = "webhook"
url = "https://shop.test/freehold"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
""",
    "bus": """
[[targets]]
name = "bus"
kind = "nats"
url = "nats://127.0.0.1"
""",
}


@dataclass
class Desk:
    """A room with a relay, and the command line over the same database."""

    room: Room
    program: Program

    def __call__(self, *words: str) -> Ended:
        """Run a command."""
        return self.program("events", *words)

    def data(self, *words: str) -> Any:
        """Run a command that works, and return what it says as JSON."""
        ended = self("--json", *words)
        assert ended.code == 0, ended.err
        return ended.data

    def configure(self, *policies: TargetPolicy) -> None:
        """Let these be the targets, in the file and for the relay."""
        place = self.room.place
        url = place.target if place.dialect == "postgres" else f"sqlite:///{place.target}"
        self.program.write(
            "freehold.toml", FILE.format(url=url), *(TARGETS[one.name] for one in policies)
        )
        self.room.policies = policies
        self.room.open()

    def relay(self, shop: Script | None = None) -> None:
        """Hand over all there is; the shop answers like this, and all others accept."""
        self.room.relayer(shop=shop or Script()).run_until_idle()

    def dead(self, *numbers: int) -> None:
        """Make events that arrive at the bus, and are dead at the shop."""
        self.room.add(numbers)
        self.relay(Script([BUSY]))

    def acts(self) -> list[tuple[Any, ...]]:
        """Read the action log."""
        sql = "select actor, action, subject, reason, before, after from {s}action order by id"
        return self.room.place.host.run(sql.replace("{s}", self.room.place.prefix))

    def arrived(self, name: str = "shop") -> Counter[str]:
        """Count what arrived at a target."""
        return self.room.box(name).arrived()


@pytest.fixture
def desk(
    one_place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Desk:
    return _desk(one_place, tmp_path, monkeypatch, capsys)


@pytest.fixture
def lite_desk(
    lite: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Desk:
    """The same on SQLite, for what depends on no database."""
    return _desk(lite, tmp_path, monkeypatch, capsys)


def _desk(place: Place, folder: Path, patch: pytest.MonkeyPatch, capture: Any) -> Desk:
    place.clock = DatabaseClock()  # type: ignore[assignment]  # as the command line's is
    desk = Desk(Room(place, folder), Program(folder, patch, capture))
    desk.configure(SHOP, BUS)
    return desk


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


# --------------------------------------------------------------------------------------- list


def test_a_list_is_read_in_pages(desk: Desk) -> None:
    desk.room.add(range(1, 8))
    desk.relay()
    keys: list[str] = []
    after: tuple[str, ...] = ()
    for _ in range(4):
        page = desk.data("list", "--target", "bus", "--limit", "3", *after)
        keys += [one["key"] for one in page["events"]]
        if page["after"] is None:
            break
        after = ("--after", page["after"])
    assert keys == ["7", "6", "5", "4", "3", "2", "1"]
    shown = desk("list", "--target", "bus", "--limit", "3")
    assert "go on with freehold events list --target bus --after" in shown.out
    filters = ("--rule", "cart", "--key", "4", "--since", "2026-01-01T00:00Z")
    assert [one["key"] for one in desk.data("list", *filters)["events"]] == ["4"]
    for nothing in (("--tenant", "x"), ("--rule", "x"), ("--since", "1h"), ("--state", "kept")):
        assert desk.data("list", *nothing) == {"events": [], "after": None}
    assert desk("list", "--key", "x").out == "there is no such event\n"


def test_what_is_open_comes_oldest_first(desk: Desk) -> None:
    desk.dead(1, 2, 3)
    desk("pause", "shop", *WHO)
    desk.room.add([4, 5])
    desk.relay()
    desk.room.add([6])
    both = [(one["key"], len(one["forwards"])) for one in desk.data("list")["events"]]
    assert both == [("6", 0), *((key, 2) for key in "54321")]
    for state, keys in (("waiting", "456"), ("dead", "123"), ("retrying", "")):
        assert "".join(one["key"] for one in desk.data("list", "--state", state)["events"]) == keys
        page = desk.data("list", "--state", state, "--limit", "1")
        assert [one["key"] for one in page["events"]] == list(keys[:1])
        assert (page["after"] is None) == (not keys)
    waiting = desk("list", "--state", "waiting").out
    assert [line.split()[1:3] for line in waiting.splitlines()[1:]] == [
        ["cart", "hold.expired"]
    ] * 3


def test_a_key_can_give_the_terminal_no_order(lite_desk: Desk) -> None:
    lite_desk.room.add([1])
    at = f"update {lite_desk.room.place.prefix}outbox set hold_key = :key"
    lite_desk.room.place.host.run(at, key="a\x1b]0;b\n[bold]c")
    for words in (("list",), ("show", "1")):
        out = lite_desk(*words).out
        assert "\x1b" not in out
        assert "[bold]c" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "--target", "x"), "There is no target 'x'; known targets: bus, shop."),
        (("list", "--state", "x"), "There is no state 'x'"),
        (("list", "--since", "x"), "--since 'x' is neither"),
        (("list", "--since", "999999999999d"), "--since '999999999999d' is neither"),
        (("show", "4711"), "There is no event '4711'"),
        (("show", "9" * 30), "There is no event"),
        (("show", "a:b:c:d"), "There is no event 'a:b:c:d'"),
        (("pause", "x", *WHO), "There is no target 'x'"),
        (("resume", "x", *WHO), "There is no target 'x'"),
        (("pause", "shop", "--by", " ", "--reason", "y"), "Say who you are and why"),
        (("pause", "shop", "--until", "2001-01-01T00:00Z", *WHO), "is over already"),
        (("retry", "--target", "x", "--all", *WHO), "There is no target 'x'"),
        (("retry", "--target", "shop", *WHO), "Name either events by --id, or --all."),
        (("retry", "--target", "shop", "--id", "1", "--all", *WHO), "Name either events"),
        (("retry", "--target", "shop", "--id", "99", *WHO), "Event 99 is not dead at shop"),
        (("discard", "--target", "shop", "--id", "99", *WHO), "Event 99 is not dead at shop"),
        (("replay", "--target", "shop", *WHO), "Say which events: --key, or --since"),
        (("replay", "--target", "shop", "--since", "1d"), "Say who you are and why"),
        (("replay", "--target", "x", "--since", "1d", *WHO), "There is no target 'x'"),
        (("replay", "--target", "x", "--since", "1d", "--until", "y", *WHO), "--until 'y'"),
    ],
)
def test_a_mistake_is_one_sentence(lite_desk: Desk, words: tuple[str, ...], said: str) -> None:
    ended = lite_desk(*words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.sentence
    assert lite_desk.acts() == []
