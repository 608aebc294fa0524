"""The contract of assigning tallies in parts, where a tenant has too many for one transaction."""

from __future__ import annotations

from freehold.ports.ledger import Ledger
from freehold.ports.report_calendar import Closing
from freehold.testing.contracts.ground import Ground, only
from freehold.testing.contracts.report_calendar import (
    CLOSING,
    FIRST,
    HOUR,
    NEXT,
    START,
    enrol,
    next_closing,
    tally,
)


class PartsContract:
    """Give the fixture `ground`."""

    def test_no_more_tallies_are_assigned_than_asked_for(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a", "b", "c")
        for tenant in "aabbc":
            tally(ledger, tenant, 1)
        ground.set_now(FIRST.end_at)
        assert [_close(ledger, CLOSING, tallies_max=4) for _ in range(3)] == [1, 2, 0]
        assert [row["expired_count"] for row in ground.back.rows("report")] == [2, 2, 1]

    def test_a_giant_gets_its_tallies_in_parts(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a")
        ground.set_now(START - HOUR)
        tally(ledger, "a", 100)
        ground.set_now(START)
        for _ in range(4):
            tally(ledger, "a", 1)
        ground.set_now(FIRST.end_at)
        tally(ledger, "a", 1_000)
        assert _close(ledger, CLOSING, tallies_max=2) == 1
        assert _so_far(ground) == (None, 2)
        seen = []
        while _has_parts(ledger):
            assert _assign_part(ledger, 2)
            seen.append(_so_far(ground))
        assert seen == [(None, 4), (4, 5)]
        assert not _assign_part(ledger, 2)

    def test_a_report_in_parts_waits_for_its_tallies(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a", "b")
        tally(ledger, "a", 1)
        tally(ledger, "a", 1)
        ground.set_now(FIRST.end_at)
        assert _close(ledger, CLOSING, tallies_max=1) == 1
        assert _close(ledger, CLOSING) == 1
        with ledger.glance() as tx:
            waiting = tx.reports.overview(10).waiting
            assert [one.released_count for one in waiting] == [0]
            assert tx.reports.overview_of("a", FIRST.report_date).waiting == ()
        ground.set_now(NEXT.end_at)
        assert _close(ledger, next_closing()) == 1  # of b
        while _assign_part(ledger, 1):
            pass
        assert _close(ledger, next_closing()) == 1
        counted = [(row["tenant"], row["expired_count"]) for row in ground.back.rows("report")]
        assert counted == [("a", 2), ("b", 0), ("b", 0), ("a", 0)]

    def test_a_report_in_parts_in_other_hands_is_left_to_them(self, ground: Ground) -> None:
        if not ground.transactions_overlap():
            return  # the other one waits for the whole transaction
        first, second = ground.open(), ground.open()
        enrol(first, "a")
        tally(first, "a", 1)
        tally(first, "a", 1)
        ground.set_now(FIRST.end_at)
        assert _close(first, CLOSING, tallies_max=1) == 1
        with first.transaction() as tx, second.transaction() as other:
            assert tx.report_calendar.assign_part(1)
            assert not other.report_calendar.assign_part(1)


def _close(
    ledger: Ledger, closing: Closing, limit: int = 100, tallies_max: int | None = None
) -> int:
    with ledger.transaction() as tx:
        return tx.report_calendar.close(closing, limit, tallies_max=tallies_max)


def _so_far(ground: Ground) -> tuple[int | None, int]:
    """Return the count of the only report, and how many tallies are assigned."""
    assigned_count = sum(row["report_id"] is not None for row in ground.back.rows("tally"))
    return only(ground.back.rows("report"))["expired_count"], assigned_count


def _assign_part(ledger: Ledger, tallies_max: int) -> bool:
    with ledger.transaction() as tx:
        return tx.report_calendar.assign_part(tallies_max)


def _has_parts(ledger: Ledger) -> bool:
    with ledger.glance() as tx:
        return tx.report_calendar.in_parts()
