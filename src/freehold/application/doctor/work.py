"""Checks of the work itself: companions, indexes, fence, and rules that share a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from freehold.application.doctor.columns import guess
from freehold.application.doctor.findings import Code, Finding, refuse, warn
from freehold.application.doctor.predicates import disjoint
from freehold.domain.due import DueKind
from freehold.domain.rules import Rule
from freehold.ports.inspection import Inspection, ServerFacts, TableFacts

GIVEN = ("now", "operation_key", "tenant")  # parameters that are no columns
_GIVEN_TEXT = ":now, :operation_key and :tenant."


def parameter_findings(rule: Rule, facts: TableFacts, inspection: Inspection) -> Iterator[Finding]:
    """Find parameters of companions that are no column of the hold."""
    for number, companion in enumerate(rule.companions, 1):
        names = [*inspection.companion_parameters(companion), companion.lock_by]
        for name in dict.fromkeys(names):
            if name is not None and name not in facts.columns and name not in GIVEN:
                guessed = guess(name, [*facts.columns, *GIVEN])
                yield refuse(
                    Code.COMPANION_PARAMETER,
                    rule,
                    f"companion {number}",
                    f"Companion {number} of rule {rule.name} names :{name}, which is no column of "
                    f"table {rule.table}{guessed or ': name a column, or one of ' + _GIVEN_TEXT}",
                )


def companion_findings(rule: Rule, inspection: Inspection) -> Iterator[Finding]:
    """Find companions that the database would refuse, or that keep batches apart."""
    for number, companion in enumerate(rule.companions, 1):
        problem = inspection.companion_problem(companion)
        if problem is not None:
            yield refuse(
                Code.COMPANION,
                rule,
                f"companion {number}",
                f"Companion {number} of rule {rule.name} cannot run: {problem}; mend its SQL or "
                "the rights that it needs.",
            )
    if any(companion.lock_by is None for companion in rule.companions):
        yield warn(
            Code.COMPANION_ORDER,
            rule,
            "companions",
            f"A companion of rule {rule.name} has no lock_by, so that the rule runs one batch at a "
            "time: name the column that holds the key of the row it changes.",
        )


def handler_findings(rule: Rule, problem: str | None, server: ServerFacts) -> Iterator[Finding]:
    """Find a handler that cannot be called, or that keeps the host application waiting."""
    if rule.handler is None:
        return
    if problem is not None:
        yield refuse(Code.HANDLER, rule, rule.handler.target, problem)
    if server.file is not None:
        yield warn(
            Code.HANDLER_LOCK,
            rule,
            rule.handler.target,
            f"The handler of rule {rule.name} may take "
            f"{rule.handler.time_limit.total_seconds():g} s a batch, and on SQLite nobody else "
            "can write meanwhile: keep it short, and set handler_timeout to what the host "
            "application can wait.",
        )


def index_findings(rule: Rule, facts: TableFacts, inspection: Inspection) -> Iterator[Finding]:
    """Find scans that read the whole table."""
    column = rule.due.column
    if not rule.due.comparable_bare:
        yield warn(
            Code.FULL_SCAN,
            rule,
            column,
            f"Column {column} of rule {rule.name} is text in any spelling, which no index serves, "
            "so that every scan reads every held row: store a timestamp or epoch seconds.",
        )
        return
    plan = inspection.scan_plan(rule, facts)
    if not plan.due_indexes:
        yield warn(
            Code.DUE_INDEX,
            rule,
            column,
            f"No index led by column {column} serves the scan of rule {rule.name}, which then "
            "slows down as the table grows: add one over the held rows.",
            inspection.mends.due_index(rule),
            plan.text,
        )
    elif rule.due.kind is DueKind.DATE and not _orders_equal_dues(rule, facts):
        yield warn(
            Code.EQUAL_DUES,
            rule,
            column,
            f"Column {column} of rule {rule.name} holds dates, so that many rows fall due at one "
            "instant and a scan sorts them page by page: let the index go on with the key.",
            inspection.mends.due_index(rule),
        )
    if rule.tenant.column is not None and not inspection.serves_tenants(rule):
        yield warn(
            Code.TENANT_INDEX,
            rule,
            rule.tenant.column,
            f"No index on ({rule.tenant.column}, {column}) serves rule {rule.name}, so that "
            "tenants are treated fairly only within what a scan looks ahead, and a large backlog of "
            "one delays the others until it is worked off: add one over the held rows.",
            inspection.mends.tenant_index(rule),
        )


def _orders_equal_dues(rule: Rule, facts: TableFacts) -> bool:
    wanted = (rule.due.column, *rule.key)
    return any(index.columns[: len(wanted)] == wanted for index in facts.indexes)


def fence_findings(rule: Rule) -> Iterator[Finding]:
    """Find a rule that cannot tell a renewal which leaves due as it was."""
    if not rule.fence:
        yield warn(
            Code.WEAK_FENCE,
            rule,
            rule.due.column,
            f"Rule {rule.name} has no token column in its fence, so that a row given to somebody "
            f"else with the same {rule.due.column} would pass for the old hold: name a token, a "
            "row version or the owner's column in fence.",
        )


def stop_findings(rule: Rule, reason: str | None) -> Iterator[Finding]:
    """Say that a guard or a person keeps a rule from releasing anything."""
    if reason is not None:
        sentence = f"Rule {rule.name} releases nothing now: {reason.rstrip('.')}."
        yield warn(Code.STOPPED, rule, "guards and pauses", sentence)


def overlap_findings(rules: Sequence[Rule]) -> Iterator[Finding]:
    """Find rules of one table that may both take a row."""
    for one, other in combinations(rules, 2):
        if one.table == other.table and not disjoint(one.held, other.held):
            yield warn(
                Code.OVERLAP,
                other,
                str(other.table),
                f"Rules {one.name} and {other.name} may both hold the same row of table "
                f"{other.table}, and the first to come due wins: give one column different values "
                "in their held conditions.",
            )
