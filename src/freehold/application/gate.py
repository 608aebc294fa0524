"""The gate of a scan: what guards and pauses let through, and how far it has seen.

*Invariants*: a page is stopped before anything of it is written or released; the ledger learns how
far a scan has seen only from a reading that ended. *Not here*: the worker's side (`work`,
`together`), what trips a guard (`guards`, `masses`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from freehold.application.masses import Found, MassWatch, seen_upto
from freehold.application.pauses import end_lapsed, scan_pause
from freehold.application.places import Place, Walk
from freehold.application.rulestate import admit
from freehold.domain.rules import Rule
from freehold.ports.ledger import RuleCondition, RuleState, Transaction

_NEVER_MET = RuleState("", "", RuleCondition.WAITING)
NOTE_EVERY = timedelta(seconds=5)  # a pass that saw little more is not noted


@dataclass(slots=True)
class Gate:
    """One scanner's gate.

    Attributes:
        tripped: the last page was stopped by the guard against mass release.
    """

    tripped: bool = False
    _state: RuleState = _NEVER_MET
    _masses: MassWatch = field(default_factory=MassWatch)
    _unsettled: dict[str, datetime | None] = field(default_factory=dict)
    _whole: dict[tuple[str, bool], datetime] = field(default_factory=dict)

    def admit(self, tx: Transaction, rule: Rule) -> RuleState:
        """Return the rule's state; pauses that are over by themselves are ended on the way."""
        state = admit(tx, rule)
        if state.pauses:
            state = end_lapsed(tx, state)
        self._unsettled[rule.name] = state.unsettled_at
        self._state = state
        return state

    def is_shut(self, rule: Rule, now: datetime) -> bool:
        """Tell whether nothing of the admitted rule may be written down now."""
        state = self._state
        waits = state.condition is RuleCondition.WAITING or state.scan_paused is not None
        return waits or bool(state.guards) or scan_pause(rule, state, now) is not None

    def let_in(self, tx: Transaction, rule: Rule, place: Place, found: Found) -> Found:
        """Return the rows of a page that may be taken; none when it is the head of a mass.

        Args:
            place: where the page begins.
        """
        if not place.is_under_way and place.since is None:
            self._whole[rule.name, place.looks_again] = tx.now
        found = self.without_paused(found, tx.now)
        self.tripped = self._masses.trips(tx, rule, self._state, place, found)
        return [] if self.tripped else found

    def seen_upto(self, now: datetime) -> datetime | None:
        """Return the instant by which what was due must have been seen; None while unknown."""
        return seen_upto(self._state, now)

    def without_paused(self, found: Found, now: datetime) -> Found:
        """Leave out the rows of paused tenants."""
        paused = self._state.paused_tenants(now) if self._state.pauses else frozenset()
        return [one for one in found if one[0].tenant not in paused]

    def passed(self, tx: Transaction, rule: Rule, place: Place) -> None:
        """Note how far the scan has seen, if its reading ended.

        Args:
            place: where the next page begins.
        """
        if place.is_under_way:
            return
        began_at = self._whole.pop((rule.name, place.looks_again), None)
        state = self._state
        seen, noted = began_at or place.since, state.scanned_at
        if seen is None:
            return
        settles = began_at is not None and (noted is None or state.unsettled_at is not None)
        if settles or (noted is not None and seen - noted >= NOTE_EVERY):
            tx.rules.note_pass(rule.name, seen, whole=began_at is not None)

    def hurry(self, rule: Rule, walk: Walk) -> None:
        """Let the walk begin at once, and not rest, while overdue rows are expected."""
        since = self._unsettled.get(rule.name)
        if since is not None:
            walk.hurry(since)
