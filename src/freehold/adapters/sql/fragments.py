"""Columns and conditions of a customer's table as SQL, in one dialect's spelling.

*Invariants*: a column enters a statement only after the live catalogue has named it; a configured
value is bound, or written by the spelling; no expression here raises for a value in a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from freehold.adapters.sql.catalogue import Column, quote
from freehold.adapters.sql.spelling import Spelling
from freehold.domain.rules import Condition, Literal, Predicate, Test


class Fragments:
    """Builds fragments over the table `h`, and gathers the parameters that they need."""

    def __init__(self, columns: Mapping[str, Column], spelling: Spelling) -> None:
        self.columns = columns
        self.spelling = spelling
        self.parameters: dict[str, Any] = {}

    def text(self, name: str) -> str:
        """Return a column's value as lossless text."""
        return self.spelling.text(self.columns[name])

    def packed(self, names: tuple[str, ...]) -> str:
        """Return a JSON array of columns as texts."""
        return self.spelling.pack([self.text(name) for name in names])

    def image(self, names: tuple[str, ...]) -> str:
        """Return a JSON object of columns as texts, by name."""
        return self.spelling.image([(name, self.text(name)) for name in names])

    def value(self, column: Column, literal: Literal) -> str:
        """Return a configured value in the column's type."""
        return self.spelling.value(column, literal, self.parameters)

    def condition(self, condition: Condition) -> str:
        """Return one comparison; the column stands bare where its type can be compared."""
        column = self.columns[condition.column]
        bare = f"h.{quote(column.name)}"
        if condition.test in (Test.IS_NULL, Test.IS_NOT_NULL):
            return f"{bare} {condition.test}"
        left = self.spelling.comparable(column)
        values = [self.value(column, value) for value in condition.values]
        if condition.test is Test.IN:
            return f"{left} in ({', '.join(values)})"
        return f"{left} {condition.test} {values[0]}"

    def predicate(self, predicate: Predicate) -> str:
        """Return alternatives of conditions; NULL where the database cannot tell."""
        if not predicate.alternatives:
            return self.spelling.true
        ands = [
            " and ".join(self.condition(condition) for condition in alternative)
            for alternative in predicate.alternatives
        ]
        return "(" + " or ".join(f"({one})" if len(ands) > 1 else one for one in ands) + ")"

    def optional(self, predicate: Predicate | None) -> str:
        """Return true or false, never NULL; false without a predicate."""
        if predicate is None:
            return self.spelling.false
        return self.spelling.surely(self.predicate(predicate))
