"""The scan: finds due holds in the customer's table and writes operations for them.

A pass reads what became due since the last one; a walk from the beginning goes on beside it, a few
pages at a time, so that a long head of dead letters keeps nothing new waiting.

*Invariants*: what is open already is never written twice; one unreadable row stops nothing; a
scan stays at most `LEAD_BATCHES` batches ahead of the workers. *Not here*: when to scan
(`schedule`), what happens to an operation (`work`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count

from freehold.application.bulk import BulkPages, is_bulky, may_go_in_bulk, result_of
from freehold.application.direct import StraightPages, may_go_straight
from freehold.application.found import due_rows, malformed, new_operations
from freehold.application.gate import Gate
from freehold.application.generations import write_operations
from freehold.application.places import OVERLAP, Place, Places, Walk
from freehold.application.rates import Held, held_to
from freehold.application.release import BatchResult
from freehold.application.rulestate import batch_size, hasten_probe
from freehold.application.turns import Turn, extent_of, next_turn, place_behind, read_page
from freehold.domain.due import DueProblem, EmptyDue, read_due
from freehold.domain.due_walls import EPOCH
from freehold.domain.errors import DatabaseError, RowRefused, RuleRefused, StatementTimedOut
from freehold.domain.rules import Mode, Rule
from freehold.ports.holds import FoundHold, ScanCursor
from freehold.ports.ledger import Ledger, RuleCondition, RuleState, Transaction
from freehold.ports.system import Boundary, Checkpoint

LEAD_BATCHES = 20
BACKLOG_BATCHES = 4  # at most of the deep tenants' rows ahead of the workers, or twice their number
COUNT_AGAIN = timedelta(seconds=5)  # workers come and go
WALK_PAGES = 10  # pages of a walk between two looks at what is new


@dataclass(slots=True)
class ScanResult:
    """Counts of one scan.

    Attributes:
        found_count: due rows seen, open ones included.
        new_count: operations written.
        released: what mode `direct` released; in mode `window` the window is the operation.
        unreadable_count: rows whose due could not be read.
        finished: the end was reached; otherwise the workers have enough to do.
        windowed: it ended at a window that is open, and what that leaves is still to be found.
        admitted: the rule may scan. One that failed as a whole still does, for new rows may show
            that it was not the rule, but not far ahead of a worker that stands still.
        paused: the rule failed as a whole, and waits for its probe.
    """

    found_count: int = 0
    new_count: int = 0
    released: BatchResult = field(default_factory=BatchResult)
    unreadable_count: int = 0
    finished: bool = False
    admitted: bool = True
    paused: bool = False
    windowed: bool = False

    def count_found(self, dues: Iterable[datetime | DueProblem]) -> bool:
        """Count the rows of a page; tell whether some could not be read."""
        readable = [isinstance(due, datetime) for due in dues]
        self.found_count += sum(readable)
        self.unreadable_count += len(readable) - sum(readable)
        return not all(readable)

    @property
    def taken_count(self) -> int:
        """Return how many holds were written down or released."""
        return self.new_count + self.released.released_count

    def add(self, page: ScanResult) -> None:
        """Add the counts of one page."""
        self.found_count += page.found_count
        self.new_count += page.new_count
        self.released.add(page.released)
        self.unreadable_count += page.unreadable_count
        self.finished, self.windowed = page.finished, page.windowed


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one reading of a rule's pages works on, and what it has counted so far."""

    rule: Rule
    tick_id: int | None
    places: Places
    result: ScanResult


class Scanner:
    """Scans rules, a page a transaction, on one ledger connection."""

    def __init__(
        self,
        ledger: Ledger,
        checkpoint: Checkpoint,
        on_operations: Callable[[], None] = lambda: None,
        straight: StraightPages | None = None,
    ) -> None:
        """Scan on this connection.

        Args:
            on_operations: called after each commit that wrote operations, to wake a worker.
            straight: releases the pages of mode `direct`; None writes operations in every mode.
        """
        self._straight = straight
        self._gate = Gate()
        self._ledger = ledger
        self._checkpoint = checkpoint
        self._on_operations = on_operations
        self._places: Places = {}
        self._walks: dict[str, Walk] = {}
        self._read_at = EPOCH  # the database's clock at the last page
        self._ahead: dict[str, int] = {}  # operations ready, at most
        self._workers = 1
        self._counted_at = EPOCH
        self._turn = Turn.IN_ORDER  # of the last page that was tried
        self._floors: dict[str, datetime] = {}
        self._held: dict[str, Held | None] = {}

    def something_due(self, rule: Rule) -> bool:
        """Tell whether a scan would find a row, or has a pass to end; costs one row.

        Of text that cannot be compared every pass reads all; it rests in between, by its length.
        """
        with self._ledger.transaction() as tx:
            place = self._places.get(rule.name, Place())
            if place.is_under_way:
                return True
            if place.rests_until is not None and tx.now < place.rests_until:
                return False
            walk = self._walks.get(rule.name)
            walks = walk is not None and walk.goes_on(tx.now)
            return bool(tx.holds(rule).find_due(None, 1, None if walks else place.floor))

    def scan(
        self, rule: Rule, tick_id: int | None = None, pages_most: int | None = None
    ) -> ScanResult:
        """Write operations for the due holds of a rule, page by page.

        Args:
            pages_most: stop after so many, for the sake of other rules; the next scan goes on.

        Again: adds nothing for holds whose operation is open.
        Crash: pages committed stay; the rest is still due and found by the next scan.
        """
        result = ScanResult()
        pages = count() if pages_most is None else range(pages_most)
        self._read_on(rule, tick_id, self._places, pages, result)
        if rule.due.comparable_bare and (result.finished or self._is_between_rounds(rule)):
            self._walk(rule, tick_id, result)
        return result

    def _is_between_rounds(self, rule: Rule) -> bool:
        """Tell whether only deep tenants keep the pass from its end: that may be for long."""
        rounds = self._places.get(rule.name, Place()).rounds
        return rounds is not None and rounds.began_at is None

    def _walk(self, rule: Rule, tick_id: int | None, result: ScanResult) -> None:
        """Go on a few pages with the walk from the beginning, if it is time."""
        now = self._read_at
        held = self._held.get(rule.name)
        # The first pass, which has just ended, read from the beginning itself, unless a rate held it.
        walk = self._walks.setdefault(rule.name, Walk(EPOCH if held else now))
        self._gate.hurry(rule, walk)
        if not walk.goes_on(now):
            return
        walk.begin(now)
        walk.places.setdefault(rule.name, Place(looks_again=False))
        walked = ScanResult()
        self._read_on(rule, tick_id, walk.places, range(WALK_PAGES), walked)
        walk.rest(now, self._read_at, finished=walked.finished)
        windowed = result.windowed or walked.windowed
        # A firing that is held to a rate goes on until the backlog is through.
        finished = result.finished and (held is None or walked.finished)
        result.add(replace(walked, finished=finished, windowed=windowed))

    def _read_on(
        self,
        rule: Rule,
        tick_id: int | None,
        places: Places,
        pages: Iterable[int],
        result: ScanResult,
    ) -> None:
        """Read page by page from the rule's place on."""
        limit = most = batch_size(self._ledger, rule)
        reading = _Reading(rule, tick_id, places, result)
        for _ in pages:
            if result.finished or not result.admitted or self._is_halted():
                break
            try:
                if not self._step(reading, limit):
                    break
                limit = min(most, limit * 2)
            except (RowRefused, StatementTimedOut) as error:
                limit = self._halve(rule, places, limit, error)
            except RuleRefused:
                if not result.paused:
                    raise
                result.admitted = False

    def _is_halted(self) -> bool:
        return self._straight is not None and self._straight.halt()

    def _step(self, reading: _Reading, limit: int) -> bool:
        """Scan one page; False when there is enough work ahead, or another scanner is at it."""
        if self._straight is None or reading.rule.mode is not Mode.DIRECT:
            return self._once(reading, limit, straight=False)
        return self._straight.attempt(
            reading.rule, limit, lambda straight: self._once(reading, limit, straight=straight)
        )

    def _once(self, reading: _Reading, limit: int, *, straight: bool) -> bool:
        """Scan one page in a transaction of its own.

        Args:
            straight: release it, if the rule goes straight now.
        """
        rule, result, places = reading.rule, reading.result, reading.places
        with self._ledger.transaction() as tx:
            self._read_at = tx.now
            state = self._gate.admit(tx, rule)
            paused = result.paused = state.condition is RuleCondition.PAUSED
            far_ahead = self._is_ahead(tx, rule)
            waits = self._gate.is_shut(rule, tx.now)
            result.admitted = not waits and not (paused and far_ahead)
            if waits or far_ahead:
                return False
            mode = _mode_now(rule, state, tx.now, straight=straight)
            if mode is not Mode.RESERVATION and not tx.rules.alone(rule.name):
                return False
            if mode is Mode.WINDOW and tx.windows.is_open(rule.name):
                result.finished = result.windowed = True
                return False
            place = places.get(rule.name, Place())
            held = self._held[rule.name] = held_to(tx, rule, state, place)
            if held is not None:
                place, limit = held.place(place), held.limit(limit, tx.now)
                mode = held.mode(mode)
            turn = self._turn_of(tx, rule, place) if limit else None
            if turn is None:
                return False
            self._turn = turn
            page, place = self._page(tx, reading, place, limit, mode)
            if self._gate.tripped:
                result.admitted = False
                return False
            if held is not None:
                held.spend(tx, rule, page.taken_count, finished=page.finished)
            if page.finished and not page.windowed:
                self._gate.passed(tx, rule, place)
            if paused and page.new_count:
                hasten_probe(tx, rule)
        places[rule.name] = place
        self._take_in(reading, page)
        return True

    def _take_in(self, reading: _Reading, page: ScanResult) -> None:
        """Count a committed page, and tell those whom it concerns."""
        reading.result.add(page)
        self._ahead[reading.rule.name] += page.new_count
        self._checkpoint.reach(Boundary.OPERATIONS_COMMITTED)
        if page.new_count:
            self._on_operations()
        if self._straight is not None:
            self._straight.tell(reading.rule, page.released)

    def _halve(self, rule: Rule, places: Places, limit: int, error: DatabaseError) -> int:
        """Read fewer rows after a refusal; a row refused alone is noted as malformed and passed.

        Raises:
            StatementTimedOut: the scan itself is too slow; no row is to blame.
        """
        if limit > 1:
            return limit // 2
        if isinstance(error, StatementTimedOut):
            if places.get(rule.name, Place()).rounds is not None:
                places.pop(rule.name)  # its index may have gone: begin in the order of due
            raise error
        with self._ledger.transaction() as tx:
            place = places.get(rule.name, Place())
            page = read_page(tx, rule, place, self._turn, 1)
            rows = [malformed(rule, row, str(error)) for row in page.rows]
            tx.operations.enqueue(rows, None)
        places[rule.name] = page.place
        return 1

    def _is_ahead(self, tx: Transaction, rule: Rule, batches: int = LEAD_BATCHES) -> bool:
        """Tell whether so much is ready for the workers; counted anew only when it may be so."""
        size = batch_size(self._ledger, rule)
        if self._ahead.get(rule.name, LEAD_BATCHES * size) >= batches * size:
            oldest = tx.operations.oldest_ready(rule.name, self._floors.get(rule.name))
            self._floors[rule.name] = oldest or tx.now - OVERLAP
            most = LEAD_BATCHES * size
            ready = tx.operations.count_ready(rule.name, most, oldest) if oldest else 0
            self._ahead[rule.name] = ready
        return self._ahead[rule.name] >= batches * size

    def _turn_of(self, tx: Transaction, rule: Rule, place: Place) -> Turn | None:
        """Return whose turn it is; the backlog of a few is kept close before the workers."""
        may_deepen = True
        if place.rounds is not None and place.rounds.deep:
            if not self._counted_at <= tx.now < self._counted_at + COUNT_AGAIN:
                self._workers, self._counted_at = tx.workers.count("work"), tx.now
            lead = min(LEAD_BATCHES, max(BACKLOG_BATCHES, 2 * self._workers))
            may_deepen = not self._is_ahead(tx, rule, lead)
        return next_turn(place, tx.now, may_deepen=may_deepen)

    def _page(
        self, tx: Transaction, reading: _Reading, place: Place, limit: int, mode: Mode
    ) -> tuple[ScanResult, Place]:
        page, rule, tick_id = ScanResult(), reading.rule, reading.tick_id
        if self._goes_in_bulk(tx, rule, place, mode):
            return self._in_bulk(tx, reading, place, limit)
        read = read_page(tx, rule, place, self._turn, limit)
        self._checkpoint.reach(Boundary.DUE_READ)
        due = list(due_rows(rule, read.rows, tx.now))
        found = self._gate.let_in(tx, rule, place, due)
        if self._gate.tripped:
            return page, place
        undated = page.count_found(due for _, due in found)
        if mode is Mode.WINDOW and _open_window(tx, reading, found):
            page.new_count, page.finished, page.windowed = 1, True, True
            return page, place  # read again when the window has done what it can
        if mode is Mode.DIRECT and self._straight is not None:
            page.released, found = self._straight.release(tx, rule, found, tick_id)
        new = new_operations(rule, found, tx.now)
        page.new_count = write_operations(tx, rule, new, tick_id, undated=undated)
        self._checkpoint.reach(Boundary.OPERATIONS_WRITTEN)
        page.finished = read.is_last
        return page, replace(read.place, in_bulk=is_bulky(rule, page.released, limit))

    def _goes_in_bulk(self, tx: Transaction, rule: Rule, place: Place, mode: Mode) -> bool:
        in_order = mode is Mode.DIRECT and self._turn is Turn.IN_ORDER
        return in_order and may_go_in_bulk(tx, rule, place)

    def _in_bulk(
        self, tx: Transaction, reading: _Reading, place: Place, limit: int
    ) -> tuple[ScanResult, Place]:
        """Release a page by one statement; what it leaves is met by the next one, at this place."""
        assert self._straight is not None
        rule = reading.rule
        bulk = BulkPages(self._straight, self._gate).release(
            tx, rule, place, limit, reading.tick_id
        )
        page = ScanResult(len(bulk.released), released=result_of(bulk, tx.now))
        if bulk.after is None:
            return page, replace(place, in_bulk=False)
        extent = extent_of((one.tenant for one in bulk.released), bulk.after)
        return page, place_behind(tx, rule, place, limit, extent)

    def scan_empty(self, rule: Rule, after: ScanCursor | None, limit: int) -> ScanCursor | None:
        """Apply the rule's policy to rows whose due is NULL or zero, one page.

        Returns:
            Where the next page begins; None at the end, or while the rule may not scan.
        """
        if rule.due.on_empty is EmptyDue.NEVER:
            return None
        with self._ledger.transaction() as tx:
            state = self._gate.admit(tx, rule)
            if state.condition is not RuleCondition.ACTIVE or self._gate.is_shut(rule, tx.now):
                return None
            rows = tx.holds(rule).find_empty_due(after, limit)
            found = [(row, read_due(rule.due, row.due)) for row in rows]
            dues = self._gate.without_paused(found, tx.now)
            write_operations(tx, rule, new_operations(rule, dues, tx.now), None, undated=True)
        return ScanCursor(rows[-1].due or "", rows[-1].hold_key) if len(rows) == limit else None


def _before(since: datetime | None) -> datetime | None:
    return None if since is None else since - OVERLAP


def _mode_now(rule: Rule, state: RuleState, now: datetime, *, straight: bool) -> Mode:
    """Return the mode that a page is read in; a rule in trouble goes by single operations."""
    if not may_go_straight(rule, state, now) or (rule.mode is Mode.DIRECT and not straight):
        return Mode.RESERVATION
    return rule.mode


def _open_window(
    tx: Transaction, reading: _Reading, found: Iterable[tuple[FoundHold, datetime | DueProblem]]
) -> bool:
    """Open a window for found rows that have no operation; False where there are none."""
    dues = [due for row, due in found if isinstance(due, datetime) and not row.is_open]
    if not dues:
        return False
    return tx.windows.open(reading.rule.name, min(dues), tx.now, reading.tick_id)
