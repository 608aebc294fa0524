"""The contract of `ports.unsubscribed.Unsubscribed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from freehold.domain.sending import SendState
from freehold.domain.unsubscribing import token
from freehold.ports.unsubscribed import Link, Unsubscription
from freehold.testing.contracts.ground import NOW, SECOND, Ground


class MailsDoor(Protocol):
    """Reports with mails, written and read by the plain driver."""

    def add_mail(
        self, tenant: str, day: int, sends: Mapping[str, SendState], *, frozen: bool = False
    ) -> None:
        """Write a report of the `day`-th day of this month with one send for each recipient.

        Args:
            frozen: an end of the report: its state is `sent`; else `sending`.
        """
        ...

    def states(self, tenant: str, day: int) -> Mapping[str, str]:
        """Read the states of a report's sends, by recipient."""
        ...

    def kept(self) -> Mapping[tuple[str, int], bool]:
        """Tell by tenant and day whether a mail still has its body."""
        ...


class UnsubscribedContract:
    """Give the fixtures `ground` and `mails`."""

    def test_the_first_note_stays_until_it_is_taken_back(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            assert tx.unsubscribed.add("t", "a@x", "ann", "asked by phone")
        ground.set_now(NOW + SECOND)
        with ledger.transaction() as tx:
            assert not tx.unsubscribed.add("t", "a@x", "bob", "again")
            assert tx.unsubscribed.add("t", "A@x", "bob", "another one")
            assert tx.unsubscribed.add("s", "a@x", "bob", "")
            assert not tx.unsubscribed.remove("s", "b@x")
        with ledger.transaction() as tx:
            assert list(tx.unsubscribed.of(["t", "s", "u"])) == [
                Unsubscription("s", "a@x", NOW + SECOND, "bob", ""),
                Unsubscription("t", "A@x", NOW + SECOND, "bob", "another one"),
                Unsubscription("t", "a@x", NOW, "ann", "asked by phone"),
            ]
            assert tx.unsubscribed.remove("t", "a@x")
            assert not tx.unsubscribed.remove("t", "a@x")
            assert [one.recipient for one in tx.unsubscribed.of(["t"])] == ["A@x"]
            assert list(tx.unsubscribed.of([])) == []

    def test_only_what_waits_and_was_surely_not_accepted_is_stopped(
        self, ground: Ground, mails: MailsDoor
    ) -> None:
        for day, state in enumerate(SendState, 1):
            mails.add_mail("t", day, {"a@x": state, "b@x": SendState.READY})
        mails.add_mail("s", 1, {"a@x": SendState.READY})
        with ground.open().transaction() as tx:
            assert tx.unsubscribed.stop("t", "a@x") == 2
            assert tx.unsubscribed.stop("t", "a@x") == 0
        waiting = (SendState.READY, SendState.RETRYING)
        for day, state in enumerate(SendState, 1):
            after = SendState.UNSUBSCRIBED if state in waiting else state
            assert mails.states("t", day) == {"a@x": after, "b@x": SendState.READY}
        assert mails.states("s", 1) == {"a@x": SendState.READY}

    def test_a_report_ends_with_the_last_of_its_sends(
        self, ground: Ground, mails: MailsDoor
    ) -> None:
        mails.add_mail("t", 1, {"a@x": SendState.READY})
        mails.add_mail("t", 2, {"a@x": SendState.READY, "b@x": SendState.ACCEPTED})
        mails.add_mail("t", 3, {"a@x": SendState.READY, "b@x": SendState.LEASED})
        with ground.open().transaction() as tx:
            assert tx.unsubscribed.stop("t", "a@x") == 3
        states = [row["state"] for row in ground.back.rows("report")]
        assert states == ["not sent", "sent", "sending"]

    def test_a_token_names_what_it_was_made_for(self, ground: Ground) -> None:
        links = [Link(token("t", one), "t", one) for one in ("a@x", "b@x")]
        ledger = ground.open()
        with ledger.transaction() as tx:
            assert tx.unsubscribed.keep_links([]) == 0
            assert tx.unsubscribed.keep_links(links[:1]) == 1
            assert tx.unsubscribed.keep_links(links) == 1
        with ledger.transaction() as tx:
            assert tx.unsubscribed.find_link(links[1].token) == links[1]
            assert tx.unsubscribed.find_link(token("t", "c@x")) is None
