"""Mode `direct`: a page of a scan is released straight, and only what is left becomes operations.

*Invariants*: a page that fails is written as operations instead, so that the workers find its poison
rows; while a rule is handled with care nothing is released here. *Not here*: reading pages (`scan`),
the release itself (`straight`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from freehold.application.release import BatchResult
from freehold.application.repeat import repeated
from freehold.application.rulestate import be_careful, may_work
from freehold.application.straight import Due, release_straight
from freehold.application.together import Tools, finished
from freehold.domain.errors import (
    DatabaseAway,
    DatabaseBusy,
    RowRefused,
    RuleRefused,
    StatementTimedOut,
)
from freehold.domain.rules import Rule
from freehold.ports.holds import FoundHold
from freehold.ports.ledger import RuleCondition, RuleState, Transaction

T = TypeVar("T")


@dataclass(slots=True)
class StraightPages:
    """Releases pages on one ledger connection.

    Attributes:
        halt: asked before each page; True ends the scan or the window there.
        running: what was released since somebody last took the count.
        in_hand: what a heartbeat says of it; None between pages.
        has_rows: rows were found to be released by the transaction in hand.
        losses: rules whose connection broke with rows in hand, each with when the server was
            started then; kept until the ledger knows of the loss.
    """

    tools: Tools
    halt: Callable[[], bool] = lambda: False
    running: BatchResult = field(default_factory=BatchResult)
    in_hand: str | None = None
    has_rows: bool = False
    losses: dict[str, datetime | None] = field(default_factory=dict)

    def attempt(self, rule: Rule, limit: int, step: Callable[[bool], T]) -> T:
        """Take a step of at most `limit` rows straight; what fails so is taken without.

        Args:
            step: one transaction; told whether it may release.

        Raises:
            StatementTimedOut: the step is to be repeated with fewer rows.
            DatabaseAway: nothing is lost; the rule is handled with care if rows were in hand.
        """
        self.tell_loss(rule)
        self.in_hand = f"{rule.name}: up to {limit} holds"
        try:
            return self._straight(step)
        except StatementTimedOut:
            if limit > 1:
                raise
            return step(False)
        except (RowRefused, RuleRefused, DatabaseBusy):
            return step(False)
        except DatabaseAway:
            if self.has_rows:
                self._note_loss(rule)
            raise
        finally:
            self.in_hand, self.has_rows = None, False

    def _straight(self, step: Callable[[bool], T]) -> T:
        done: list[T] = []
        repeated(lambda: done.append(step(True)), self.tools.dice, self.tools.pause)
        return done[-1]

    def _note_loss(self, rule: Rule) -> None:
        """Handle the rule with care: a row of the page may have broken the connection."""
        self.losses[rule.name] = self.tools.ledger.server_started_at
        self.tell_loss(rule)

    def tell_loss(self, rule: Rule) -> None:
        """Make the ledger know of a loss, as soon as the database can be reached again."""
        if rule.name in self.losses:
            be_careful(self.tools.ledger, rule, self.losses[rule.name])
            del self.losses[rule.name]

    def release(
        self,
        tx: Transaction,
        rule: Rule,
        found: Sequence[tuple[FoundHold, Due]],
        tick_id: int | None,
    ) -> tuple[BatchResult, list[tuple[FoundHold, Due]]]:
        """Release found rows that are not open; return what became of them, and what is left."""
        fresh = [(row, due) for row, due in found if not row.is_open]
        self.has_rows = bool(fresh)
        done = release_straight(tx, rule, fresh, self.tools.checkpoint, tick_id)
        left = {row.hold_key for row in done.left}
        return done.result, [(row, due) for row, due in fresh if row.hold_key in left]

    def tell(self, rule: Rule, result: BatchResult) -> None:
        """Count and tell what was released, once it is committed."""
        if result.total:
            self.running.add(result)
            self.tools.tell(result)
            self.tools.telemetry.tell(finished(rule, result))

    def take(self) -> BatchResult:
        """Return what was released since the last call."""
        taken, self.running = self.running, BatchResult()
        return taken


def may_go_straight(rule: Rule, state: RuleState, now: datetime) -> bool:
    """Tell whether rows may be released without operations now: the rule has no trouble.

    A handler wants a lease, and a paused tenant's holds are put off: only operations have both.
    """
    careful = state.leased or state.batch_limit is not None or state.crash_count > 0
    plain = rule.handler is None and not state.pauses
    active = state.condition is RuleCondition.ACTIVE and may_work(state, now)
    return active and plain and not careful
