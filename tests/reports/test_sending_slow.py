"""A provider that may take as long as SMTP's time-outs let it: what is not begun waits a minute at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import StopRequest
from freehold.ports.system import Boundary
from freehold.testing.clock import SetClock
from freehold.testing.contracts.ground import NOW, SECOND
from freehold.testing.crash import CRASHED, KillAt, WaitAt
from freehold.testing.forking import Wire, run
from freehold.testing.mailbox import Fault
from tests.reports.sending_room import LOOKS, MINUTE, NONE, Room, alone

if TYPE_CHECKING:
    from datetime import datetime

pytestmark = pytest.mark.timeout(method="signal")  # the other kind is a thread, and forks want one
SLOW = replace(NONE, attempt_seconds_max=840.0)
STANDING = "select recipient, state, attempt from {s}send order by recipient"
LONGEST = timedelta(seconds=SLOW.attempt_seconds_max)


@dataclass(slots=True)
class Slow:
    """Lets minutes pass while the provider answers; the first time, something happens meanwhile."""

    clock: SetClock
    meanwhile: Callable[[], object] = bool

    def reach(self, boundary: Boundary) -> None:
        if boundary is Boundary.PROVIDER_ANSWERED:
            self.clock.instant += 5 * MINUTE
            meanwhile, self.meanwhile = self.meanwhile, bool
            meanwhile()


def test_what_a_killed_sender_had_not_begun_is_sent_within_a_minute(room: Room) -> None:
    room = replace(room, promise=SLOW)
    room.close()

    def killed(wire: Wire) -> None:
        room.sender(KillAt(2, Boundary.SEND_BEGUN, wire.tell)).send(100)

    def sent_at(at: datetime) -> list[object]:
        room.clock.instant = at
        sent = room.send()
        return [sum(sent.counts.values()), str(sent.next_at), Counter(room.states().values())]

    over = NOW + MINUTE
    assert run(killed).said(CRASHED) is not None
    leased = {"accepted": 1, "leased": 5}
    assert alone(lambda: sent_at(over - SECOND)) == [0, str(over), leased]
    rest = {"accepted": 5, "leased": 1}
    assert alone(lambda: sent_at(over)) == [4, str(NOW + LONGEST + MINUTE), rest]
    review = {"accepted": 5, "review": 1}
    assert alone(lambda: sent_at(NOW + LONGEST + MINUTE)) == [1, "None", review]
    assert alone(room.wrong) == []


def test_what_lapses_behind_a_slow_mail_is_another_senders(room: Room) -> None:
    room = replace(room, promise=SLOW)
    shares: list[int] = []

    def other() -> None:
        shares.append(sum(room.send().counts.values()))

    shares.append(sum(room.sender(Slow(room.clock, other)).send(100).counts.values()))
    room.close()
    assert shares == [5, 1]
    assert set(room.states().values()) == {"accepted"}
    assert len(room.mailbox.asked()) == 6
    assert room.wrong() == []


def test_a_slow_provider_gets_each_mail_once_from_a_single_sender(room: Room) -> None:
    room = replace(room, promise=SLOW)
    sent = room.sender(Slow(room.clock)).send(100)
    room.close()
    assert (sum(sent.counts.values()), sent.next_at) == (6, None)
    assert len(room.mailbox.asked()) == 6
    assert room.wrong() == []


@pytest.mark.parametrize("doubt", [False, True], ids=["to be sent", "to be looked up"])
def test_whoever_stops_gives_back_what_is_claimed_and_not_begun(room: Room, *, doubt: bool) -> None:
    """At once, so that another sender has no lease to wait for."""
    room = replace(room, promise=LOOKS)
    if doubt:
        room.mailbox.play(*[Fault.CUT] * 6)
        room.clock.instant = max(one for one in [room.send().next_at] if one is not None)
    before = room.rows(STANDING)
    stop = StopRequest()
    room.sender(WaitAt(1, Boundary.SEND_CLAIMED, go=stop.stop), stop=stop).send(100)
    room.close()
    assert {state for _, state, _ in before} == {"unknown" if doubt else "ready"}
    assert room.rows(STANDING) == before
