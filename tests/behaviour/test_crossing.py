"""Two rules whose companions lock the same rows in opposite order: both finish, whoever gives way."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql.session import Limits
from freehold.domain.rules import Companion, Mode, TableName
from freehold.ports.system import Boundary
from tests.behaviour.till import HOLDS, Till, cart, open_table, put_holds

if TYPE_CHECKING:
    from freehold.domain.rules import Rule
    from tests.behaviour.place import Place

PATIENT = Limits(
    lock_timeout_ms=5_000
)  # longer than the server waits before it looks for deadlocks
GIVE_BACK = "update counter set free = free + 1 where id = {id}"


@dataclass
class Meeting:
    """Two transactions wait for each other between their companions, the first time only."""

    barrier: threading.Barrier | None
    met: set[int] = field(default_factory=set)

    def reach(self, boundary: Boundary) -> None:
        """Wait for the other one, once it holds its first row too."""
        me = threading.get_ident()
        if (
            self.barrier is not None
            and boundary is Boundary.COMPANIONS_BEFORE
            and me not in self.met
        ):
            self.met.add(me)
            with suppress(threading.BrokenBarrierError):
                self.barrier.wait(10)


def _rule(place: Place, name: str, table: str, counters: tuple[int, int], mode: Mode) -> Rule:
    first, second = counters
    companions = (
        Companion(GIVE_BACK.format(id=first), 1, 1, before=True),
        Companion(GIVE_BACK.format(id=second), 1, 1),
    )
    return cart(place, name=name, table=TableName(table), companions=companions, mode=mode)


def _open(place: Place) -> None:
    open_table(place)
    place.host.run(HOLDS[place.dialect].replace("hold", "other", 1))
    place.host.run("create table counter (id integer primary key, free integer not null)")
    place.host.insert("counter", [{"id": 1, "free": 0}, {"id": 2, "free": 0}])
    put_holds(place, [1])
    place.host.run("insert into other select * from hold")


@pytest.mark.parametrize(
    "mode",
    [
        Mode.RESERVATION,
        pytest.param(Mode.DIRECT, marks=pytest.mark.proof),
        pytest.param(Mode.WINDOW, marks=pytest.mark.proof),
    ],
)
def test_a_deadlock_of_two_rules_is_repeated_and_spends_no_attempt(
    place: Place, mode: Mode
) -> None:
    _open(place)
    # One writer at a time cannot meet another: on SQLite the second waits before it locks a row.
    meeting = Meeting(threading.Barrier(2) if place.dialect == "postgres" else None)
    rules = (_rule(place, "a", "hold", (1, 2), mode), _rule(place, "b", "other", (2, 1), mode))
    tills = [Till.open(place, rule, meeting, limits=PATIENT) for rule in rules]
    troubles: list[BaseException] = []

    def run(till: Till) -> None:
        try:
            till.run()
        except BaseException as error:  # noqa: BLE001 - raised again by the test's own thread
            troubles.append(error)

    threads = [threading.Thread(target=run, args=(till,)) for till in tills]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not troubles
    assert len(meeting.met) == (2 if place.dialect == "postgres" else 0)
    assert place.host.run("select free from counter order by id") == [(2,), (2,)]
    ended = place.host.run(f"select rule from {place.prefix}record where outcome = 'expired'")
    assert sorted(ended) == [("a",), ("b",)]
    assert place.host.run(f"select count(*) from {place.prefix}attempt") == [(0,)]
    assert place.host.run(f"select count(*) from {place.prefix}operation") == [(0,)]
