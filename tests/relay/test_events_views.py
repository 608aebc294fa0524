"""How `freehold events ...`, doctor and status show events and targets, and what is a mistake."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.relay.desk import WHO

if TYPE_CHECKING:
    from tests.relay.desk import Desk


# ------------------------------------------------------------------------------------- doctor


def test_doctor_and_status_say_what_is_wrong_with_targets(lite_desk: Desk) -> None:
    """No relay is alive here; what is dead, and what a pause keeps, waits for no relay."""
    desk = lite_desk
    assert _doctor(desk) == [("ok", "targets", "All 2 targets are told of events.")]
    desk.dead(1)
    assert [code for _, code, _ in _doctor(desk)] == ["target"]
    desk("pause", "bus", *WHO)
    desk.room.add([2])
    waits = "Events wait for shop, and no relay is alive; start `freehold run`."
    found = [sentence for _, _, sentence in _doctor(desk)]
    assert (found[0], len(found)) == (waits, 3)
    status = desk.program("status", "--json", "--check")
    assert (status.code, status.data["findings"]) == (3, found)
    assert status.data["outbox"]["unrouted_count"] == 1
    assert [(one["target"], one["dead_count"]) for one in status.data["targets"]] == [
        ("bus", 0),
        ("shop", 1),
    ]
    shown = desk.program("status").out
    assert "shop ◌ failing, 1 dead" in shown
    assert "bus ■ paused" in shown


def _doctor(desk: Desk) -> list[tuple[str, str, str]]:
    found = desk.program("doctor", "--json").data
    return [
        (one["severity"], one["code"], one["sentence"])
        for one in found
        if one["code"].startswith("target")
    ]


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
    narrow = replace(lite_desk, program=replace(lite_desk.program, columns=80))
    for desk, words in ((lite_desk, ["list"]), (lite_desk, ["show", "1"]), (narrow, ["list"])):
        out = desk(*words).out
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


def test_every_field_of_the_json_is_on_its_page(lite_desk: Desk) -> None:
    desk = lite_desk
    desk.dead(1, 2)
    given = [
        desk.data("list"),
        desk.data("show", "1"),
        desk.data("pause", "shop", *WHO),
        desk.data("targets"),
        desk.data("resume", "shop", *WHO),
        desk.data("retry", "--target", "shop", "--id", "1", *WHO),
        desk.data("discard", "--target", "shop", "--id", "2", *WHO),
        desk.data("replay", "--target", "bus", "--key", "1", "--dry-run"),
        desk.data("replay", "--target", "bus", "--key", "1", *WHO),
    ]
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "events.md").read_text()
    assert not {name for one in given for name in _names(one) if f"`{name}`" not in page}


def _names(data: Any) -> set[str]:
    """Return the names of all fields, those of the CloudEvent left out."""
    if isinstance(data, list):
        return {name for one in data for name in _names(one)}
    if not isinstance(data, dict):
        return set()
    inner = (_names(value) for name, value in data.items() if name != "cloud_event")
    return set(data).union(*inner)
