"""The audit: asks every check for violations, one snapshot a check, and never writes.

*Invariants*: a check that cannot be asked says so instead of passing. *Not here*: the queries
(`ports.audit`); the tests' own invariants, which share no text with these (`testing.invariants`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from freehold.domain.due import is_due, read_due
from freehold.domain.errors import RuleRefused, StatementTimedOut
from freehold.domain.names import digest
from freehold.domain.rules import Rule
from freehold.ports.audit import Check, Terms, Violation
from freehold.ports.holds import FoundHold, ScanCursor
from freehold.ports.insight import Readable, Reading
from freehold.ports.ledger import RuleCondition

PAGE = 1_000  # rows of one step
DUE_PAGE = 20_000  # due rows of one step; large, since each step sorts all rows due at one instant

# In the order in which they are asked: each with its invariant and what it says in one line.
CHECKS: dict[Check, tuple[str, str]] = {
    Check.NEVER_EARLY: ("I1", "No hold was released before its due and grace were over."),
    Check.RIGHT_HOLD: ("I2", "Every release changed the granting that its operation named."),
    Check.NEVER_LOST: ("I3", "No hold is due beyond the promise without an open operation."),
    Check.RELEASED_STAYS_RELEASED: (
        "I9",
        "No released hold is held again unnoticed, with the same due and tokens.",
    ),
    Check.EXPIRED_HAS_EVENT: ("I4", "Every release left its event."),
    Check.EVENT_HAS_EXPIRED: ("I4", "Every event tells a release that was recorded with it."),
    Check.ENDED_ONCE: ("I5", "Every operation, and every generation of a hold, ended once."),
    Check.OPEN_OR_ENDED: ("I6", "No operation is open that has ended already."),
    Check.UNIQUE_INDEXES: ("I7", "The unique indexes that the guarantees rest on are there."),
    Check.EVENTS_UNIQUE: ("I7", "No event stands in the outbox twice."),
    Check.ATTEMPTS_BOUNDED: ("I11", "No operation was tried more often than the policy allows."),
    Check.DEAD_HAS_REASON: ("I11", "Everything in review says why it is there."),
    Check.LEASE_TOKENS_GROW: ("I12", "Nobody wrote under a lease that was lost."),
    Check.LEASES_RETURN: ("I13", "Leases that ended were taken back by the sweep."),
    Check.READY_IS_TAKEN: ("I14", "Nothing of an active rule waits beyond the promise."),
    Check.EVENTS_LEAVE: (
        "I15",
        "Events leave within the promise, unless a target fails or is paused, and are owed no more.",
    ),
    Check.TICKS_FINISH: ("I25", "Every run of a schedule finished, or has a successor."),
    Check.TALLIES_EQUAL_RECORDS: ("I26", "The counts of reports are those of the records."),
    Check.REPORTED_ONCE: (
        "I17",
        "Every counted release is in its own tenant's report, or in none yet.",
    ),
    Check.FACTS_UNCHANGED: (
        "I22",
        "The facts of every report are as they were frozen, and tell what it counts.",
    ),
    Check.WINDOWS_TILE: ("I18", "The days of a tenant's reports leave no gap and do not overlap."),
    Check.MAILED_ONCE: (
        "I19",
        "No recipient's mail of a report was accepted twice, unless a person wanted that.",
    ),
    Check.SENDS_AGREE: ("I21", "Reports, sends and attempts agree on what was accepted."),
    Check.MAILS_UNCHANGED: ("I22", "Every mail that is kept is as it was frozen."),
    Check.SENDS_MOVE: ("I23", "No send rests: its end is known, near, or a person's to say."),
    Check.SUMMARIES_ACCOUNTED: (
        "I24",
        "Every call of a model was closed, and mails hold accepted texts on their own facts.",
    ),
    Check.TENANT_IS_THE_ROWS: ("I27", "Every operation and record has the tenant of its row."),
    Check.ACTIONS_CHAINED: ("I29", "The action log was not changed behind our back."),
}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found.

    Attributes:
        not_asked: why the check could not be asked, in a sentence; None when it was.
    """

    check: Check
    violations: Sequence[Violation]
    not_asked: str | None = None

    @property
    def invariant(self) -> str:
        """Return the number of the invariant."""
        return CHECKS[self.check][0]

    @property
    def promise(self) -> str:
        """Return what the check says, in one line."""
        return CHECKS[self.check][1]

    @property
    def clean(self) -> bool:
        """Tell whether the check was asked and found nothing."""
        return not self.violations and self.not_asked is None


def audit(
    source: Readable,
    rules: Sequence[Rule],
    terms: Terms | None = None,
    *,
    on_check: Callable[[Check], None] = lambda _: None,
) -> list[CheckResult]:
    """Ask every check about the ledger and about each rule.

    Args:
        on_check: told of each check before it is asked.

    Raises:
        DatabaseAway: the database cannot be reached; a repeat is safe.
    """
    results = []
    for check in CHECKS:
        on_check(check)
        results.append(_ask(source, rules, check, terms or Terms()))
    return results


def _ask(source: Readable, rules: Sequence[Rule], check: Check, terms: Terms) -> CheckResult:
    found: list[Violation] = []
    refused: list[str] = []
    try:
        with source.reading(whole_tables=True) as reading:
            found += reading.audit.violations(check, terms)
    except StatementTimedOut:
        refused.append("it takes too long; bound it with --since")
    for rule in rules:
        try:
            with source.reading(whole_tables=True) as reading:
                found += _of_rule(reading, check, rule, terms)
        except RuleRefused as error:
            refused.append(f"rule {rule.name}: {error}")
        except StatementTimedOut:
            refused.append(f"rule {rule.name}: it takes too long; bound it with --since")
    return CheckResult(check, found[: terms.limit], "; ".join(refused) or None)


def _of_rule(reading: Reading, check: Check, rule: Rule, terms: Terms) -> Sequence[Violation]:
    if check is Check.NEVER_LOST:
        return _lost(reading, rule, terms)
    if check is Check.RIGHT_HOLD:
        return _wrong(reading, rule, terms)
    return reading.audit.violations_of_rule(check, rule, terms)


def _wrong(reading: Reading, rule: Rule, terms: Terms) -> list[Violation]:
    """Name each released row anew, and compare it with the operation's name."""
    found: list[Violation] = []
    after = ("", 0)
    while len(found) < terms.limit:
        page = reading.audit.released_images(rule, after, PAGE, terms)
        found += [
            Violation(rule.name, one.hold_key, one.operation_id, "another granting was released")
            for one in page
            if one.is_of_mapping and digest(rule.name, one.hold_key, one.identity) != one.digest
        ]
        if len(page) < PAGE:
            break
        after = (page[-1].hold_key, page[-1].operation_id)
    return found[: terms.limit]


def _lost(reading: Reading, rule: Rule, terms: Terms) -> list[Violation]:
    """Read due rows, oldest first, up to the promise.

    A rule that may not work loses nothing, and neither does one with an open window, which has all
    of them; whether a window stands still is another check's question.
    """
    state = reading.figures.states([rule.name]).get(rule.name)
    if state is None or state.condition is not RuleCondition.ACTIVE or state.scan_paused:
        return []
    if reading.history.open_windows(rule.name):
        return []
    promised = reading.now - rule.promise
    found: list[Violation] = []
    after: ScanCursor | None = None
    while len(found) < terms.limit:
        page = reading.holds(rule).find_due(after, DUE_PAGE)
        found += [lost for row in page if (lost := _lost_one(reading, rule, row, promised))]
        if len(page) < DUE_PAGE or _beyond(rule, page[-1], promised):
            break
        after = ScanCursor(page[-1].due or "", page[-1].hold_key)
    return found[: terms.limit]


def _beyond(rule: Rule, row: FoundHold, instant: datetime) -> bool:
    """Tell whether the rows behind this one, in due order, came due after an instant."""
    due = read_due(rule.due, row.due)
    return (
        rule.due.comparable_bare
        and isinstance(due, datetime)
        and not is_due(rule.due, due, instant)
    )


def _lost_one(reading: Reading, rule: Rule, row: FoundHold, promised: datetime) -> Violation | None:
    due = read_due(rule.due, row.due)
    if row.is_open or not isinstance(due, datetime) or not is_due(rule.due, due, promised):
        return None
    # A row that could not be written down is in review under a name made of its digest.
    name = f"digest {digest(rule.name, row.hold_key, row.identity)}"
    if reading.history.open_operations(rule.name, name):
        return None
    return Violation(
        rule.name, row.hold_key, None, f"due at {due.isoformat()}, and no operation is open"
    )
