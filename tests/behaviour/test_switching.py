"""Modes are switched in place: work of the one is open while processes of the other run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.system import Onwards, SystemClock
from freehold.application.audit import audit
from freehold.application.sweep import Sweeper
from freehold.domain.errors import DatabaseBusy
from freehold.domain.rules import Mode, Rule
from tests.behaviour.place import NOON
from tests.behaviour.till import Till, cart, open_table, put_holds, refuse, statuses

if TYPE_CHECKING:
    from tests.behaviour.place import Place

SWITCHES = list(permutations(Mode, 2))
HOLDS = 240


def run_until(till: Till, ended: Event, troubles: list[BaseException]) -> None:
    """Scan and work as a service does, until the test has what it wants."""
    try:
        while not ended.is_set():
            try:
                till.scanner.scan(till.rule)
                till.worker.work(till.rule)
            except DatabaseBusy:
                SystemClock().sleep(0.001)
    except BaseException as error:  # noqa: BLE001 - told by the test's own thread
        troubles.append(error)


def leave_open_work(place: Place, rule: Rule) -> Till:
    """Leave a poison row, an operation or a window that nobody took, and holds that are due."""
    put_holds(place, range(1, HOLDS // 2))
    refuse(place, "new.id = 7", "no")
    till = Till.open(place, rule)
    till.scanner.scan(rule, pages_most=2)
    till.worker.work(rule)
    put_holds(place, range(HOLDS // 2, HOLDS + 1), due=NOON - timedelta(seconds=1))
    till.scanner.scan(rule, pages_most=1)
    return till


@pytest.mark.parametrize(("before", "after"), SWITCHES, ids=[f"{a}-{b}" for a, b in SWITCHES])
def test_a_switch_under_load_releases_each_hold_once(
    place: Place, before: Mode, after: Mode
) -> None:
    open_table(place)
    old = cart(place, mode=before, batch_size=20)
    new = replace(old, mode=after)
    tills = [leave_open_work(place, old), *(Till.open(place, rule) for rule in (old, new, new))]
    ended, troubles = Event(), list[BaseException]()
    threads = [Thread(target=run_until, args=(till, ended, troubles)) for till in tills[1:]]
    for thread in threads:
        thread.start()
    while sum(statuses(place).values()) and statuses(place)["held"] > 1 and not troubles:
        place.advance(timedelta(seconds=16))
        SystemClock().sleep(0.01)
    ended.set()
    for thread in threads:
        thread.join()
    assert not troubles
    last = Till.open(place, new)
    for _ in range(8):
        place.advance(timedelta(seconds=1_000))
        Sweeper(last.ledger, Onwards(), last.scanner).sweep([new])
        last.run_again(1, timedelta(0))
    assert statuses(place) == {"expired": HOLDS - 1, "held": 1}
    released = place.host.run(
        f"select count(*) from {place.prefix}record where outcome = 'expired'"
    )
    assert released == [(HOLDS - 1,)]
    assert place.table("operation", "hold_key, state") == [("7", "dead")]
    assert not [one for one in audit(last.ledger, (new,)) if not one.clean]
