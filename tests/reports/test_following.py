"""The calendar follows whoever has days: newcomers, tenants that move, come and go, the tz database."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from freehold.application.reporting import calendar
from freehold.domain import days
from freehold.domain.due_walls import zone_info
from freehold.domain.reports import ReportReason
from tests.reports.book import utc

if TYPE_CHECKING:
    import pytest

    from tests.reports.book import Book

INACTIVE = f" {ReportReason.INACTIVE.value}"


class TestEnrolling:
    """Who is in the calendar, and since when."""

    def test_tenants_begin_today_in_their_zone(self, book: Book) -> None:
        book.tenant("berlin", zone="Europe/Berlin")
        book.tenant("line", zone="Pacific/Kiritimati")
        book.tenant("off", active=False)
        book.close()
        assert book.window_in_hand("berlin") == (
            date(2026, 3, 10), utc("2026-03-09 23:00"), utc("2026-03-10 23:00"),
        )  # fmt: skip
        assert book.window_in_hand("line")[0] == date(2026, 3, 11)
        assert len(book.ground.back.rows("report_calendar")) == 2

    def test_owners_of_releases_begin_at_the_first(self, book: Book) -> None:
        book.release("a")
        book.release(None)
        book.pass_on(days=2)
        book.close()
        assert book.days("a") == book.days("") == ["2026-03-10", "2026-03-11"]
        assert [row["expired_count"] for row in book.reports("a")] == [1, 0]

    def test_what_lies_far_back_comes_with_the_first_report(self, book: Book) -> None:
        book.release("a", 5)
        book.pass_on(days=30)
        book.release("a", 2)
        book.close()
        assert book.reports() == []
        book.pass_on(days=1)
        book.close()
        assert book.days("a") == ["2026-04-09"]
        assert {row["report_id"] for row in book.ground.back.rows("tally")} == {
            book.reports("a")[0]["id"]
        }
        assert book.reports("a")[0]["expired_count"] == 2

    def test_a_tenant_from_before_goes_on_where_its_last_report_ended(self, book: Book) -> None:
        book.tenant("a")
        book.close()
        book.at("2026-03-11 00:02")
        book.close()
        assert book.door.execute("delete from {s}report_calendar") == 1
        book.at("2026-03-12 12:00")
        book.restart()
        book.close()
        assert book.days("a") == ["2026-03-10", "2026-03-11"]

    def test_a_zone_unheard_of_is_passed_over(self, book: Book) -> None:
        book.tenant("a", zone="Europe/Nowhere")
        book.tenant("b")
        book.close()
        book.at("2026-03-11 00:02")
        book.close()
        assert book.days("a") == book.days("b") == ["2026-03-10"]


class TestMoves:
    """Tenants change while their window is open."""

    def test_a_move_west_lets_the_day_end_later(self, book: Book) -> None:
        book.tenant("a", zone="Europe/Berlin")
        book.close()
        book.pass_on(minutes=2)
        book.tenant("a", zone="America/New_York")
        book.close()
        assert book.window_in_hand("a")[1:] == (utc("2026-03-09 23:00"), utc("2026-03-11 04:00"))
        book.at("2026-03-10 23:30")
        assert book.close().report_count == 0

    def test_a_move_is_seen_at_the_end_whatever_was_followed(self, book: Book) -> None:
        book.tenant("a", zone="Europe/Berlin")
        book.at("2026-03-10 22:59:30")
        book.close()
        book.tenant("a", zone="America/New_York")
        book.at("2026-03-10 23:00:29")  # too soon to look at the tenants again
        assert book.close().report_count == 0
        assert book.window_in_hand("a")[2] == utc("2026-03-11 04:00")

    def test_a_move_across_the_date_line_skips_a_date_and_no_release(self, book: Book) -> None:
        book.tenant("a", zone="Pacific/Honolulu")
        book.close()
        book.at("2026-03-11 10:02")
        book.close()
        book.tenant("a", zone="Pacific/Kiritimati")
        book.release("a", 3)
        book.at("2026-03-13 10:02")
        book.close()
        assert book.days("a") == ["2026-03-10", "2026-03-12", "2026-03-13"]
        assert [row["expired_count"] for row in book.reports("a")] == [0, 3, 0]

    def test_another_tz_database_moves_the_end_of_open_days(
        self, book: Book, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        book.tenant("a", zone="Africa/Casablanca")
        book.tenant("b", zone="Africa/Casablanca", report_hour=5)
        book.close()
        before = book.window_in_hand("a")[2]
        other, real = zone_info("Etc/GMT+3"), zone_info
        monkeypatch.setattr(
            days, "zone_info", lambda name: other if name == "Africa/Casablanca" else real(name)
        )
        for module in (days, calendar):
            monkeypatch.setattr(module, "tz_version", lambda: "2099z")
        book.restart()
        book.at("2026-03-11 01:30")
        assert before < utc("2026-03-11 01:30")
        assert book.close().report_count == 0
        assert book.window_in_hand("a")[2] == book.window_in_hand("b")[2] == utc("2026-03-11 03:00")
        assert book.in_hand("a")["tz_version"] == "2099z"

    def test_who_is_inactive_gets_no_reports(self, book: Book) -> None:
        book.tenant("a")
        book.close()
        book.tenant("a", active=False)
        book.at("2026-03-11 00:02")
        assert (book.close().report_count, book.close().waiting_until) == (0, None)
        assert not book.in_hand("a")["active"]
        assert book.closer().next_end() is None

    def test_who_comes_back_has_one_record_of_the_time_between(self, book: Book) -> None:
        book.tenant("a", zone="Europe/Berlin")
        book.close()
        book.tenant("a", zone="Europe/Berlin", active=False)
        book.release("a", 7)
        book.pass_on(days=9)
        book.close()
        assert book.reports() == []
        book.tenant("a", zone="Europe/Berlin")
        book.pass_on(minutes=2)
        book.close()
        assert book.days("a") == [f"2026-03-18{INACTIVE}"]
        assert book.reports("a")[0]["expired_count"] == 7
        assert book.window_in_hand("a")[0] == date(2026, 3, 19)
        assert book.in_hand("a")["active"]

    def test_who_comes_back_within_the_day_loses_nothing(self, book: Book) -> None:
        book.tenant("a")
        book.close()
        book.tenant("a", active=False)
        book.pass_on(minutes=2)
        book.close()
        book.tenant("a")
        book.pass_on(minutes=2)
        book.close()
        book.at("2026-03-11 00:02")
        book.close()
        assert book.days("a") == ["2026-03-10"]
