"""A hold that comes due again under an identity whose operation has ended."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from freehold.adapters.system import Onwards
from freehold.application.places import FULL_EVERY
from freehold.application.sweep import Sweeper
from freehold.domain.expiry import DUE_AGAIN
from freehold.domain.operations import GENERATIONS_MAX
from freehold.domain.rules import Again
from freehold.ports.system import Boundary
from tests.behaviour.till import Till, cart, open_table, put_holds, status

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.behaviour.place import Place


def _set_status(place: Place, value: str) -> None:
    place.host.run("update hold set status = :value where id = 1", value=value)


def _skip_once(till: Till) -> None:
    """Let the host take the hold away between scan and work, and hold it again afterwards."""
    till.place.advance(FULL_EVERY)
    assert till.scanner.scan(till.rule).new_count == 1
    _set_status(till.place, "pending")
    till.worker.work(till.rule)
    _set_status(till.place, "held")


def test_a_skipped_hold_that_is_held_again_is_released(place: Place) -> None:
    open_table(place)
    put_holds(place, [1])
    till = Till.open(place, cart(place))
    _skip_once(till)
    assert place.ends() == {"no longer held": 1}

    place.advance(FULL_EVERY)
    assert till.run().released_count == 1
    assert place.table("record", "generation, outcome") == [(1, "skipped"), (2, "expired")]
    assert place.table("outbox", "generation") == [(2,)]


def test_a_scan_comes_back_to_what_became_due_long_ago(place: Place) -> None:
    """Between its visits to the beginning a scan reads only what came due since."""
    open_table(place)
    put_holds(place, [1])
    till = Till.open(place, cart(place))
    _skip_once(till)

    place.advance(timedelta(seconds=12))
    assert till.scanner.scan(till.rule).found_count == 0
    place.advance(FULL_EVERY - timedelta(seconds=12))
    assert till.scanner.scan(till.rule).new_count == 1


def test_due_again_after_it_expired_goes_to_a_person(place: Place) -> None:
    open_table(place)
    put_holds(place, [1])
    till = Till.open(place, cart(place))
    assert till.run().released_count == 1
    _set_status(place, "held")

    place.advance(FULL_EVERY)
    assert till.run().buried_count == 1
    assert status(place, 1) == "held"
    assert place.table("operation", "state, reason, generation") == [("dead", DUE_AGAIN, 2)]
    assert place.ends() == {"expired": 1}
    till.run_again(3)
    assert len(place.table("operation", "id")) == 1


def test_due_again_after_it_expired_is_released_where_the_rule_says_so(place: Place) -> None:
    open_table(place)
    put_holds(place, [1])
    till = Till.open(place, cart(place, again=Again.RELEASE))
    for _ in range(3):
        place.advance(FULL_EVERY)
        assert till.run().released_count == 1
        _set_status(place, "held")
    assert place.table("record", "generation") == [(1,), (2,), (3,)]
    assert len(place.events()) == 3


def test_too_many_generations_go_to_a_person(place: Place) -> None:
    open_table(place)
    put_holds(place, [1])
    till = Till.open(place, cart(place))
    for _ in range(GENERATIONS_MAX):
        _skip_once(till)

    place.advance(FULL_EVERY)
    assert till.run().total == 0
    assert place.table("operation", "state, generation") == [("dead", GENERATIONS_MAX + 1)]
    assert status(place, 1) == "held"
    _set_status(place, "paid")
    Sweeper(till.ledger, Onwards(), till.scanner).sweep([till.rule])
    assert place.table("operation", "id") == []
    assert place.ends() == {"no longer held": GENERATIONS_MAX + 1}


class _AfterReading:
    """A checkpoint that does something once, when a scan has read its page."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._acts = [act]

    def reach(self, boundary: Boundary) -> None:
        if boundary is Boundary.DUE_READ and self._acts:
            self._acts.pop()()


def test_two_schedulers_never_count_one_generation_twice(pg: Place) -> None:
    """A second scheduler finds and ends the operation between the first one's read and write."""
    open_table(pg)
    quick = Till.open(pg, cart(pg))
    quick.run()  # the rule is attached, over an empty table
    put_holds(pg, [1])
    slow = Till.open(pg, cart(pg), checkpoint=_AfterReading(lambda: _skip_once(quick)))

    assert slow.scanner.scan(slow.rule).new_count == 1
    assert slow.worker.work(slow.rule).batch.released_count == 1
    assert pg.table("record", "generation, outcome") == [(1, "skipped"), (2, "expired")]
