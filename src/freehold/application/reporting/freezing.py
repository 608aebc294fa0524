"""Freezing: counts the facts of reports whose tallies are assigned, page by page, once each.

*Invariants*: what a report says of its window does not depend on when it is frozen, or how often a
freeze was begun; a page holds few items, however much a tenant released;
what the database refuses to count for one report keeps no other waiting.
*Not here*: which tallies are whose (`closing`), mails (`mailing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from freehold.domain.errors import DatabaseAway, DatabaseBusy, DatabaseError
from freehold.domain.inventory import is_built_in
from freehold.domain.reports import ReportPolicy
from freehold.domain.rules import Rule
from freehold.ports.ledger import Ledger, Transaction
from freehold.ports.reports import Draft, RuleNote, Waiting, Work
from freehold.ports.system import Boundary, Checkpoint
from freehold.ports.telemetry import UNHEARD, DatabaseTrouble, FactsFrozen, Telemetry

OVERVIEW_REPORTS = 20_000  # that one reading of the open operations serves
PAGE_REPORTS = 1_000
PAGE_ITEMS = 20_000  # in memory, and in one statement's texts: 4 MB
PAGE_RELEASED = 200_000  # records that one statement reads: seconds, under its time limit
PARTS = 10  # of a page that the database refuses
SMALL_REPORTS = 50  # of a page where writing keeps the host application waiting
SMALL_ITEMS = 1_000


def notes_of(rules: Sequence[Rule]) -> Mapping[str, RuleNote]:
    """Return what facts need to know of the configured rules, by name."""
    return {
        rule.name: RuleNote(rule.promise.total_seconds(), rule.unit, is_built_in(rule))
        for rule in rules
    }


class Freezer:
    """Freezes facts on one ledger connection."""

    def __init__(
        self,
        ledger: Ledger,
        policy: ReportPolicy,
        notes: Mapping[str, RuleNote],
        checkpoint: Checkpoint,
        telemetry: Telemetry = UNHEARD,
    ) -> None:
        self._ledger = ledger
        self._items_max = policy.items_max
        self._notes = notes
        self._checkpoint = checkpoint
        self._telemetry = telemetry
        small = ledger.one_writer
        self._page_reports = SMALL_REPORTS if small else PAGE_REPORTS
        self._page_items = SMALL_ITEMS if small else PAGE_ITEMS
        self._refused: set[int] = set()  # reports that are tried alone, after the others

    def freeze(self) -> int:
        """Freeze facts until no report waits for them, or others have the rest in hand.

        Again: changes nothing. Crash: pages are frozen whole, or not at all.
        """
        frozen_count = 0
        while True:
            waiting_count, count = self._freeze_next()
            frozen_count += count
            if not count or waiting_count < OVERVIEW_REPORTS:
                return frozen_count

    def _freeze_next(self) -> tuple[int, int]:
        """Freeze the reports that one reading of the open operations serves; return both counts."""
        with self._ledger.glance() as tx:
            overview = tx.reports.overview(OVERVIEW_REPORTS)
        frozen_count = 0
        for page in self._pages(overview.waiting):
            count = self._freeze_or_part(page, overview.work)
            if count:
                self._telemetry.tell(FactsFrozen(count))
            frozen_count += count
        return len(overview.waiting), frozen_count

    def _pages(self, waiting: Sequence[Waiting]) -> Iterator[Sequence[int]]:
        """Cut reports into pages; one with much to count makes a page of its own."""
        alone = [one.report_id for one in waiting if one.report_id in self._refused]
        page: list[int] = []
        items = released = 0
        for one in waiting:
            if one.report_id in alone:
                continue
            items += min(one.released_count, self._items_max)
            released += one.released_count
            full = len(page) == self._page_reports or items > self._page_items
            if page and (full or released > PAGE_RELEASED):
                yield page
                page = []
                items, released = min(one.released_count, self._items_max), one.released_count
            page.append(one.report_id)
        if page:
            yield page
        yield from ([report_id] for report_id in alone)

    def _freeze_or_part(self, page: Sequence[int], work: Work) -> int:
        """Freeze a page, in smaller ones where the database refuses it whole."""
        try:
            return self._freeze_page(page, work)
        except (DatabaseAway, DatabaseBusy):
            raise
        except DatabaseError as error:
            if len(page) == 1:
                self._refused.update(page)
                told = DatabaseTrouble("freeze facts", type(error).__name__, error.code)
                self._telemetry.tell(told)
                return 0
        size = -(-len(page) // PARTS)
        starts = range(0, len(page), size)
        return sum(self._freeze_or_part(page[at : at + size], work) for at in starts)

    def _freeze_page(self, page: Sequence[int], work: Work) -> int:
        """Freeze one page; counted ahead of the write where writing keeps all others waiting."""
        if self._ledger.one_writer:
            with self._ledger.glance() as tx:
                drafts = self._draft(tx, page, work)
            with self._ledger.transaction() as tx:
                return self._write(tx, drafts)
        with self._ledger.transaction() as tx:
            return self._write(tx, self._draft(tx, page, work))

    def _draft(self, tx: Transaction, page: Sequence[int], work: Work) -> Sequence[Draft]:
        return tx.reports.draft(page, self._notes, work, self._items_max)

    def _write(self, tx: Transaction, drafts: Sequence[Draft]) -> int:
        count = tx.reports.freeze(drafts)
        self._checkpoint.reach(Boundary.FACTS_FROZEN)
        return count
