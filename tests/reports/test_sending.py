"""Sending by the class of the transport, on real databases and a provider that keeps its promise."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import StopRequest
from freehold.application.reporting.resolving import Verdict, resolve
from freehold.domain.errors import RefusedByState, UsageError
from freehold.domain.pauses import Pause, Role
from freehold.ports.retention import Subject
from freehold.ports.system import Boundary
from freehold.ports.telemetry import SendSettled, TransportParked
from freehold.testing.contracts.ground import NOW
from freehold.testing.mailbox import Fault
from freehold.testing.postroom import DATE, DAY
from tests.contract.grounds import migrate
from tests.reports.sending_room import (
    CONFLICTS,
    LOOKS,
    NONE,
    REPLAYS,
    SHORT,
    Room,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from freehold.domain.sending import TransportPromise
    from freehold.ports.telemetry import Event

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
CUT = [("send", "unknown")]
ALL_SENT = {"harbour": "sent", "hill": "sent", "mill": "sent"}


class Heard:
    """Keeps what was told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, event: Event) -> None:
        self.events.append(event)


@pytest.fixture
def room(sqlite_url: str, tmp_path: Path) -> Iterator[Room]:
    """A room with mails, on SQLite: what depends on the database is in the contract."""
    migrate(sqlite_url)
    room = Room(sqlite_url, tmp_path)
    room.fill()
    yield room
    room.close()


def promised(room: Room, promise: TransportPromise, on_unknown: str = "review") -> Room:
    return replace(room, promise=promise, on_unknown=on_unknown)  # type: ignore[arg-type]


def test_every_recipient_gets_one_mail(room: Room) -> None:
    sent = room.send()
    assert (sum(sent.counts.values()), sent.next_at, sent.parked_until) == (6, None, None)
    assert room.mailbox.asked() == ["a@x", "b@x", "c@x", "d@x", "e@x", "f@x"]
    assert room.report_states() == ALL_SENT
    assert not room.wrong()
    assert {one.sender for one in room.mailbox.accepted()} == {"r@x"}
    before = room.everything()
    assert not room.send(timedelta(days=9)).counts
    assert room.everything() == before


def test_one_refused_recipient_keeps_no_other_from_a_mail(room: Room) -> None:
    room.mailbox.play(Fault.REFUSE, recipient="a@x")
    room.send()
    assert room.states()["a@x"] == "refused"
    assert room.report_states() == {**ALL_SENT, "harbour": "partly sent"}
    reasons = room.rows("select reason from {s}send where recipient = 'a@x'")
    assert reasons == [("refused: 550 no such mailbox",)]


def test_transient_trouble_is_tried_again_until_a_person_has_it(room: Room) -> None:
    room.mailbox.play(*[Fault.TRANSIENT] * 6, recipient="a@x")
    waits = []
    while (next_at := room.send().next_at) is not None:
        waits.append(round((next_at - room.clock.instant).total_seconds()))
        room.clock.instant = next_at
    assert waits == [10, 30, 90, 270, 810]
    assert room.states()["a@x"] == "review"
    assert room.report_states()["harbour"] == "in review"


# -------------------------------------------------------------------------- an unknown end


@pytest.mark.parametrize("fault", [Fault.ACCEPT_THEN_CUT, Fault.SILENT])
def test_without_a_promise_a_person_must_say(room: Room, fault: Fault) -> None:
    room.mailbox.play(fault, recipient="a@x")
    room.run()
    assert room.trail("a@x") == CUT
    assert room.states()["a@x"] == "review"
    assert not room.wrong()


@pytest.mark.parametrize("promise", [REPLAYS, CONFLICTS, SHORT], ids=lambda one: one.name)
@pytest.mark.parametrize("fault", [Fault.ACCEPT_THEN_CUT, Fault.CUT])
def test_a_known_key_is_replayed(room: Room, promise: TransportPromise, fault: Fault) -> None:
    room.mailbox.play(fault, recipient="a@x")
    promised(room, promise).run()
    assert room.trail("a@x") == [*CUT, ("replay", "accepted")]
    assert room.report_states() == ALL_SENT
    assert not room.wrong()


def test_a_key_that_may_be_forgotten_is_not_used_again(room: Room) -> None:
    room.mailbox.play(Fault.ACCEPT_THEN_CUT, Fault.CUT, recipient="a@x")
    short = promised(room, SHORT)
    assert short.send().next_at == NOW + 10 * SECOND
    assert short.send(5 * MINUTE).next_at is None
    assert room.trail("a@x") == CUT
    assert room.states()["a@x"] == "review"


def test_what_its_provider_has_is_not_sent_again(room: Room) -> None:
    room.mailbox.play(Fault.ACCEPT_THEN_CUT, recipient="a@x")
    promised(room, LOOKS).run()
    assert room.trail("a@x") == [*CUT, ("look-up", "not found"), ("look-up", "found")]
    assert room.rows("select reference from {s}send where recipient = 'a@x'") == [("mail-1",)]
    assert not room.wrong()


def test_what_its_provider_does_not_have_is_sent_once_that_is_sure(room: Room) -> None:
    room.mailbox.play(Fault.CUT, recipient="a@x")
    room.mailbox.play(Fault.TRANSIENT, recipient="a@x", what="look-up")
    looking = promised(room, LOOKS)
    looking.run()
    assert room.trail("a@x") == [
        *CUT,
        ("look-up", "transient"),
        ("look-up", "not found"),
        ("look-up", "not found"),
        ("send", "accepted"),
    ]
    assert looking.clock.instant >= NOW + LOOKS.indexing
    assert not room.wrong()


def test_resend_is_for_those_who_chose_it(room: Room) -> None:
    room.mailbox.play(Fault.ACCEPT_THEN_CUT, recipient="a@x")
    promised(room, NONE, "resend").run()
    assert room.trail("a@x") == [*CUT, ("send", "accepted")]
    reasons = room.rows("select reason from {s}send where recipient = 'a@x'")
    assert "may have been accepted too" in reasons[0][0]
    assert [one.recipient for one in room.mailbox.accepted()].count("a@x") == 2


def test_a_promise_is_kept_by_the_transport_that_gave_it(room: Room) -> None:
    room.mailbox.play(Fault.ACCEPT_THEN_CUT, recipient="a@x")
    promised(room, REPLAYS).send()
    promised(room, CONFLICTS).run()
    assert room.trail("a@x") == CUT
    assert room.states()["a@x"] == "review"


# ------------------------------------------------------------------------ nobody gets a mail


@pytest.mark.parametrize("fault", [Fault.REFUSE_EVERYONE, Fault.TRANSIENT_FOR_EVERYONE])
def test_trouble_of_the_account_costs_one_request_and_no_attempt(room: Room, fault: Fault) -> None:
    room.mailbox.play(*[fault] * 9)
    room.telemetry = heard = Heard()
    sender = room.sender()
    sent = sender.send(100)
    assert sent.parked_until == NOW + 15 * MINUTE
    assert sender.send(100).counts == {}
    assert room.mailbox.asked() == ["a@x"]
    assert sorted(room.states().values()) == ["ready"] * 5 + ["retrying"]
    assert [event for event in heard.events if isinstance(event, TransportParked)]
    assert room.rows("select spent_count from {s}send where recipient = 'a@x'") == [(0,)]
    room.mailbox.calm()
    room.clock.instant += 15 * MINUTE
    sender.send(100)
    assert room.report_states() == ALL_SENT


def test_a_day_of_it_is_a_persons(room: Room) -> None:
    room.mailbox.play(*[Fault.REFUSE_EVERYONE] * 999)
    assert [room.send(6 * 60 * MINUTE).parked_until is None for _ in range(3)] == [False] * 3
    room.run()
    assert set(room.states().values()) == {"review"}
    assert set(room.report_states().values()) == {"in review"}


def test_paused_reports_are_not_sent(room: Room) -> None:
    pause(room, None)
    sent = room.send()
    assert (sent.is_paused, room.mailbox.asked()) == (True, [])
    end_pause(room, None)
    pause(room, "hill")
    room.send(MINUTE)
    assert room.report_states() == {**ALL_SENT, "hill": "sending"}
    end_pause(room, "hill")
    room.send(MINUTE)
    assert room.report_states() == ALL_SENT


def test_who_unsubscribed_while_a_mail_was_tried_gets_no_other(room: Room) -> None:
    room.mailbox.play(Fault.TRANSIENT, recipient="a@x")
    room.send()
    with room.ledger().transaction() as tx:
        assert tx.unsubscribed.add("harbour", "a@x", "ann", "asked by phone")
    room.run()
    assert room.trail("a@x") == [("send", "transient")]
    assert room.states()["a@x"] == "unsubscribed"
    assert room.report_states() == ALL_SENT


def test_a_stop_request_lets_the_mail_in_hand_finish(room: Room) -> None:
    stop = StopRequest()

    class StopAfter:
        def reach(self, boundary: Boundary) -> None:
            if boundary is Boundary.SEND_BEGUN:
                stop.stop()

    room.sender(StopAfter(), stop=stop).send(100)
    assert room.mailbox.asked() == ["a@x"]
    assert sorted(room.states().values()) == ["accepted"] + ["ready"] * 5
    assert {row[0] for row in room.rows("select available_at from {s}send")} == {
        "2031-05-06T12:00:00.000000Z"
    }


def test_what_is_told_names_no_address(room: Room) -> None:
    room.telemetry = heard = Heard()
    room.mailbox.play(Fault.ACCEPT_THEN_CUT, recipient="a@x")
    room.send()
    told = [event for event in heard.events if isinstance(event, SendSettled)]
    assert [event.state for event in told] == ["review"] + ["accepted"] * 5
    assert "@x" not in str(heard.events)


# ---------------------------------------------------------------------------------- a person


def test_a_person_says_how_it_ended(room: Room) -> None:
    room.mailbox.play(Fault.ACCEPT_THEN_CUT, recipient="a@x")
    room.send()
    say(room, Verdict.ACCEPTED)
    assert room.trail("a@x") == [*CUT, ("resolve", "accepted")]
    assert room.report_states() == ALL_SENT
    acts = room.rows("select actor, action, subject, reason, before, after from {s}action")
    assert acts == [
        ("ann", "report resolve", "harbour 2031-05-05 a@x", "saw it", "review", "accepted")
    ]
    with pytest.raises(RefusedByState, match=r"No mail of harbour 2031-05-05 waits"):
        say(room, Verdict.ACCEPTED)


def test_a_person_has_it_sent_again_or_gives_it_up(room: Room) -> None:
    room.mailbox.play(Fault.CUT, recipient="a@x")
    room.mailbox.play(Fault.REFUSE, recipient="b@x")
    room.send()
    say(room, Verdict.RESEND)
    say(room, Verdict.ABANDON, "b@x")
    assert room.report_states()["harbour"] == "sending"
    room.send()
    assert room.trail("a@x") == [*CUT, ("resolve", "send again"), ("send", "accepted")]
    assert room.states()["b@x"] == "abandoned"
    assert room.report_states()["harbour"] == "partly sent"


def test_a_person_is_told_why_not(room: Room) -> None:
    room.mailbox.play(Fault.TRANSIENT, recipient="b@x")
    with pytest.raises(UsageError, match="no mail of nowhere"):
        say(room, Verdict.RESEND, tenant="nowhere")
    with pytest.raises(UsageError, match="no mail to z@x"):
        say(room, Verdict.RESEND, "z@x")
    with pytest.raises(RefusedByState, match="waits to be sent by itself"):
        say(room, Verdict.RESEND, "a@x")
    room.send()
    with pytest.raises(RefusedByState, match="never sent again"):
        say(room, Verdict.RESEND, "a@x")
    with pytest.raises(RefusedByState, match="tried again by itself"):
        say(room, Verdict.ABANDON, "b@x")
    with pytest.raises(UsageError, match="Say who you are"):
        say(room, Verdict.ABANDON, by=" ")


def test_a_mail_whose_bytes_are_gone_is_not_sent_again(room: Room) -> None:
    room.mailbox.play(Fault.REFUSE, recipient="a@x")
    room.send()
    with room.ledger().transaction() as tx:
        tx.retention.prune(Subject.MAILS, NOW + DAY, None, 10)
    with pytest.raises(RefusedByState, match="not kept any more"):
        say(room, Verdict.RESEND, "a@x")
    say(room, Verdict.ABANDON, "a@x")


def say(
    room: Room,
    verdict: Verdict,
    recipient: str | None = None,
    *,
    tenant: str = "harbour",
    by: str = "ann",
) -> None:
    resolve(room.ledger(), tenant, DATE, recipient, verdict, by, "saw it")


def pause(room: Room, tenant: str | None) -> None:
    with room.ledger().transaction() as tx:
        tx.pauses.begin(Pause(Role.REPORT, None, tenant, "ann", "why", tx.now))


def end_pause(room: Room, tenant: str | None) -> None:
    with room.ledger().transaction() as tx:
        assert tx.pauses.end(Role.REPORT, None, tenant)
