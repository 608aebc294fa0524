"""Proofs about predicates without a database: disjoint ones, and ones that an action makes false.

A proof may fail where the truth is on its side; it never succeeds against it.
"""

from __future__ import annotations

from itertools import product

from freehold.domain.rules import (
    Condition,
    Literal,
    Now,
    Predicate,
    Rule,
    SetColumns,
    Test,
)


def disjoint(one: Predicate, other: Predicate) -> bool:
    """Tell whether no row can satisfy both."""
    if not one.alternatives or not other.alternatives:
        return False
    pairs = product(one.alternatives, other.alternatives)
    return all(
        any(_contradict(a, b) for a, b in product(first, second) if a.column == b.column)
        for first, second in pairs
    )


def action_ends_hold(rule: Rule) -> bool:
    """Tell whether the held predicate is surely false once the action was done."""
    if not isinstance(rule.action, SetColumns):
        return True
    if not rule.held.alternatives:
        return False
    assigned = dict(rule.action.assignments)
    return all(
        any(_made_false(one, assigned[one.column]) for one in alternative if one.column in assigned)
        for alternative in rule.held.alternatives
    )


def _contradict(one: Condition, other: Condition) -> bool:
    if Test.IS_NULL in (one.test, other.test):
        return {one.test, other.test} != {Test.IS_NULL}
    if not {one.test, other.test} <= {Test.EQUALS, Test.IN}:
        return False
    return all(_differ(a, b) for a, b in product(one.values, other.values))


def _made_false(condition: Condition, value: Literal | Now) -> bool:
    if value is None:
        return condition.test is not Test.IS_NULL
    if condition.test is Test.IS_NULL:
        return True
    if isinstance(value, Now) or condition.test is Test.IS_NOT_NULL:
        return False
    if condition.test is Test.LESS:
        limit = condition.values[0]
        return _is_number(value) and _is_number(limit) and float(value) >= float(limit)  # type: ignore[arg-type]
    return all(_differ(value, one) for one in condition.values)


def _is_number(value: Literal) -> bool:
    return isinstance(value, int | float)


def _differ(one: Literal, other: Literal) -> bool:
    """Tell values that surely differ: 1, 1.0, '1' and true may be one value in some column."""
    if one is None or other is None:
        return True  # a comparison with NULL is never true
    return _plain(one) != _plain(other)


def _plain(value: Literal) -> float | str:
    if isinstance(value, str) and value.lower() in ("true", "t", "yes", "y", "on"):
        return 1.0
    if isinstance(value, str) and value.lower() in ("false", "f", "no", "n", "off"):
        return 0.0
    try:
        return float(value)  # type: ignore[arg-type]
    except ValueError:
        return str(value).rstrip().lower()
