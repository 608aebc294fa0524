"""The contract of the reports' calendar and of the assignment of tallies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from freehold.domain.inventory import Tenant
from freehold.domain.reports import NOBODY, ReportReason, Window
from freehold.domain.tallies import Tally
from freehold.ports.ledger import Ledger
from freehold.ports.report_calendar import Closing, DueGroup, Newcomer
from freehold.testing.contracts.ground import NOW, SECOND, Abandoned, Ground, only, raised

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
START = NOW.replace(hour=0)
FIRST = Window(START.date(), START, START + DAY, "UTC", "2031a")
NEXT = Window(START.date() + DAY, START + DAY, START + 2 * DAY, "UTC", "2031a")
GROUP = DueGroup(FIRST, zone=None, hour=None, active=True, tenant_count=1)
CLOSING = Closing(GROUP, FIRST, NEXT, FIRST.end_at + 7 * HOUR)


class CalendarContract:
    """Give the fixture `ground`."""

    def test_active_tenants_and_owners_are_newcomers(self, ground: Ground) -> None:
        ledger = ground.open()
        _add(ledger, Tenant("a", "A", zone="Europe/Berlin"), Tenant("off", "O", active=False))
        tally(ledger, "b", 1)
        tally(ledger, "off", 1)
        tally(ledger, None, 1)
        assert _newcomers(ledger) == {
            "a": Newcomer("a", "Europe/Berlin", None, None),
            "b": Newcomer("b", None, NOW, None),
            NOBODY: Newcomer(NOBODY, None, NOW, None),
        }

    def test_newcomers_come_in_pages(self, ground: Ground) -> None:
        ledger = ground.open()
        names = [f"t{number}" for number in range(5)]
        _add(ledger, *(Tenant(name, name) for name in names))
        for name in [*names[3:], "u0", "u1"]:
            tally(ledger, name, 1)
        assert sorted(_newcomers(ledger, limit=2)) == [*names, "u0", "u1"]

    def test_nobody_in_the_calendar_is_a_newcomer(self, ground: Ground) -> None:
        ledger = ground.open()
        _add(ledger, Tenant("a", "A"))
        tally(ledger, "b", 1)
        tally(ledger, None, 1)
        enrol(ledger, "a", "b", NOBODY)
        assert _newcomers(ledger) == {}

    def test_a_newcomers_first_tally_is_its_oldest_unreported(self, ground: Ground) -> None:
        ledger = ground.open()
        for hours in (3, 1, 2):
            ground.set_now(START + hours * HOUR)
            tally(ledger, "b", 1)
        assert _newcomers(ledger)["b"].first_tally_at == START + HOUR

    def test_enrolling_again_changes_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        assert enrol(ledger, "a", "b") == 2
        with ledger.transaction() as tx:
            assert tx.report_calendar.enrol({"a": NEXT, "c": NEXT}) == 1
        assert [_window(row) for row in ground.back.rows("report_calendar")] == [FIRST, FIRST, NEXT]

    def test_moved_tenants_are_told_in_the_order_of_their_changes(self, ground: Ground) -> None:
        ledger = ground.open()
        _add(ledger, *(Tenant(name, name) for name in "abcd"))
        enrol(ledger, *"abcd")
        for name, zone, active in (("c", "Europe/Berlin", True), ("a", None, False)):
            ground.set_now(NOW + HOUR * (1 + "ca".index(name)))
            with ledger.transaction() as tx:
                tx.tenants.set([Tenant(name, name, zone=zone, active=active)])
        with ledger.transaction() as tx:
            found = tx.report_calendar.moved(NOW, "", "UTC", 10)
            assert [(one.tenant, one.zone, one.active, one.was_active) for one in found] == [
                ("c", "Europe/Berlin", True, True),
                ("a", None, False, True),
            ]
            assert (found[0].changed_at, found[0].window) == (NOW + HOUR, FIRST)
            assert tx.report_calendar.moved(NOW, "", "UTC", 1) == found[:1]
            assert tx.report_calendar.moved(NOW + HOUR, "c", "UTC", 10) == found[1:]

    def test_the_installations_zone_counts_for_tenants_without_one(self, ground: Ground) -> None:
        ledger = ground.open()
        _add(ledger, Tenant("a", "A"), Tenant("b", "B", zone="UTC"))
        enrol(ledger, "a", "b")
        with ledger.transaction() as tx:
            found = tx.report_calendar.moved(NOW, "", "Europe/Berlin", 10)
        assert [one.tenant for one in found] == ["a"]

    def test_outdated_rows_are_those_of_another_database(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a", "b", "c")
        newer = replace(FIRST, tz_version="2031b")
        with ledger.transaction() as tx:
            tx.report_calendar.reckon({"b": newer}, {})
            assert tx.report_calendar.outdated("2031b", "", 10) == [("a", FIRST), ("c", FIRST)]
            assert tx.report_calendar.outdated("2031b", "a", 10) == [("c", FIRST)]
            assert tx.report_calendar.outdated("2031a", "", 10) == [("b", newer)]
            tx.report_calendar.reckon({"b": newer}, {"b": False})
            assert tx.report_calendar.outdated("2031a", "", 10) == []

    def test_a_row_is_reckoned_anew_where_it_begins_as_given(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a", "b", "c")
        longer = replace(FIRST, end_at=FIRST.end_at + HOUR, zone="Etc/GMT+1", tz_version="2031b")
        with ledger.transaction() as tx:
            count = tx.report_calendar.reckon({"a": longer, "b": NEXT, "c": FIRST}, {"c": False})
            assert count == 2
        rows = ground.back.rows("report_calendar")
        assert [_window(row) for row in rows] == [longer, FIRST, FIRST]
        assert [bool(row["active"]) for row in rows] == [True, True, False]

    def test_a_group_is_adjusted_in_pages(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a", "b", "c")
        longer = replace(FIRST, end_at=FIRST.end_at + HOUR)
        with ledger.transaction() as tx:
            assert tx.report_calendar.adjust(GROUP, longer, 2) == 2
            assert tx.report_calendar.adjust(GROUP, longer, 2) == 1
            assert tx.report_calendar.adjust(GROUP, longer, 2) == 0
        assert {_window(row) for row in ground.back.rows("report_calendar")} == {longer}

    def test_adjusting_follows_whether_the_group_is_active(self, ground: Ground) -> None:
        ledger = ground.open()
        _add(ledger, Tenant("a", "A", active=False))
        enrol(ledger, "a", "b")
        with ledger.transaction() as tx:
            group = only_group(tx.report_calendar.due(FIRST.end_at, 10), active=False)
            assert tx.report_calendar.adjust(group, FIRST, 10) == 1
        rows = ground.back.rows("report_calendar")
        assert [bool(row["active"]) for row in rows] == [False, True]

    def test_the_next_end_is_the_earliest_of_active_rows(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            assert tx.report_calendar.next_end() is None
            tx.report_calendar.enrol({"a": NEXT, "b": FIRST})
            assert tx.report_calendar.next_end() == FIRST.end_at
            tx.report_calendar.reckon({"b": FIRST}, {"b": False})
            assert tx.report_calendar.next_end() == NEXT.end_at

    def test_the_watermark_lies_behind_where_others_may_write(self, ground: Ground) -> None:
        ledger = ground.open()
        with ledger.transaction() as tx:
            margin = 60 * SECOND if ground.transactions_overlap() else timedelta(0)
            assert tx.report_calendar.watermark() <= NOW - margin
            assert tx.report_calendar.watermark() > NOW - 120 * SECOND

    def test_one_row_alone_is_a_group(self, ground: Ground) -> None:
        ledger = ground.open()
        _add(ledger, Tenant("a", "A", zone="Europe/Berlin", report_hour=5))
        enrol(ledger, "a", "b")
        with ledger.transaction() as tx:
            mine = DueGroup(FIRST, "Europe/Berlin", 5, active=True, tenant_count=1)
            assert tx.report_calendar.group_of("a") == mine
            assert tx.report_calendar.group_of("b") == GROUP
            tx.report_calendar.reckon({"b": FIRST}, {"b": False})
            assert tx.report_calendar.group_of("b") is None
            assert tx.report_calendar.group_of("never met") is None


class AssignmentContract:
    """Give the fixture `ground`."""

    def test_a_window_is_due_from_its_end_on(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a")
        with ledger.transaction() as tx:
            assert list(tx.report_calendar.due(FIRST.end_at - SECOND, 10)) == []
            assert list(tx.report_calendar.due(FIRST.end_at, 10)) == [GROUP]

    def test_groups_share_everything_and_come_by_their_end(self, ground: Ground) -> None:
        ledger = ground.open()
        _add(
            ledger,
            Tenant("a", "A"),
            Tenant("b", "B", report_hour=5),
            Tenant("c", "C", zone="Europe/Berlin"),
            Tenant("d", "D", active=False),
        )
        enrol(ledger, *"abcde")
        with ledger.transaction() as tx:
            tx.report_calendar.enrol({"z": NEXT})
            found = tx.report_calendar.due(NEXT.end_at, 10)
            assert found[-1].window == NEXT
            assert {(one.zone, one.hour, one.active, one.tenant_count) for one in found[:-1]} == {
                (None, None, True, 2),
                (None, 5, True, 1),
                ("Europe/Berlin", None, True, 1),
                (None, None, False, 1),
            }

    def test_no_more_is_read_than_asked_for(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, *"abcde")
        with ledger.transaction() as tx:
            assert [one.tenant_count for one in tx.report_calendar.due(FIRST.end_at, 3)] == [3]

    def test_closing_writes_the_report_and_moves_the_calendar_on(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a")
        ground.set_now(FIRST.end_at + HOUR)
        assert _close(ledger, CLOSING) == 1
        row = only(ground.back.rows("report"))
        assert (row["tenant"], row["state"], row["reason"]) == ("a", "assigned", None)
        assert str(row["report_date"]) == "2031-05-06"
        assert (row["start_at"], row["end_at"]) == (FIRST.start_at, FIRST.end_at)
        assert (row["zone"], row["tz_version"]) == ("UTC", "2031a")
        assert (row["due_at"], row["assigned_at"]) == (CLOSING.due_at, FIRST.end_at + HOUR)
        assert FIRST.end_at <= row["watermark_at"] <= FIRST.end_at + HOUR
        assert (row["expired_count"], row["facts"]) == (0, None)
        assert _window(only(ground.back.rows("report_calendar"))) == NEXT

    def test_every_unreported_tally_before_the_end_is_assigned(self, ground: Ground) -> None:
        ledger = ground.open()
        for at, count in ((START - DAY, 1), (START, 2), (NOW, 4), (FIRST.end_at, 8)):
            ground.set_now(at)
            tally(ledger, "a", count)
            tally(ledger, None, 10 * count)
            tally(ledger, "other", 100)
        enrol(ledger, "a", NOBODY)
        ground.set_now(FIRST.end_at + HOUR)
        assert _close(ledger, CLOSING) == 2
        reports = {row["id"]: row for row in ground.back.rows("report")}
        assert {row["tenant"]: row["expired_count"] for row in reports.values()} == {
            "a": 6,
            NOBODY: 60,
        }
        for row in ground.back.rows("tally"):
            if row["tenant"] == "other" or row["at"] >= FIRST.end_at:
                assert row["report_id"] is None
            else:
                assert reports[row["report_id"]]["tenant"] == (row["tenant"] or NOBODY)

    def test_what_comes_late_is_in_the_next_report(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a")
        ground.set_now(FIRST.end_at + HOUR)
        _close(ledger, CLOSING)
        ground.set_now(FIRST.end_at - SECOND)
        tally(ledger, "a", 3)
        ground.set_now(NEXT.start_at)
        tally(ledger, "a", 5)
        ground.set_now(NEXT.end_at)
        assert _close(ledger, next_closing()) == 1
        second = ground.back.rows("report")[1]
        assert second["expired_count"] == 5
        assert [row["report_id"] for row in ground.back.rows("tally")] == [second["id"]] * 2

    def test_a_tally_keeps_its_report(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a")
        tally(ledger, "a", 3)
        ground.set_now(FIRST.end_at)
        _close(ledger, CLOSING)
        before = ground.back.rows("tally")
        ground.set_now(NEXT.end_at)
        _close(ledger, next_closing())
        assert ground.back.rows("tally") == before
        assert [row["expired_count"] for row in ground.back.rows("report")] == [3, 0]

    def test_closing_again_writes_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a", "b")
        ground.set_now(FIRST.end_at)
        assert (_close(ledger, CLOSING), _close(ledger, CLOSING)) == (2, 0)
        assert len(ground.back.rows("report")) == 2

    def test_a_page_is_closed_at_a_time(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a", "b", "c")
        ground.set_now(FIRST.end_at)
        assert [_close(ledger, CLOSING, limit=2) for _ in range(3)] == [2, 1, 0]

    def test_one_tenant_of_a_group_can_be_closed_alone(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a", "b", "c")
        ground.set_now(FIRST.end_at)
        with ledger.transaction() as tx:
            assert tx.report_calendar.close(CLOSING, 10, "b") == 1
            assert tx.report_calendar.close(CLOSING, 10, "b") == 0
        assert [row["tenant"] for row in ground.back.rows("report")] == ["b"]

    def test_those_of_other_groups_are_left(self, ground: Ground) -> None:
        ledger = ground.open()
        _add(ledger, Tenant("b", "B", report_hour=5), Tenant("c", "C", active=False))
        _add(ledger, Tenant("d", "D", zone="Europe/Berlin"))
        enrol(ledger, *"abcd")
        ground.set_now(FIRST.end_at)
        assert _close(ledger, CLOSING) == 1
        assert [row["tenant"] for row in ground.back.rows("report")] == ["a"]
        berlin = replace(CLOSING, group=replace(GROUP, zone="Europe/Berlin"))
        assert _close(ledger, berlin) == 1

    def test_a_recorded_report_has_its_reason(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a")
        ground.set_now(FIRST.end_at)
        _close(ledger, replace(CLOSING, reason=ReportReason.MISSED))
        row = only(ground.back.rows("report"))
        assert (row["state"], row["reason"]) == ("assigned", ReportReason.MISSED.value)

    def test_an_abandoned_closing_leaves_nothing(self, ground: Ground) -> None:
        ledger = ground.open()
        enrol(ledger, "a")
        tally(ledger, "a", 3)
        ground.set_now(FIRST.end_at)
        with raised(Abandoned), ledger.transaction() as tx:
            tx.report_calendar.close(CLOSING, 10)
            raise Abandoned
        assert ground.back.rows("report") == []
        assert only(ground.back.rows("tally"))["report_id"] is None
        assert _close(ledger, CLOSING) == 1

    def test_tenants_in_other_hands_are_left_to_them(self, ground: Ground) -> None:
        if not ground.transactions_overlap():
            return  # the other one waits for the whole transaction, and finds nothing after it
        first, second = ground.open(), ground.open()
        enrol(first, *"abc")
        ground.set_now(FIRST.end_at)
        with first.transaction() as tx, second.transaction() as other:
            assert tx.report_calendar.close(CLOSING, 2) == 2
            assert other.report_calendar.close(CLOSING, 2) == 1
        assert sorted(row["tenant"] for row in ground.back.rows("report")) == ["a", "b", "c"]

    def test_looking_takes_no_lock(self, ground: Ground) -> None:
        first, second = ground.open(), ground.open()
        enrol(first, "a")
        with first.transaction(), second.glance() as tx:
            assert list(tx.report_calendar.due(FIRST.end_at, 10)) == [GROUP]


def only_group(groups: Sequence[DueGroup], *, active: bool) -> DueGroup:
    """Return the only group that is active, or the only one that is not."""
    (found,) = [one for one in groups if one.active is active]
    return found


def next_closing() -> Closing:
    """Return the closing of the day after."""
    after = Window(date(2031, 5, 8), NEXT.end_at, NEXT.end_at + DAY, "UTC", "2031a")
    return Closing(replace(GROUP, window=NEXT), NEXT, after, NEXT.end_at + 7 * HOUR)


def _newcomers(ledger: Ledger, limit: int = 100) -> dict[str, Newcomer]:
    found: dict[str, Newcomer] = {}
    after: str | None = ""
    while after is not None:
        with ledger.glance() as tx:
            page, after = tx.report_calendar.newcomers(after, limit)
        found |= {one.tenant: one for one in page}
    return found


def _add(ledger: Ledger, *tenants: Tenant) -> None:
    with ledger.transaction() as tx:
        tx.tenants.add(tenants)


def enrol(ledger: Ledger, *tenants: str) -> int:
    """Give tenants their first window."""
    with ledger.transaction() as tx:
        return tx.report_calendar.enrol(dict.fromkeys(tenants, FIRST))


def tally(ledger: Ledger, tenant: str | None, expired_count: int) -> None:
    """Write a tally, now."""
    told = Tally("r", tenant, expired_count=expired_count)
    with ledger.transaction() as tx:
        tx.operations.add_tallies([told])


def _close(ledger: Ledger, closing: Closing, limit: int = 100) -> int:
    with ledger.transaction() as tx:
        return tx.report_calendar.close(closing, limit)


def _window(row: Mapping[str, Any]) -> Window:
    day = date.fromisoformat(str(row["next_date"]))
    return Window(day, row["start_at"], row["end_at"], row["zone"], row["tz_version"])
