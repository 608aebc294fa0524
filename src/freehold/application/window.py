"""Mode `window`: one operation releases all that is due in its span, page by page.

*Invariants*: a page is released under the window's lease and prolongs it; what cannot be released
becomes operations of its own, so that a window ends whatever its rows do; a retry finds only what is
still due. *Not here*: when a window is opened (`scan`), the release itself (`straight`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from freehold.application.bulk import BulkPages, is_bulky, may_go_in_bulk, result_of
from freehold.application.direct import StraightPages, may_go_straight
from freehold.application.found import due_rows, malformed, new_operations
from freehold.application.gate import Gate
from freehold.application.generations import write_operations
from freehold.application.places import OVERLAP, Place
from freehold.application.release import BatchResult
from freehold.application.repeat import repeated
from freehold.application.rulestate import batch_size, may_work
from freehold.application.scan import LEAD_BATCHES
from freehold.application.straight import Due
from freehold.domain.errors import (
    DatabaseBusy,
    DatabaseError,
    RowRefused,
    RuleRefused,
    StatementTimedOut,
)
from freehold.domain.rules import Rule
from freehold.ports.holds import ScanCursor
from freehold.ports.ledger import Put, RuleCondition, Transaction
from freehold.ports.system import Boundary
from freehold.ports.windows import Window

LOOK_AGAIN = timedelta(seconds=1)  # a window that was put off comes back after this


class _Next(StrEnum):
    """What follows a page; the words stand in the ledger."""

    PAGE = "the next page"
    END = "all of it was read"
    LEFT = "the rest is left to single operations"
    BUSY = "another batch of the rule runs"
    AHEAD = "workers have enough to do"
    PAUSED = "rule paused"
    STOPPED = "the process that had it was to stop"
    LOST = "its lease was lost"


@dataclass(frozen=True, slots=True)
class _Page:
    """One committed page.

    Attributes:
        after: the row behind which the next page begins.
        handed_on_count: operations written for rows that were left.
        in_bulk: the next page may go in bulk.
    """

    next: _Next = _Next.PAGE
    after: ScanCursor | None = None
    done: BatchResult = field(default_factory=BatchResult)
    handed_on_count: int = 0
    in_bulk: bool = False


@dataclass(slots=True)
class _Run:
    """One window in hand, and what its pages came to."""

    rule: Rule
    window: Window
    after: ScanCursor | None = None
    next: _Next = _Next.PAGE
    done: BatchResult = field(default_factory=BatchResult)
    handed_on_count: int = 0
    in_bulk: bool = False

    def add(self, page: _Page) -> None:
        self.in_bulk = page.in_bulk
        self.next = page.next
        self.after = page.after or self.after
        self.done.add(page.done)
        self.handed_on_count += page.handed_on_count


class WindowWorker:
    """Works on windows, on one ledger connection."""

    def __init__(self, straight: StraightPages, lease: timedelta) -> None:
        self._straight = straight
        self._tools = straight.tools
        self._lease = lease
        self._gate = Gate()

    def work(self, rule: Rule) -> BatchResult | None:
        """Take the rule's oldest window as far as it goes; None when none is claimable.

        Raises:
            DatabaseAway: nothing is lost; the window comes back when its lease ends.
            DatabaseError: the rule's rows cannot be read; the window comes back soon.
        Crash: pages committed stay; the window comes back when its lease ends, an attempt spent.
        """
        self._straight.tell_loss(rule)
        with self._tools.ledger.transaction() as tx:
            window = tx.windows.lease(rule.name, tx.now + self._lease)
        if window is None:
            return None
        self._tools.checkpoint.reach(Boundary.LEASE_COMMITTED)
        run = _Run(rule, window)
        try:
            self._release(run)
        except (RowRefused, RuleRefused, StatementTimedOut, DatabaseBusy):
            self._put_off(run, _Next.BUSY)
            raise
        self._end(run)
        return run.done

    def _release(self, run: _Run) -> None:
        limit = most = batch_size(self._tools.ledger, run.rule)
        while run.next is _Next.PAGE:
            if self._straight.halt():
                run.next = _Next.STOPPED
                return
            try:
                page = self._page(run, limit)
                limit = min(most, limit * 2)
            except (RowRefused, StatementTimedOut) as error:
                page = self._passed_over(run, limit, error)
                limit = max(1, limit // 2)
            run.add(page)
            self._straight.tell(run.rule, page.done)

    def _page(self, run: _Run, limit: int) -> _Page:
        return self._straight.attempt(
            run.rule, limit, lambda straight: self._once(run, limit, straight=straight)
        )

    def _once(self, run: _Run, limit: int, *, straight: bool) -> _Page:
        """Release one page in a transaction of its own.

        Args:
            straight: release; otherwise all of it becomes operations.
        """
        token = run.window.claim.lease_token
        with self._tools.ledger.transaction() as tx:
            if token is None or not tx.operations.renew(token, tx.now + self._lease):
                return _Page(_Next.LOST)
            page = self._hindered(tx, run.rule)
            if page.next is _Next.PAGE:
                page = self._released(tx, run, limit, straight=straight)
        self._tools.checkpoint.reach(Boundary.OPERATIONS_COMMITTED)
        return page

    def _hindered(self, tx: Transaction, rule: Rule) -> _Page:
        """Tell what keeps the window from its next page, if anything does."""
        state = self._gate.admit(tx, rule)
        if not may_work(state, tx.now) or state.condition is not RuleCondition.ACTIVE:
            return _Page(_Next.PAUSED)
        if not may_go_straight(rule, state, tx.now):
            return _Page(_Next.LEFT)
        if not tx.rules.alone(rule.name):
            return _Page(_Next.BUSY)
        most = LEAD_BATCHES * batch_size(self._tools.ledger, rule)
        is_ahead = tx.operations.count_ready(rule.name, most) >= most
        return _Page(_Next.AHEAD if is_ahead else _Next.PAGE)

    def _released(self, tx: Transaction, run: _Run, limit: int, *, straight: bool) -> _Page:
        rule, window = run.rule, run.window
        place = Place(since=window.begins_at, after=run.after, in_bulk=straight and run.in_bulk)
        if may_go_in_bulk(tx, rule, place):
            bulk = BulkPages(self._straight, self._gate).release(
                tx, rule, place, limit, window.tick_id, window.until
            )
            done = result_of(bulk, tx.now)
            return _Page(after=bulk.after, done=done, in_bulk=bulk.after is not None)
        rows = tx.holds(rule).find_due(run.after, limit, window.begins_at - OVERLAP)
        self._tools.checkpoint.reach(Boundary.DUE_READ)
        found = list(due_rows(rule, rows, tx.now))
        ours = [(row, due) for row, due in found if not _is_later(due, window.until)]
        is_beyond = rule.due.comparable_bare and len(ours) < len(found)
        ours = self._gate.let_in(tx, rule, place, ours)
        if self._gate.tripped:
            return _Page(_Next.PAUSED)
        ends = len(rows) < limit or is_beyond
        done = BatchResult()
        if straight:
            done, ours = self._straight.release(tx, rule, ours, window.tick_id)
        new = new_operations(rule, ours, tx.now)
        undated = any(one.due_at is None for one in new)
        count = write_operations(tx, rule, new, window.tick_id, undated=undated)
        self._tools.checkpoint.reach(Boundary.OPERATIONS_WRITTEN)
        after = ScanCursor(rows[-1].due or "", rows[-1].hold_key) if rows else None
        in_bulk = is_bulky(rule, done, limit)
        return _Page(_Next.END if ends else _Next.PAGE, after, done, count, in_bulk)

    def _passed_over(self, run: _Run, limit: int, error: DatabaseError) -> _Page:
        """Note a row that cannot even be written down as malformed; else try fewer rows.

        Raises:
            StatementTimedOut: the reading itself is too slow; no row is to blame.
        """
        if limit > 1:
            return _Page()
        if isinstance(error, StatementTimedOut):
            raise error
        begins_at = run.window.begins_at - OVERLAP
        with self._tools.ledger.transaction() as tx:
            rows = tx.holds(run.rule).find_due(run.after, 1, begins_at)
            if not rows:
                return _Page(_Next.END)  # the host took it away meanwhile
            row = rows[0]
            count = tx.operations.enqueue([malformed(run.rule, row, str(error))], None)
        return _Page(after=ScanCursor(row.due or "", row.hold_key), handed_on_count=count)

    # ------------------------------------------------------------------------------ how it ends

    def _end(self, run: _Run) -> None:
        if run.next is _Next.LOST:
            return
        if run.next not in (_Next.END, _Next.LEFT):
            self._put_off(run, run.next)
            return
        said = f"window: {run.done.released_count} released, {run.handed_on_count} handed on"
        if run.next is _Next.LEFT:
            said = f"{said}; {_Next.LEFT}"
        self._repeated(lambda tx: tx.windows.close(run.window, said))

    def _put_off(self, run: _Run, why: _Next) -> None:
        """Let the window come back; the attempt that its lease counted is taken back."""
        wait = timedelta(0) if why is _Next.STOPPED else LOOK_AGAIN
        claim = run.window.claim

        def put_off(tx: Transaction) -> None:
            ours = tx.operations.claim_these([claim.id], claim.lease_token)
            put = [Put(one.id, why.value, tx.now + wait, one.deferrals + 1) for one in ours]
            tx.operations.put_off(put)

        self._repeated(put_off)

    def _repeated(self, write: Callable[[Transaction], None]) -> None:
        """Write how a window ends; a lock in the way must not cost it the rest of its lease."""

        def attempt() -> None:
            with self._tools.ledger.transaction() as tx:
                write(tx)

        repeated(attempt, self._tools.dice, self._tools.pause)


def _is_later(due: Due, until: datetime) -> bool:
    return isinstance(due, datetime) and due > until
