"""Released is reported, or waits to be: whatever commits late, is killed, starts again or moves.

*Not here*: what one pass does (`test_closing`).
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from freehold.adapters.sql import report_calendar as calendar_adapter
from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.sql.sqlite import SqliteSession
from freehold.adapters.system import Onwards
from freehold.application.reporting import calendar, closing
from freehold.application.reporting.closing import Closer
from freehold.domain.tallies import Tally
from freehold.ports.system import Boundary
from freehold.testing.backdoor import BackDoor
from freehold.testing.crash import CRASHED, Crashed, KillAt, RaiseAt
from freehold.testing.dice import SeededDice
from freehold.testing.forking import fork, run
from tests.contract.grounds import ground_at
from tests.reports.book import POLICY, Book, broken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from freehold.ports.system import Checkpoint
    from freehold.testing.forking import Wire
    from tests.contract.grounds import SqlGround

pytestmark = pytest.mark.timeout(method="signal")  # no thread may be alive at a fork
TENANTS = (None, "t1", "t2", "t3", "t4", "t5")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Pacific/Honolulu", "Pacific/Kiritimati")
BOUNDARIES = (Boundary.REPORTS_ASSIGNED, Boundary.BEFORE_COMMIT, Boundary.COMMITTED)
STEPS = 60
LIVES = 60 if os.environ.get("FREEHOLD_PROOF") == "long" else 12


@pytest.fixture
def ground(book_url: str) -> Iterator[SqlGround]:
    """SQLite, and one PostgreSQL: nothing in here differs between its versions."""
    with ground_at(book_url) as ground:
        yield ground


@pytest.fixture
def few_tallies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let many days close in parts."""
    monkeypatch.setattr(calendar, "TALLIES", 4)
    monkeypatch.setattr(SqliteSession, "batch_limit", None)


@dataclass
class Life:
    """Some weeks of an installation, as a seed has it."""

    book: Book
    dice: SeededDice
    released_count: int = 0
    crash_count: int = 0
    report_count: int = 0
    late: list[ExitStack] = field(default_factory=list)

    def draw(self, choices: int) -> int:
        return int(self.dice.luck() * choices)

    def run(self) -> None:
        acts: tuple[Callable[[], None], ...] = (
            *(self.release,) * 4,
            *(self.close,) * 3,
            self.pass_on,
            self.pass_on,
            self.begin_late,
            self.end_late,
            self.crash,
            self.crash,
            self.move,
            self.book.restart,
        )
        for _ in range(STEPS):
            acts[self.draw(len(acts))]()
        while self.late:
            self.end_late()
        for _ in range(3):
            self.book.pass_on(days=1, minutes=7)
            self.close()

    def release(self) -> None:
        count = 1 + self.draw(5)
        self.book.release(TENANTS[self.draw(len(TENANTS))], count)
        self.released_count += count

    def close(self) -> None:
        self.book.close()

    def pass_on(self) -> None:
        self.book.pass_on(hours=1 + self.draw(30), minutes=self.draw(60))

    def begin_late(self) -> None:
        """Begin a release that commits much later, where others may write meanwhile."""
        if not self.book.ground.transactions_overlap() or len(self.late) == 3:
            return
        stack = ExitStack()
        tx = stack.enter_context(self.book.ground.open().transaction())
        tx.operations.add_tallies([Tally("r", TENANTS[self.draw(len(TENANTS))], 7)])
        self.late.append(stack)
        self.released_count += 7

    def end_late(self) -> None:
        if self.late:
            self.late.pop(self.draw(len(self.late))).close()

    def crash(self) -> None:
        """Let a process die somewhere in a pass."""
        boundary = BOUNDARIES[self.draw(len(BOUNDARIES))]
        try:
            self.book.closer(RaiseAt(1 + self.draw(4), boundary)).close()
        except Crashed:
            self.crash_count += 1

    def move(self) -> None:
        name = TENANTS[1 + self.draw(len(TENANTS) - 1)]
        self.book.tenant(str(name), zone=ZONES[self.draw(len(ZONES))], active=self.draw(6) > 0)


def lived(ground: SqlGround, seed: int) -> Life:
    """Live through a seed, checking the invariants at its end."""
    book = Book(ground, replace(POLICY, close_delay=timedelta(0)))
    book.at("2026-03-24 12:00")  # a clock goes forward in the days that follow
    life = Life(book, SeededDice(seed))
    life.run()
    life.report_count = len(book.reports())
    assert book.broken() == [], seed
    assert book.conserved() == (life.released_count, life.released_count), seed
    assert book.door.one("select count(*) from {s}tally where report_id is null") == _of_inactive(
        book
    ), seed
    return life


def _of_inactive(book: Book) -> int:
    """Count what waits for a tenant to come back, or for a day to end."""
    return int(
        book.door.one(
            "select count(*) from {s}tally t where t.report_id is null and not exists"
            " (select 1 from {s}report_calendar c where c.tenant = coalesce(t.tenant, '')"
            " and c.active and c.start_at > t.at)"
        )
    )


@pytest.mark.usefixtures("few_tallies")
def test_n20_releases_are_conserved(ground: SqlGround) -> None:
    lives = [lived_anew(ground, seed) for seed in range(3)]
    assert sum(life.crash_count for life in lives) > 0
    assert sum(life.report_count for life in lives) > 20


@pytest.mark.proof
@pytest.mark.usefixtures("few_tallies")
def test_releases_are_conserved_in_many_lives(ground: SqlGround) -> None:
    for seed in range(100, 100 + LIVES):
        lived_anew(ground, seed)


def lived_anew(ground: SqlGround, seed: int) -> Life:
    """Live on an empty ledger."""
    with ground_at(ground.url) as own:
        return lived(own, seed)


# ------------------------------------------------------------------------- real processes

COUNT = 60  # tenants, each with one release
NOW = "2026-03-11 00:02"


@pytest.fixture
def closing_day(ground: SqlGround, small_pages: None) -> Book:
    """Sixty tenants whose day is over."""
    return day_over(ground)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Close six or seven tenants at a time."""
    monkeypatch.setattr(closing, "PAGE", 7)
    monkeypatch.setattr(closing, "ROWS_A_TENANT", 30)


def day_over(ground: SqlGround) -> Book:
    """Let sixty tenants each release a hold, and end the day."""
    book = Book(ground)
    book.at("2026-03-10 12:00")
    with book.ledger.transaction() as tx:
        tx.operations.add_tallies([Tally("r", f"t{number:02}", 1) for number in range(COUNT)])
    book.close()
    book.restart()
    book.at(NOW)
    book.ledger.close()
    return book


def close_in(book: Book, checkpoint: Checkpoint) -> int:
    """Close the day on a connection of a child's own."""
    ledger = SqlLedger(book.ground.open().session, checkpoint)
    return Closer(ledger, book.policy, checkpoint).close().report_count


def victim(book: Book, nth: int) -> Callable[[Wire], object]:
    """Return what a child does that is killed at its n-th boundary."""

    def be_killed(wire: Wire) -> int:
        return close_in(book, KillAt(nth, tell=wire.tell))

    return be_killed


def assert_whole(book: Book) -> None:
    """Check that each tenant has its one report with its release in it."""
    with BackDoor(book.ground.url) as door:
        door.wait_until_alone()
        assert list(broken(door)) == []
    run(lambda _: close_in(book, Onwards()))
    with BackDoor(book.ground.url) as door:
        assert list(broken(door)) == []
        rows = door.rows("select tenant, expired_count from {s}report order by tenant")
        assert rows == [(f"t{number:02}", 1) for number in range(COUNT)]


@pytest.mark.parametrize("nth", [1, 2, 14])
def test_a_closer_that_is_killed_leaves_whole_pages(closing_day: Book, nth: int) -> None:
    ending = run(victim(closing_day, nth))
    assert ending.was_killed
    assert ending.said(CRASHED) in [one.value for one in BOUNDARIES]
    assert_whole(closing_day)


def test_two_closers_of_which_both_are_killed(closing_day: Book) -> None:
    with fork(victim(closing_day, 5)) as first, fork(victim(closing_day, 9)) as second:
        endings = [first.end(), second.end()]
    assert [one.was_killed for one in endings] == [True, True]
    assert_whole(closing_day)


def test_four_closers_at_once_close_each_day_once(closing_day: Book) -> None:
    def close(wire: Wire) -> int:
        return close_in(closing_day, Onwards())

    with fork(close) as one, fork(close) as two, fork(close) as three, fork(close) as four:
        counts = [child.end().value for child in (one, two, three, four)]
    assert sum(counts) == COUNT
    assert_whole(closing_day)


@pytest.mark.proof
def test_killed_at_every_boundary(ground: SqlGround, small_pages: None) -> None:
    for nth in range(1, 40):
        with ground_at(ground.url) as own:
            book = day_over(own)
            was_killed = run(victim(book, nth)).was_killed
            assert_whole(book)
        if not was_killed:
            break
    assert nth > 20


def test_the_margin_is_that_of_a_release() -> None:
    """Longer than any transaction of ours may last: they end themselves after 60 s."""
    assert timedelta(seconds=60) <= calendar_adapter.MARGIN
