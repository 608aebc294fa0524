"""What a person pauses stands still, by role and tenant, and nothing else does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from freehold.adapters.sql.session import Limits
from freehold.application.pauses import begin_pause, end_pause
from freehold.application.why import why
from freehold.application.work import PassEnd
from freehold.domain.errors import RefusedByState
from freehold.domain.pauses import Pause, Role
from freehold.domain.rules import Mode
from tests.behaviour.place import NOON
from tests.behaviour.till import Till, cart, open_table, put_holds

if TYPE_CHECKING:
    from tests.behaviour.place import Place

HOUR = timedelta(hours=1)
LATER = timedelta(seconds=20)
MODES = pytest.mark.parametrize("mode", list(Mode))
OTHERS = (Mode.DIRECT, Mode.WINDOW)
HEAVY_MODES = pytest.mark.parametrize(
    "mode",
    [Mode.RESERVATION, *(pytest.param(one, marks=pytest.mark.proof) for one in OTHERS)],
)
ROLES = pytest.mark.parametrize("role", [Role.SCAN, Role.WORK])


_WAITS = "select 1 from pg_locks where not granted and locktype = 'transactionid'"


def test_two_who_pause_the_same_at_once_both_have(pg: Place) -> None:
    """The second waits for the first in the unique index, and takes the pause over."""
    limits = Limits(lock_timeout_ms=20_000)
    first, second = (pg.ledger(limits=limits) for _ in range(2))
    with ThreadPoolExecutor(1) as others:
        with first.transaction() as tx:
            tx.pauses.begin(Pause(Role.WORK, None, None, "ann", "stocktaking", NOON))
            done = others.submit(
                begin_pause, second, Pause(Role.WORK, None, None, "bob", "dispute", NOON)
            )
            while not pg.host.run(_WAITS) and not done.done():
                pass
        done.result()
    with first.transaction() as tx:
        (paused,) = tx.pauses.open()
    assert (paused.by, paused.reason) == ("bob", "dispute")


def _shop(place: Place, **changes: Any) -> Till:
    """Holds 1 to 3 of ann's shop and 11 to 13 of bob's fall due within a minute."""
    open_table(place)
    till = Till.open(place, cart(place, **changes))
    till.run()
    put_holds(place, range(1, 4), tenant="ann", due=NOON + LATER)
    put_holds(place, range(11, 14), tenant="bob", due=NOON + LATER)
    return till


def _pause(till: Till, role: Role, tenant: str | None = None, **more: Any) -> None:
    begin_pause(till.ledger, Pause(role, "cart", tenant, "eve", "dispute", NOON, **more))


def _resume(till: Till, role: Role, tenant: str | None = None) -> int:
    return end_pause(till.ledger, (role, "cart", tenant), ["cart"], "eve", "settled")


def _goes_on(till: Till, times: int = 3) -> None:
    for _ in range(times):
        till.place.advance(LATER)
        till.worker.forget_floors()
        till.run()


def _released(place: Place) -> dict[str, int]:
    sql = "select tenant, count(*) from hold where status = 'expired' group by tenant"
    return dict(place.host.run(sql))


@MODES
def test_a_paused_scan_writes_nothing_and_catches_up(place: Place, mode: Mode) -> None:
    till = _shop(place, mode=mode)
    _pause(till, Role.SCAN)
    _goes_on(till)
    assert _released(place) == {}
    assert place.table("operation", "id") == []
    _resume(till, Role.SCAN)
    _goes_on(till, 1)
    assert _released(place) == {"ann": 3, "bob": 3}


@MODES
def test_paused_work_releases_nothing_and_catches_up(place: Place, mode: Mode) -> None:
    till = _shop(place, mode=mode)
    _pause(till, Role.WORK)
    _goes_on(till)
    assert _released(place) == {}
    assert till.worker.work(till.rule).end is PassEnd.PAUSED
    _resume(till, Role.WORK)
    _goes_on(till, 1)
    assert _released(place) == {"ann": 3, "bob": 3}


@MODES
@ROLES
def test_a_paused_tenant_alone_stands_still(place: Place, mode: Mode, role: Role) -> None:
    till = _shop(place, mode=mode)
    _pause(till, role, "ann")
    _goes_on(till)
    assert _released(place) == {"bob": 3}
    assert place.table("operation", "id") == []
    assert "is paused by eve: dispute" in why(till.ledger, [till.rule], "1")[0].answer
    assert _resume(till, role, "ann") == 0
    _goes_on(till, 2)
    assert _released(place) == {"ann": 3, "bob": 3}
    assert place.table("attempt", "attempt") == []


def test_what_is_ready_of_a_paused_tenant_is_put_off_and_brought_back(place: Place) -> None:
    till = _shop(place)
    place.advance(2 * LATER)
    assert till.scanner.scan(till.rule).new_count == 6
    _pause(till, Role.WORK, "ann")
    till.run()
    assert _released(place) == {"bob": 3}
    states = place.table("operation", "state, reason, attempt")
    assert states == [("deferred", "paused", 0)] * 3
    answer = why(till.ledger, [till.rule], "1")[0].answer
    assert answer == "It is not released: its tenant is paused by eve: dispute."
    place.advance(2 * HOUR)
    till.run()
    assert _released(place) == {"bob": 3}
    assert _resume(till, Role.WORK, "ann") == 3
    till.run()
    assert _released(place) == {"ann": 3, "bob": 3}


def test_what_is_ready_is_worked_off_while_the_scan_of_a_tenant_is_paused(place: Place) -> None:
    till = _shop(place)
    place.advance(2 * LATER)
    till.scanner.scan(till.rule)
    _pause(till, Role.SCAN, "ann")
    till.run()
    assert _released(place) == {"ann": 3, "bob": 3}


@HEAVY_MODES
@ROLES
def test_a_pause_ends_by_itself_and_trips_no_guard(place: Place, mode: Mode, role: Role) -> None:
    till = _shop(place, mode=mode)
    put_holds(place, range(1_001, 2_501), tenant="ann", due=NOON + LATER / 2)
    _pause(till, role, "ann", until=NOON + HOUR)
    _goes_on(till)
    assert _released(place) == {"bob": 3}
    place.advance(HOUR)
    _goes_on(till, 2)
    assert _released(place) == {"ann": 1_503, "bob": 3}
    assert place.table("guard", "kind") == []
    assert place.host.run(f"select 1 from {place.prefix}pause where ended_at is null") == []


@HEAVY_MODES
def test_a_backlog_of_a_paused_tenant_trips_no_guard(place: Place, mode: Mode) -> None:
    till = _shop(place, mode=mode)
    put_holds(place, range(1_001, 2_501), tenant="ann", due=NOON + LATER / 2)
    _pause(till, Role.WORK, "ann")
    _goes_on(till)
    put_holds(place, [3_001], tenant="bob", due=NOON - HOUR)
    _goes_on(till)
    assert _released(place) == {"bob": 4}
    Till.open(place, till.rule).run()
    _resume(till, Role.WORK, "ann")
    _goes_on(till)
    assert _released(place) == {"ann": 1_503, "bob": 4}
    assert place.table("guard", "kind") == []


def test_a_pause_of_every_rule_is_another_pause(place: Place) -> None:
    till = _shop(place)
    begin_pause(till.ledger, Pause(Role.WORK, None, None, "eve", "all of it", NOON))
    _pause(till, Role.WORK)
    _resume(till, Role.WORK)
    _goes_on(till)
    assert _released(place) == {}
    end_pause(till.ledger, (Role.WORK, None, None), ["cart"], "eve", "done")
    _goes_on(till, 1)
    assert _released(place) == {"ann": 3, "bob": 3}


def test_people_and_reasons_are_in_the_action_log(place: Place) -> None:
    till = _shop(place)
    _pause(till, Role.WORK, "ann")
    _pause(till, Role.WORK, "ann", until=NOON + HOUR)
    _resume(till, Role.WORK, "ann")
    sql = f"select actor, action, subject, reason, before, after from {place.prefix}action order by id"
    ends = "by eve: dispute, until 2026-03-10 13:00:00 UTC"
    subject = "cart, tenant ann"
    assert place.host.run(sql) == [
        ("eve", "pause work", subject, "dispute", "running", "by eve: dispute"),
        ("eve", "pause work", subject, "dispute", "by eve: dispute", ends),
        ("eve", "resume work", subject, "settled", ends, "running"),
    ]


def test_nothing_is_resumed_that_is_not_paused(place: Place) -> None:
    till = _shop(place)
    _pause(till, Role.WORK, "ann")
    with pytest.raises(RefusedByState, match="The work of cart is not paused"):
        _resume(till, Role.WORK)
