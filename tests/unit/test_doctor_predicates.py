"""Proofs about predicates: they may miss a truth, they never prove what is false."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freehold.application.doctor.predicates import action_ends_hold, disjoint
from freehold.domain.due import DueKind, DueSpec
from freehold.domain.rules import (
    Condition,
    DeleteRow,
    Now,
    Predicate,
    Rule,
    SetColumns,
    TableName,
    Test,
)

if TYPE_CHECKING:
    from freehold.domain.rules import Literal


def one(column: str, test: Test, *values: Literal) -> Condition:
    return Condition(column, test, values)


HELD = one("s", Test.EQUALS, "held")
NULL = one("p", Test.IS_NULL)
EITHER = one("s", Test.IN, "held", "new")


def rule(held: Predicate, action: SetColumns | DeleteRow) -> Rule:
    due = DueSpec("due", DueKind.NAIVE, "UTC")
    return Rule("r", TableName("t"), ("id",), held, due, action)


@pytest.mark.parametrize(
    ("first", "second", "proved"),
    [
        (((HELD,),), ((one("s", Test.EQUALS, "sold"),),), True),
        (((HELD,),), ((EITHER,),), False),
        (((HELD,),), ((one("s", Test.IN, "new", "old"),),), True),
        (((HELD,),), ((NULL,),), False),
        (((NULL,),), ((one("p", Test.IS_NOT_NULL),),), True),
        (((NULL,),), ((one("p", Test.LESS, 5),),), True),
        (((NULL,),), ((NULL,),), False),
        (((one("p", Test.LESS, 5),),), ((one("p", Test.EQUALS, 7),),), False),
        (((HELD,), (NULL,)), ((one("s", Test.EQUALS, "sold"),),), False),
        (((HELD,),), (), False),
        ((), (), False),
        (((one("p", Test.EQUALS, 1),),), ((one("p", Test.EQUALS, "1.0"),),), False),
        (((one("p", Test.EQUALS, True),),), ((one("p", Test.EQUALS, "t"),),), False),
        (((one("p", Test.EQUALS, "A "),),), ((one("p", Test.EQUALS, "a"),),), False),
        (((one("p", Test.EQUALS, True),),), ((one("p", Test.EQUALS, False),),), True),
    ],
)
def test_disjoint(
    first: tuple[tuple[Condition, ...], ...],
    second: tuple[tuple[Condition, ...], ...],
    *,
    proved: bool,
) -> None:
    assert disjoint(Predicate(first), Predicate(second)) is proved
    assert disjoint(Predicate(second), Predicate(first)) is proved


@pytest.mark.parametrize(
    ("held", "assignments", "ends"),
    [
        (((HELD,),), (("s", "sold"),), True),
        (((HELD,),), (("s", "held"),), False),
        (((HELD,),), (("s", None),), True),
        (((HELD,),), (("s", Now()),), False),
        (((HELD,),), (("x", "sold"),), False),
        (((HELD, NULL),), (("p", Now()),), True),
        (((HELD,), (NULL,)), (("s", "sold"),), False),
        (((HELD,), (NULL,)), (("s", "sold"), ("p", 1)), True),
        (((one("p", Test.IS_NOT_NULL),),), (("p", None),), True),
        (((one("p", Test.IS_NOT_NULL),),), (("p", 0),), False),
        (((one("n", Test.LESS, 3),),), (("n", 3),), True),
        (((one("n", Test.LESS, 3),),), (("n", 2),), False),
        (((one("n", Test.LESS, "c"),),), (("n", "d"),), False),
        (((EITHER,),), (("s", "new"),), False),
        ((), (("s", "sold"),), False),
    ],
)
def test_an_action_ends_the_hold(
    held: tuple[tuple[Condition, ...], ...],
    assignments: tuple[tuple[str, Literal | Now], ...],
    *,
    ends: bool,
) -> None:
    assert action_ends_hold(rule(Predicate(held), SetColumns(assignments))) is ends


def test_a_deleted_row_is_no_hold() -> None:
    assert action_ends_hold(rule(Predicate(), DeleteRow()))
