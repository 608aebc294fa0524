"""A tenant with more tallies than one transaction may assign: its day closes all the same, in parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from freehold.application.reporting import calendar
from freehold.application.reporting.freezing import Freezer
from freehold.domain.tallies import Tally
from freehold.ports.system import Boundary
from freehold.testing.crash import Crashed, RaiseAt

if TYPE_CHECKING:
    from tests.reports.book import Book

MOST = 7  # tallies of one transaction
GIANT, SMALL = 60, 3


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch, book: Book) -> None:
    """Assign few tallies at a time, whatever the database can bear."""
    monkeypatch.setattr(calendar, "TALLIES", MOST)
    monkeypatch.setattr(type(book.ledger.session), "batch_limit", None)


def day_over(book: Book) -> None:
    """Let a giant and two others release, today and before; the day is over."""
    for name, count in (("giant", GIANT), ("a", SMALL), ("z", SMALL)):
        with book.ledger.transaction() as tx:
            for _ in range(count):  # each a tally of its own
                tx.operations.add_tallies([Tally("r", name, 1)])
    book.at("2026-03-11 00:02")


@dataclass
class Watch:
    """Notes at each commit how many tallies are in reports."""

    book: Book
    seen: list[int] = field(default_factory=lambda: [0])

    def reach(self, boundary: Boundary) -> None:
        if boundary is Boundary.COMMITTED:
            self.seen.append(assigned(self.book))


def assigned(book: Book) -> int:
    return int(book.door.one("select count(*) from {s}tally where report_id is not null"))


def counts(book: Book) -> dict[str, int]:
    return {row["tenant"]: row["expired_count"] for row in book.reports()}


def test_no_transaction_assigns_more_than_it_may(book: Book) -> None:
    day_over(book)
    watch = Watch(book)
    assert book.closer(watch).close().report_count == 3
    assert max(after - before for before, after in pairwise(watch.seen)) == MOST
    assert counts(book) == {"giant": GIANT, "a": SMALL, "z": SMALL}
    assert assigned(book) == GIANT + 2 * SMALL


@pytest.mark.parametrize("boundary", [Boundary.REPORTS_ASSIGNED, Boundary.COMMITTED])
def test_whoever_is_killed_between_parts_leaves_the_rest_to_others(
    book: Book, boundary: Boundary
) -> None:
    day_over(book)
    crash_count = 0
    while True:
        try:
            book.closer(RaiseAt(3, boundary)).close()
            break
        except Crashed:
            crash_count += 1
        assert book.broken() == []
        assert book.conserved() == (GIANT + 2 * SMALL,) * 2
    assert crash_count > 3
    assert counts(book) == {"giant": GIANT, "a": SMALL, "z": SMALL}


def test_no_facts_and_no_later_day_before_all_is_assigned(book: Book) -> None:
    day_over(book)
    interrupted(book)
    with book.ledger.transaction() as tx:
        tx.operations.add_tallies([Tally("r", "giant", 1)])  # of the next day
    freezer = Freezer(book.ledger, book.policy, {}, RaiseAt(99))
    assert freezer.freeze() == sum(count is not None for count in counts(book).values())
    assert [row["state"] for row in book.reports("giant")] == ["assigned"]
    book.at("2026-03-12 00:02")
    book.closer().close()
    assert [row["expired_count"] for row in book.reports("giant")] == [GIANT, 1]
    assert freezer.freeze() > 0
    assert {row["state"] for row in book.reports()} == {"frozen"}


def interrupted(book: Book) -> None:
    """Close until the giant has some of its tallies, and some not."""
    with pytest.raises(Crashed):
        book.closer(RaiseAt(6, Boundary.COMMITTED)).close()
    given = book.door.one("select count(*) from {s}tally where tenant = 'giant' and report_id > 0")
    assert 0 < given < GIANT
    assert counts(book)["giant"] is None


def test_one_day_of_a_giant_is_built_whole(book: Book) -> None:
    day_over(book)
    assert book.closer().build("giant", date(2026, 3, 10)) == 1
    assert counts(book) == {"giant": GIANT}
