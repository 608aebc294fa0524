"""A row that takes its backend or the whole server down: found under a lease, and paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.application.work import CLEAN_BATCHES, PassEnd
from freehold.domain.errors import DatabaseAway
from freehold.ports.system import Boundary
from tests.behaviour.till import (
    LONGER_THAN_ANY_DELAY,
    Till,
    cart,
    dead,
    on_change,
    open_table,
    put_holds,
    status,
    statuses,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.behaviour.place import Place
    from tests.servers import PostgresServer

KILL = "begin perform pg_terminate_backend(pg_backend_pid()); return new; end"


class At:
    """A checkpoint that does something at one boundary, as often as it is told to."""

    def __init__(self, boundary: Boundary, act: Callable[[], None], times: int = 1) -> None:
        self.boundary, self.act, self.times = boundary, act, times

    def reach(self, boundary: Boundary) -> None:
        if boundary is self.boundary and self.times > 0:
            self.times -= 1
            self.act()


def test_a_row_that_ends_its_backend_stands_alone(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 101))
    on_change(pg, "kill", KILL, "new.id = 30")
    till = Till.open(pg, cart(pg))
    till.scanner.scan(till.rule)

    for _ in range(3):
        till.worker.work(till.rule)
    assert statuses(pg) == {"expired": 99, "held": 1}
    assert pg.rule("condition, leased, batch_limit") == ("active", True, 22)
    till.run_again(5)
    letter = dead(pg)["30"]
    assert (letter.attempt, letter.failure_class) == (6, "broken")
    assert "terminating connection" in letter.message
    assert len(pg.table("attempt", "attempt")) == 6
    assert pg.ends() == {"expired": 99}


def test_a_poison_row_beside_one_that_ends_its_backend(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 61))
    on_change(pg, "kill", KILL, "new.id in (30, 50)")
    on_change(pg, "no", "begin raise 'no'; end", "new.id in (5, 29, 31)")
    till = Till.open(pg, cart(pg))
    till.scanner.scan(till.rule)

    for _ in range(3):
        till.worker.work(till.rule)
    assert statuses(pg) == {"expired": 55, "held": 5}
    till.run_again(5)
    assert {key: letter.attempt for key, letter in dead(pg).items()} == dict.fromkeys(
        ("5", "29", "30", "31", "50"), 6
    )


def test_a_careful_rule_is_trusted_again_after_clean_batches(pg: Place) -> None:
    open_table(pg)
    put_holds(pg, range(1, 31))
    on_change(pg, "kill", KILL, "new.id = 30")
    till = Till.open(pg, cart(pg))
    till.run()
    assert pg.rule("leased, batch_limit") == (True, 22)
    pg.host.run("drop trigger kill on hold")

    put_holds(pg, range(100, 100 + 22 * CLEAN_BATCHES))
    pg.advance(LONGER_THAN_ANY_DELAY)
    till.scanner.scan(till.rule)
    sizes = [till.worker.work(till.rule).batch.released_count for _ in range(CLEAN_BATCHES)]
    assert sizes == [22] * CLEAN_BATCHES
    assert pg.rule("leased, batch_limit, crash_count") == (False, None, 0)
    assert till.worker.work(till.rule).batch.released_count == 1
    assert statuses(pg) == {"expired": 30 + 22 * CLEAN_BATCHES}


def test_two_restarts_with_the_rule_in_hand_pause_it(pg: Place, postgres: PostgresServer) -> None:
    open_table(pg)
    put_holds(pg, range(1, 11))
    twice = At(Boundary.RELEASED, postgres.restart)
    till = Till.open(pg, cart(pg), twice)
    pg.close()
    pg._host = None

    assert till.run().released_count == 10
    assert pg.rule("condition, crash_count") == ("active", 1)
    put_holds(pg, range(21, 31))
    pg.close()
    pg._host = None
    pg.advance(LONGER_THAN_ANY_DELAY)
    twice.times = 1
    till.scanner.scan(till.rule)
    assert till.worker.work(till.rule).end is PassEnd.PAUSED
    assert pg.rule("condition, reason") == (
        "paused",
        "the database server restarted 2 times with this rule in hand",
    )
    assert till.worker.work(till.rule).end is PassEnd.PAUSED
    till.run_again(2)
    assert statuses(pg) == {"expired": 20}


def test_a_loss_is_remembered_until_the_server_is_back(pg: Place, postgres: PostgresServer) -> None:
    open_table(pg)
    put_holds(pg, range(1, 11))
    till = Till.open(pg, cart(pg), At(Boundary.RELEASED, postgres.stop))
    till.scanner.scan(till.rule)
    pg.close()
    pg._host = None

    with pytest.raises(DatabaseAway):
        till.worker.work(till.rule)
    with pytest.raises(DatabaseAway):
        till.worker.work(till.rule)
    postgres.start()
    assert till.worker.work(till.rule).batch.released_count == 10
    assert pg.rule("leased, crash_count") == (True, 1)
    assert status(pg, 1) == "expired"
    assert pg.table("attempt", "attempt") == []
