"""Stopping the report to one recipient, as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from freehold.bootstrap import open_ledger
from freehold.domain.sending import SendState
from freehold.domain.unsubscribing import token
from freehold.ports.unsubscribed import Link
from freehold.settings import DatabaseSettings, Settings
from freehold.testing.backdoor import BackDoor
from tests.contract.mails import Mails
from tests.e2e.inprocess import Program

BY = ("--by", "ann")


@pytest.fixture
def freehold(
    tmp_path: Path,
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    """The program with one tenant of two recipients."""
    program = Program(tmp_path, monkeypatch, capsys)
    program.write("freehold.toml", "[database]", f'url = "{sqlite_url}"')
    assert program("db", "upgrade").code == 0
    words = ("--recipient", "a@X.example", "--recipient", "b@x.example")
    assert program("tenant", "add", "harbour", *words).code == 0
    return program


def test_an_unsubscription_stops_what_waits_and_is_shown_until_it_is_taken_back(
    freehold: Program, sqlite_url: str
) -> None:
    with BackDoor(sqlite_url) as door:
        Mails(door).add_mail("harbour", 1, {"a@x.example": SendState.READY})
        words = ("tenant", "unsubscribe", "harbour", "a@X.EXAMPLE", *BY, "--reason", "asked")
        assert freehold(*words).out == "a@x.example: unsubscribed; 1 waiting mail stopped\n"
        assert Mails(door).states("harbour", 1) == {"a@x.example": "unsubscribed"}
        assert freehold(*words).out == "a@x.example: was just so already\n"
        acts = door.rows("select actor, action, subject, reason, after from {s}action")
    assert acts == [
        (
            "ann",
            "tenant unsubscribe",
            "harbour",
            "asked",
            "a@x.example unsubscribed; 1 waiting mails stopped",
        )
    ]
    listed = freehold("tenant", "list").out
    assert "a@x.example (unsubscribed)" in listed
    assert "b@x.example" in listed
    shown = freehold("tenant", "show", "harbour")
    assert "a@x.example wants no report since" in shown.out
    assert "says ann: asked" in shown.out
    (left,) = freehold("tenant", "show", "harbour", "--json").data["unsubscribed"]
    assert (left["recipient"], left["actor"]) == ("a@x.example", "ann")
    again = ("tenant", "resubscribe", "harbour", "a@x.example", *BY)
    assert freehold(*again).out == "a@x.example: subscribed again\n"
    assert freehold(*again).out == "a@x.example: was just so already\n"
    assert "unsubscribed" not in freehold("tenant", "list").out


def test_the_token_of_a_link_names_who_wants_no_more(freehold: Program, sqlite_url: str) -> None:
    link = Link(token("harbour", "b@x.example"), "harbour", "b@x.example")
    ledger = open_ledger(Settings(DatabaseSettings(sqlite_url)))
    with ledger.transaction() as tx:
        tx.unsubscribed.keep_links([link])
    ledger.close()
    ended = freehold("tenant", "unsubscribe", "--token", link.token, *BY)
    assert ended.out == "b@x.example: unsubscribed\n"


def test_an_address_that_is_no_recipient_now_is_remembered(freehold: Program) -> None:
    ended = freehold("tenant", "unsubscribe", "harbour", "old@x.example", *BY)
    assert ended.out == "old@x.example: unsubscribed (no recipient of harbour now)\n"


def test_what_was_stored_before_addresses_were_checked_is_pointed_out(
    freehold: Program, sqlite_url: str
) -> None:
    with BackDoor(sqlite_url) as door:
        door.execute("""update {s}tenant set recipients = '["Desk <c@x>", "b@x.example"]'""")
    listed = freehold("tenant", "list").out
    assert "Desk <c@x> (unusable)" in listed
    assert "b@x.example" in listed
    assert freehold("tenant", "show", "harbour", "--json").data["unusable"] == ["Desk <c@x>"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nobody", "a@x", *BY), "There is no tenant 'nobody'"),
        (("harbour", "Ann <a@x>", *BY), "The recipient must be a plain mail address"),
        (("harbour", "a@x.example"), "--by is empty"),
        (("harbour", *BY), "Name the tenant and the address, or the --token"),
        (("harbour", "a@x.example", "--token", "1", *BY), "or the --token of a link alone"),
        (BY, "Name the tenant and the address"),
        (("--token", "1", *BY), "No mail carried this token"),
    ],
)
def test_what_cannot_be_understood_says_what_to_do(
    freehold: Program, words: tuple[str, ...], sentence: str
) -> None:
    ended = freehold("tenant", "unsubscribe", *words)
    assert (ended.code, ended.out) == (2, "")
    assert sentence in ended.sentence
