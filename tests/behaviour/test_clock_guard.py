"""A database whose clock jumps releases nothing by it: not at once, not after a restart."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.application.guards import note_clock, release_guards
from freehold.application.together import release_these
from freehold.application.work import PassEnd
from freehold.domain.rules import Mode
from freehold.domain.schedule import Every
from tests.behaviour.hosts import Host
from tests.behaviour.place import NOON
from tests.behaviour.till import Till, cart, open_table, put_holds, statuses

if TYPE_CHECKING:
    from tests.behaviour.place import Place

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
JUMPS = pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["ahead", "back"])


def _shop(place: Place) -> Host:
    """Holds 1 to 3 are due, 11 to 13 in half an hour."""
    open_table(place)
    put_holds(place, range(1, 4))
    put_holds(place, range(11, 14), due=NOON + HOUR / 2)
    return Host.beside(place)


def _running(host: Host) -> Till:
    """Return a process that has released what is due, and noted its clocks."""
    till = host.till(cart(host.place))
    host.fire(till)
    assert statuses(host.place) == {"expired": 3, "held": 3}
    host.run_for(5 * SECOND)
    return till


def _standing(place: Place) -> list[str]:
    sql = f"select kind from {place.prefix}guard where released_at is null"
    return [row[0] for row in place.host.run(sql)]


def _is_frozen(till: Till) -> bool:
    scan = till.scanner.scan(till.rule)
    end = till.worker.work(till.rule).end
    return end is PassEnd.GUARDED and not scan.admitted and scan.new_count == 0


@JUMPS
def test_a_jump_freezes_a_running_process_before_the_first_release(
    place: Place, jump: timedelta
) -> None:
    host = _shop(place)
    till = _running(host)
    put_holds(place, range(21, 24), due=NOON - 3 * HOUR)
    place.advance(jump)
    assert till.worker.work(till.rule).end is PassEnd.GUARDED
    assert _is_frozen(till)
    assert statuses(place) == {"expired": 3, "held": 6}
    assert _standing(place) == ["clock"]
    way = "ahead" if jump > timedelta(0) else "back"
    assert f"moved 1 h {way}" in str(place.table("guard", "reason")[0][0])


@pytest.mark.parametrize("mode", [Mode.DIRECT, Mode.WINDOW])
def test_a_jump_freezes_the_other_modes_as_well(place: Place, mode: Mode) -> None:
    host = _shop(place)
    till = host.till(cart(place, mode=mode))
    till.run()
    host.run_for(5 * SECOND)
    place.advance(HOUR)
    for _ in range(2):
        assert till.run().released_count == 0
        host.run_for(20 * SECOND)
    assert statuses(place) == {"expired": 3, "held": 3}
    assert _standing(place) == ["clock"]


@JUMPS
def test_a_jump_freezes_a_process_that_begins_after_it(place: Place, jump: timedelta) -> None:
    host = _shop(place)
    _running(host)
    other = Host.beside(place, "beta")
    place.advance(jump)
    assert _is_frozen(other.till(cart(place)))
    assert _is_frozen(host.till(cart(place)))
    assert _is_frozen(Host.beside(place, "one that jumped as well").till(cart(place)))
    assert statuses(place) == {"expired": 3, "held": 3}


def test_a_batch_claimed_before_the_jump_is_given_back(place: Place) -> None:
    host = _shop(place)
    till = _running(host)
    put_holds(place, [21], due=NOON)
    assert till.scanner.scan(till.rule).new_count == 1
    with till.ledger.transaction() as tx:
        claims = tx.operations.lease("cart", 10, None, tx.now + timedelta(seconds=30))
    place.advance(HOUR)
    result = release_these(till.worker._tools, till.rule, claims)
    assert result.released_count == 0
    assert place.table("operation", "state, reason, attempt") == [("deferred", "guarded", 0)]


@JUMPS
def test_the_next_sane_reading_lifts_the_guard(place: Place, jump: timedelta) -> None:
    host = _shop(place)
    till = _running(host)
    place.advance(jump)
    assert _is_frozen(till)
    place.advance(-jump)
    host.run_for(HOUR)
    till.run()
    assert statuses(place) == {"expired": 6}
    assert _standing(place) == []
    [(by, reason)] = place.table("guard", "released_by, released_reason")
    assert (by, reason) == (None, "the clocks agree again")
    assert place.table("action", "action") == []


def test_a_process_that_begins_when_the_clocks_agree_again_lifts_it(place: Place) -> None:
    host = _shop(place)
    _running(host)
    place.advance(HOUR)
    assert _is_frozen(host.till(cart(place)))
    place.advance(-HOUR)
    till = host.till(cart(place))
    host.run_for(HOUR)
    till.run()
    assert statuses(place) == {"expired": 6}


@JUMPS
def test_a_person_may_accept_the_clock_as_it_is(place: Place, jump: timedelta) -> None:
    host = _shop(place)
    till, idle = _running(host), host.till(cart(place))
    assert not _is_frozen(idle)
    place.advance(jump)
    assert _is_frozen(till)
    release_guards(till.ledger, None, "ann", "the server's clock was wrong before")
    for one in (till, idle, host.till(cart(place))):
        host.run_for(SECOND)
        assert not _is_frozen(one)
    host.run_for(3 * HOUR)
    till.run()
    assert statuses(place) == {"expired": 6}
    assert place.table("action", "actor, action, subject") == [
        ("ann", "guard release", "all rules")
    ]


def test_an_accepted_jump_does_not_excuse_the_next_one(place: Place) -> None:
    host = _shop(place)
    till = _running(host)
    place.advance(HOUR)
    assert _is_frozen(till)
    release_guards(till.ledger, None, "ann", "why")
    host.run_for(SECOND)
    assert not _is_frozen(till)
    host.run_for(60 * SECOND)
    assert not _is_frozen(till)
    place.advance(HOUR)
    assert _is_frozen(till)


def test_six_hours_of_downtime_are_caught_up_once(place: Place) -> None:
    open_table(place)
    rule = cart(place, schedule=Every(600))
    host = Host.beside(place)
    put_holds(place, range(1, 3))
    host.fire(host.till(rule))
    put_holds(place, range(10, 1_510), due=NOON + HOUR)
    host.set_both(6 * HOUR)

    till = host.till(rule)
    for _ in range(8):
        host.fire(till)
        host.run_for(SECOND)
    assert statuses(place) == {"expired": 1_502}
    assert place.table("guard", "kind") == []
    times = place.host.run(f"select count(*) from {place.prefix}tick where schedule = 'cart'")
    assert times == [(2,)]


def test_a_step_of_the_host_alone_freezes_nothing(place: Place) -> None:
    host = _shop(place)
    till = _running(host)
    host.clock.at += HOUR
    assert not _is_frozen(till)
    with till.ledger.transaction() as tx:
        note_clock(tx)
    assert not _is_frozen(host.till(cart(place)))


def test_a_jump_of_both_clocks_is_seen_by_whoever_runs(place: Place) -> None:
    """As on SQLite, whose clock is the host's: a restart cannot tell, and lifts nothing."""
    host = _shop(place)
    till = _running(host)
    host.set_both(HOUR)
    assert _is_frozen(till)
    assert _is_frozen(host.till(cart(place)))
    host.set_both(-HOUR)
    assert not _is_frozen(till)


def test_a_process_that_was_stopped_for_minutes_freezes_nothing(place: Place) -> None:
    host = _shop(place)
    till = _running(host)
    session = till.ledger.session
    begin = session.begin

    def slowly(*, read_only: bool = False) -> object:
        now = begin(read_only=read_only)
        host.run_for(timedelta(minutes=5))
        session.begin = begin  # type: ignore[method-assign]
        return now

    session.begin = slowly  # type: ignore[method-assign,assignment]
    assert not _is_frozen(till)
    assert not _is_frozen(till)


def test_a_host_with_a_wrong_clock_freezes_nobody_while_others_run(place: Place) -> None:
    host = _shop(place)
    _running(host)
    wrong = Host.beside(place, "wrong")
    wrong.clock.at -= HOUR
    assert not _is_frozen(wrong.till(cart(place)))
    assert _standing(place) == []


def test_a_host_that_stood_still_freezes_the_others_no_longer_than_they_look(place: Place) -> None:
    """A virtual machine that was paused sees a jump; the next process elsewhere knows better."""
    host, paused = _shop(place), Host.beside(place, "paused")
    till, other = _running(host), paused.till(cart(place))
    paused.clock = type(paused.clock)(place.clock.at, paused.clock.seconds)
    assert not _is_frozen(other)
    host.run_for(timedelta(minutes=5))
    assert not _is_frozen(till)
    assert _is_frozen(other)
    assert not _is_frozen(till)
    assert not _is_frozen(other)
    assert _standing(place) == []
