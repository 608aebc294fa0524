"""A page of plain rows released by one statement: the bulk of a backlog, in modes `direct` and `window`.

It follows a page that was full and went straight as a whole. What the statement leaves, for whatever
reason, the next page meets in the usual way (`straight`), since the place stays where it was.

*Invariants*: nothing is taken here that the guard against mass release has to weigh, nor anything so
old that its record may have been pruned.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from freehold.application.direct import StraightPages
from freehold.application.gate import Gate
from freehold.application.generations import YOUNGEST_PRUNED
from freehold.application.places import Place
from freehold.application.release import BatchResult
from freehold.domain.due_walls import shifted
from freehold.domain.rules import Rule
from freehold.ports.holds import ScanCursor
from freehold.ports.ledger import Transaction
from freehold.ports.straight import Bulk, Stretch
from freehold.ports.system import Boundary
from freehold.ports.telemetry import HoldsReleased


@dataclass(frozen=True, slots=True)
class BulkPages:
    """Releases pages in bulk, for one reader of pages."""

    straight: StraightPages
    gate: Gate

    def release(
        self,
        tx: Transaction,
        rule: Rule,
        place: Place,
        limit: int,
        tick_id: int | None,
        until: datetime | None = None,
    ) -> Bulk:
        """Release what is plain of the next `limit` rows behind a place that has a row.

        Args:
            until: rows due later are left.
        """
        self.gate.let_in(tx, rule, place, [])
        self.straight.has_rows = True
        after = place.after or ScanCursor("", "")
        stretch = Stretch(after, limit, self._later_than(tx, rule), until or tx.now)
        bulk = tx.straight(rule).release_bulk(stretch, tick_id)
        self.straight.tools.checkpoint.reach(Boundary.RELEASED)
        return bulk

    def _later_than(self, tx: Transaction, rule: Rule) -> datetime:
        """Return since when what fell due is neither part of a mass nor forgotten."""
        young = tx.now - YOUNGEST_PRUNED
        seen = self.gate.seen_upto(tx.now)
        return young if seen is None else max(young, shifted(seen, -rule.due.grace))


def may_go_in_bulk(tx: Transaction, rule: Rule, place: Place) -> bool:
    """Tell whether the next page may be released by one statement."""
    return place.in_bulk and place.after is not None and tx.straight(rule).takes_bulk


def is_bulky(rule: Rule, result: BatchResult, limit: int) -> bool:
    """Tell whether a page was full and went straight as a whole."""
    return result.released_count == limit and not rule.companions


def result_of(bulk: Bulk, now: datetime) -> BatchResult:
    """Say what became of a page."""
    claims = bulk.released
    return BatchResult(
        released_count=len(claims), events=[HoldsReleased(claims, now)] if claims else []
    )
