"""Days close: once, not before their end, in the tenant's zone, with everything that belongs to them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from freehold.adapters.sql import report_calendar as calendar_adapter
from freehold.adapters.sql.ledger import SqlLedger, WatchedClock
from freehold.adapters.system import Onwards
from freehold.application.prune import Pruner
from freehold.application.reporting import closing
from freehold.application.reporting.closing import Closer
from freehold.domain.errors import RefusedByState, StatementTimedOut, UsageError
from freehold.domain.reports import ReportReason
from freehold.domain.tallies import Tally
from freehold.ports.ledger import GuardKind
from freehold.ports.report_calendar import Closing
from freehold.ports.retention import Subject
from freehold.ports.system import Boundary
from freehold.ports.telemetry import ReportsClosed
from freehold.settings.values import RetentionSettings
from freehold.testing.crash import Recorder
from tests.behaviour.hosts import HostClock
from tests.contract.grounds import Agreeing, ground_at
from tests.reports.book import POLICY, Book, utc

MINUTE = timedelta(minutes=1)
MISSED = f" {ReportReason.MISSED.value}"


def _watching(book: Book, host: HostClock) -> Closer:
    """Return a closer that compares the database's clock with its host's."""
    watched = WatchedClock("alpha", host)
    ledger = SqlLedger(book.ground.open().session, Onwards(), watched)
    return Closer(ledger, POLICY, Onwards())


class TestTheEnd:
    """When a window closes."""

    def test_no_day_closes_before_it_is_over(self, book: Book) -> None:
        book.tenant("a")
        book.close()
        book.at("2026-03-10 23:59:59.999999")
        assert (book.close().report_count, book.closer().next_end()) == (0, utc("2026-03-11 00:00"))

    def test_a_day_closes_once_no_earlier_release_can_come(self, book: Book) -> None:
        book.tenant("a")
        book.close()
        book.at("2026-03-11 00:00")
        first = book.close()
        if book.ground.transactions_overlap():
            assert (first.report_count, first.waiting_until) == (0, utc("2026-03-11 00:00:05"))
            book.at("2026-03-11 00:01")
            first = book.close()
        assert (first.report_count, first.waiting_until) == (1, None)
        assert book.closer().next_end() == utc("2026-03-12 00:00")

    def test_an_open_transaction_is_waited_for_at_most_the_delay(
        self, book: Book, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not book.ground.transactions_overlap():
            return  # who writes there keeps the closing itself waiting
        monkeypatch.setattr(calendar_adapter, "MARGIN", timedelta(0))
        book.tenant("a")
        book.close()
        with book.ground.open().transaction():
            book.at("2026-03-11 00:00")
            assert book.close().waiting_until == utc("2026-03-11 00:00:05")
            book.policy = replace(POLICY, close_delay=timedelta(seconds=2))
            assert book.closer().close().waiting_until == utc("2026-03-11 00:00:02")
            book.policy = replace(POLICY, close_delay=timedelta(0))
            assert book.closer().close().report_count == 1
        assert book.reports("a")[0]["watermark_at"] < utc("2026-03-11 00:00")

    def test_a_transaction_that_ends_lets_the_day_close(
        self, book: Book, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not book.ground.transactions_overlap():
            return
        monkeypatch.setattr(calendar_adapter, "MARGIN", timedelta(0))
        book.tenant("a")
        book.close()
        with book.ground.open().transaction():
            book.at("2026-03-11 00:00")
            assert book.close().report_count == 0
        assert book.close().report_count == 1

    def test_nothing_closes_while_the_clock_is_in_doubt(self, book: Book) -> None:
        book.tenant("a")
        book.close()
        book.at("2026-03-11 00:02")
        with book.ledger.transaction() as tx:
            tx.guards.trip(GuardKind.CLOCK, None, "the clock was moved", {})
        assert book.close().waiting_until == utc("2026-03-11 00:03")
        assert book.reports() == []

    @pytest.mark.parametrize("began_at", ["12:00", "23:10"])
    def test_nothing_closes_by_a_clock_that_jumped_ahead(self, book: Book, began_at: str) -> None:
        book.tenant("a")
        book.at(f"2026-03-10 {began_at}")
        host = HostClock(utc(f"2026-03-10 {began_at}"))
        closer = _watching(book, host)
        assert closer.close().report_count == 0
        host.sleep((utc("2026-03-10 23:10") - host.at).total_seconds())
        host.at = utc("2026-03-10 23:10")
        book.at("2026-03-11 00:10")
        for _ in range(2):
            assert closer.close().waiting_until == utc("2026-03-11 00:11")
        with pytest.raises(RefusedByState, match=r"does not close: the database's clock moved 1 h"):
            closer.build("a", date(2026, 3, 10))
        assert book.reports() == []
        host.sleep(3_540)
        host.at = utc("2026-03-11 00:09")
        book.at("2026-03-11 00:09")
        assert closer.close().report_count == 1
        assert book.ground.back.rows("guard")[0]["released_by"] is None
        assert book.ground.back.rows("guard")[0]["released_at"] is not None

    def test_a_clock_set_back_closes_no_day_twice(self, book: Book) -> None:
        book.tenant("a")
        host = HostClock(utc("2026-03-10 12:00"))
        closer = _watching(book, host)
        closer.close()
        host.sleep(12 * 3_600 + 120)
        book.at("2026-03-11 00:02")
        assert closer.close().report_count == 1
        book.release("a", 2)
        book.at("2026-03-10 23:02")
        book.release("a", 3)
        for _ in range(2):
            assert closer.close() == closing.Closed(0)
        host.sleep(24 * 3_600)
        book.at("2026-03-12 00:02")
        assert closer.close().report_count == 1
        assert (book.days("a"), book.conserved()) == (["2026-03-10", "2026-03-11"], (5, 5))
        assert book.broken() == []

    def test_mails_leave_at_the_tenants_hour_or_the_installations(self, book: Book) -> None:
        book.tenant("a", zone="Europe/Berlin", report_hour=5)
        book.tenant("b", zone="Asia/Kolkata", report_hour=23)
        book.tenant("c")
        book.close()
        book.at("2026-03-11 00:02")
        book.close()
        assert {row["tenant"]: row["due_at"] for row in book.reports()} == {
            "a": utc("2026-03-11 04:00"),
            "b": utc("2026-03-11 17:30"),
            "c": utc("2026-03-11 07:00"),
        }

    def test_a_closing_is_told_and_crosses_its_boundary(self, book: Book) -> None:
        book.tenant("a")
        book.tenant("b")
        book.close()
        book.at("2026-03-11 00:02")
        recorder = Recorder()
        assert book.closer(recorder).close().report_count == 2
        assert recorder.reached.count(Boundary.REPORTS_ASSIGNED) == 1
        assert book.heard.events == [ReportsClosed("2026-03-10", "UTC", 2)]


class TestCatchingUp:
    """What was missed while nothing ran."""

    def test_the_newest_are_sent_and_older_ones_recorded(self, book: Book) -> None:
        book.tenant("a")
        book.close()
        for number in range(6):
            book.release("a", 10**number)
            book.pass_on(days=1)
        book.close()
        assert book.days("a") == [
            *(f"2026-03-{day}{MISSED}" for day in (10, 11, 12)),
            *(f"2026-03-{day}" for day in (13, 14, 15)),
        ]
        assert [row["id"] for row in book.reports("a")] == sorted(
            row["id"] for row in book.reports("a")
        )
        # At noon of each day half of it was over: a release belongs to the day on which it was.
        assert [row["expired_count"] for row in book.reports("a")] == [10**n for n in range(6)]

    def test_a_restart_in_between_changes_nothing(self, book: Book) -> None:
        book.tenant("a")
        book.close()
        book.pass_on(days=6)
        for _ in range(5):
            book.restart()
            book.close()
        assert [day.endswith(MISSED) for day in book.days("a")] == [True] * 3 + [False] * 3

    def test_an_instant_may_be_set(self, book: Book) -> None:
        book.tenant("a")
        book.close()
        book.pass_on(days=3)
        assert book.closer().close(utc("2026-03-11 00:00")).report_count == 1


class TestBuilding:
    """One tenant's reports, as a person asks for them."""

    def test_days_that_are_over_are_built(self, book: Book) -> None:
        book.tenant("a")
        book.tenant("b")
        book.close()
        book.pass_on(days=2)
        assert book.closer().build("a", date(2026, 3, 10)) == 1
        assert book.closer().build("a", date(2026, 3, 10)) == 0
        assert book.closer().build("a", date(2026, 3, 11)) == 1
        assert (book.days("a"), book.days("b")) == (["2026-03-10", "2026-03-11"], [])

    def test_a_day_that_is_asked_for_is_not_missed(self, book: Book) -> None:
        book.tenant("a")
        book.close()
        book.pass_on(days=9)
        assert book.closer().build("a", date(2026, 3, 12)) == 3
        assert book.days("a")[-1] == "2026-03-12"

    def test_a_day_that_is_not_over_is_refused(self, book: Book) -> None:
        book.tenant("a")
        with pytest.raises(RefusedByState, match="is not over and ends at 2026-03-11 00:00 UTC"):
            book.closer().build("a", date(2026, 3, 10))

    def test_a_day_that_may_still_get_releases_is_refused(self, book: Book) -> None:
        if not book.ground.transactions_overlap():
            return
        book.tenant("a")
        book.close()
        book.at("2026-03-11 00:00:30")
        with pytest.raises(RefusedByState, match=r"try again in a minute, or after 00:05 UTC"):
            book.closer().build("a", date(2026, 3, 10))

    def test_a_tenant_that_is_nowhere_or_inactive_is_refused(self, book: Book) -> None:
        book.tenant("off", active=False)
        with pytest.raises(UsageError, match="There is no tenant 'nobody'"):
            book.closer().build("nobody", date(2026, 3, 10))
        with pytest.raises(RefusedByState, match="not active"):
            book.closer().build("off", date(2026, 3, 10))


class TestPages:
    """Many tenants, a page at a time."""

    def test_all_of_a_group_close(self, book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(closing, "PAGE", 7)
        with book.ledger.transaction() as tx:
            tx.operations.add_tallies([Tally("r", f"t{number}", number) for number in range(60)])
        book.at("2026-03-11 00:02")
        assert book.close().report_count == 60
        assert len({row["tenant"] for row in book.reports()}) == 60

    def test_a_page_that_takes_too_long_is_made_smaller(
        self, book: Book, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(5):
            book.tenant(f"t{number}")
        book.close()
        tried = _slow_above(monkeypatch, 2)
        book.at("2026-03-11 00:02")
        assert book.close().report_count == 5
        assert max(tried) > 2 >= min(tried)

    def test_what_the_database_refuses_stops_no_other_group(
        self, book: Book, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        book.tenant("a")
        book.tenant("b", report_hour=5)
        book.close()
        _slow_above(monkeypatch, 0, hour=5)
        book.at("2026-03-11 00:02")
        done = book.close()
        assert (done.report_count, book.days("a"), book.days("b")) == (1, ["2026-03-10"], [])
        assert done.waiting_until == utc("2026-03-11 00:03")

    def test_two_closers_write_each_report_once(self, book: Book) -> None:
        for number in range(5):
            book.release(f"t{number}")
        book.close()
        book.at("2026-03-11 00:02")
        first, second = book.closer(), book.closer()
        assert [first.close().report_count, second.close().report_count] == [5, 0]
        assert len(book.reports()) == 5


def test_releases_that_no_report_has_yet_are_not_pruned(book_url: str) -> None:
    with ground_at(book_url) as ground:
        book = Book(ground)
        book.at("2026-03-10 12:00")
        book.tenant("a")
        book.tenant("off", active=False)
        for name in ("a", "off", None):
            book.release(name, 3)
        book.close()
        book.pass_on(days=5)
        _prune(book)
        assert [row["tenant"] for row in ground.back.rows("tally")] == ["a", None]
        book.close()
        assert book.reports("a")[0]["expired_count"] == 3
        _prune(book)
        assert ground.back.rows("tally") == []


def _prune(book: Book) -> None:
    """Prune tallies of more than two days, as two readings of all clocks agree."""
    ages = {**RetentionSettings().ages(), Subject.TALLIES: timedelta(days=2)}
    for _ in range(2):
        Pruner(book.ledger, ages, Agreeing(book.ground.clock)).run()
        book.pass_on(hours=2)


def _slow_above(monkeypatch: pytest.MonkeyPatch, most: int, hour: int | None = None) -> list[int]:
    """Let the database give up on pages of more tenants; return the sizes that were tried."""
    tried: list[int] = []
    close = calendar_adapter.SqlReportCalendar.close

    def slow(
        self: calendar_adapter.SqlReportCalendar,
        closing: Closing,
        limit: int,
        only: str | None = None,
        tallies_max: int | None = None,
    ) -> int:
        tried.append(limit)
        if limit > most and closing.group.hour == hour:
            raise StatementTimedOut("too long")
        return close(self, closing, limit, only, tallies_max)

    monkeypatch.setattr(calendar_adapter.SqlReportCalendar, "close", slow)
    return tried
