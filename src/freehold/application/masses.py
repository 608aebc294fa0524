"""The guard against mass release: a page of a scan is not taken when far too much turned up overdue.

Rows turned up overdue that were due when the last scan ended, and that it did not see: a migration
moved their dues, or made them held. What fell due while Freehold was down is not that.

*Invariants*: nothing of a mass is released before the guard trips; however much stands in a table or
in review, a row is weighed at most twice a pass. *Not here*: what clears the rule (`guards`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from freehold.application.places import OVERLAP, Place
from freehold.domain.due import DueProblem, is_due
from freehold.domain.rules import Rule
from freehold.ports.holds import FoundHold, ScanCursor, Weighing
from freehold.ports.ledger import GuardKind, RuleState, Transaction

MASS_LEAST = 1_000  # rows; DESIGN section 5: more than this, and more than half of the held ones
MASS_SHARE = 0.5
EXAMINED_MOST = 10_000  # rows weighed on each side at a time; some 50 ms
Found = list[tuple[FoundHold, datetime | DueProblem]]


@dataclass(slots=True)
class _Pass:
    """What is known of one reading.

    Attributes:
        cleared_count: rows ahead that were weighed already.
        met_count: rows behind that had turned up, and were taken.
    """

    cleared_count: int = 0
    met_count: int = 0


@dataclass(slots=True)
class MassWatch:
    """Watches the pages that one scanner reads."""

    _passes: dict[tuple[str, bool], _Pass] = field(default_factory=dict)

    def trips(
        self, tx: Transaction, rule: Rule, state: RuleState, place: Place, found: Found
    ) -> bool:
        """Freeze the rule when the page that begins at this place is the head of a mass.

        Args:
            found: the page's rows that are due, without those of paused tenants.
        """
        upto = seen_upto(state, tx.now)
        reading = (rule.name, place.looks_again)
        if not place.is_under_way:
            self._passes.pop(reading, None)
        if upto is None:
            return False
        known = self._passes.setdefault(reading, _Pass())
        known.cleared_count -= len(found)
        first = None if known.cleared_count >= 0 else _first_turned_up(rule, found, upto)
        if first is None:
            return False
        wanted = Weighing(
            upto, EXAMINED_MOST, max(0, MASS_LEAST - known.met_count), state.paused_tenants(tx.now)
        )
        return _weigh(tx, rule, first, wanted, known)


def _weigh(tx: Transaction, rule: Rule, first: FoundHold, wanted: Weighing, known: _Pass) -> bool:
    """Weigh what stands around the first such row; trip, or clear the rows looked at."""
    weight = tx.holds(rule).weigh(ScanCursor(first.due or "", first.hold_key), wanted)
    if weight.count <= wanted.beyond or weight.share <= MASS_SHARE:
        known.cleared_count = EXAMINED_MOST
        known.met_count += weight.count
        return False
    _trip(tx, rule, weight.count, weight.share)
    return True


def seen_upto(state: RuleState, now: datetime) -> datetime | None:
    """Return the instant up to which every due row must have been seen; None while unknown."""
    if state.scanned_at is None or state.unsettled_at is not None:
        return None
    return min(state.scanned_at, now) - OVERLAP


def _first_turned_up(rule: Rule, found: Found, upto: datetime) -> FoundHold | None:
    """Return the row due first of those that the last scan should have seen, and did not."""
    rows = [
        (due, row)
        for row, due in found
        if not row.is_open and isinstance(due, datetime) and is_due(rule.due, due, upto)
    ]
    return min(rows, key=lambda one: one[0], default=(None, None))[1]


def _trip(tx: Transaction, rule: Rule, count: int, share: float) -> None:
    number = f"at least {count:,}" if count >= EXAMINED_MOST else f"{count:,}"
    reason = (
        f"{number} holds, about {share:.0%} of those that rule {rule.name} holds, turned up overdue "
        "although they were not due at the last scan, as after a migration that went wrong; nothing "
        f"of the rule is released: look at `freehold plan {rule.name}`, then mend the rows or run "
        f"`freehold guard release {rule.name} --by NAME --reason TEXT`"
    )
    figures = {"overdue_count": count, "share": round(share, 3), "examined_most": EXAMINED_MOST}
    tx.guards.trip(GuardKind.MASS, rule.name, reason, figures)
