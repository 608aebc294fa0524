"""One rule as SQL fragments: the customer's identifiers, quoted, and its values, bound.

*Invariants*: an identifier enters a statement only after the live catalogue has named it; the due
column stands bare, so that its index serves; nothing here raises for a value in a row.
*Not here*: the statements that the fragments are set into (`statements/*/holds.sql`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from freehold.adapters.sql.catalogue import Column, quote, quoted
from freehold.adapters.sql.fragments import Fragments
from freehold.adapters.sql.spelling import PostgresSpelling, Spelling, SqliteSpelling
from freehold.adapters.sql.statements import is_several, parameters
from freehold.domain.due import EmptyDue, due_bound, zone_info
from freehold.domain.errors import RuleRefused
from freehold.domain.rules import (
    Condition,
    Literal,
    Now,
    Predicate,
    Rule,
    SetColumns,
    Test,
)

COMPANION_PARAMETERS = ("now", "operation_key", "tenant")  # beside the columns of the hold


@dataclass(frozen=True, slots=True)
class RuleSql:
    """A rule ready to run: slots for the statements, and the constant parameters they need.

    Attributes:
        is_plain: the table is an ordinary one, where a row's place names it.
    """

    rule: Rule
    slots: Mapping[str, str]
    parameters: Mapping[str, Any]
    is_plain: bool = False

    @property
    def takes_bulk(self) -> bool:
        """Tell whether rows can be taken by their place, with a due that SQL can read alone."""
        return self.is_plain and bool(self.slots["due_instant"])

    def bounds(self, now: datetime) -> Mapping[str, Any]:
        """Return the due bounds of this instant in the due column's own kind, and its local time."""
        local = now.astimezone(zone_info(self.rule.due.zone or "UTC"))
        wall = {"now_wall": local.replace(tzinfo=None).isoformat()}
        if not self.rule.due.comparable_bare:
            return wall
        bound = due_bound(self.rule.due, now)
        return {
            **wall,
            "due_after": bound.after,
            "due_upto": bound.upto,
            "due_gap_from": bound.gap_from,
            "due_gap_to": bound.gap_to,
        }

    @property
    def removes(self) -> bool:
        """Tell whether expiring deletes the row."""
        return not isinstance(self.rule.action, SetColumns)


class _Compiler(Fragments):
    """Builds the slots of one rule in one spelling."""

    def __init__(self, rule: Rule, columns: Mapping[str, Column], spelling: Spelling) -> None:
        super().__init__(columns, spelling)
        self.rule = rule

    def assignments(self) -> str:
        if not isinstance(self.rule.action, SetColumns):
            return ""
        return ", ".join(
            f"{quote(name)} = {self.assigned(self.columns[name], value)}"
            for name, value in self.rule.action.assignments
        )

    def assigned(self, column: Column, value: Literal | Now) -> str:
        if isinstance(value, Now):
            return self.spelling.now(column, self.rule.due)
        return "null" if value is None else self.value(column, value)

    def looks_expired(self) -> str:
        """Compare the literal columns of the action; a deleted row is gone, not expired."""
        if not isinstance(self.rule.action, SetColumns):
            return self.spelling.false
        tests = [
            Condition(name, Test.IS_NULL)
            if value is None
            else Condition(name, Test.EQUALS, (value,))
            for name, value in self.rule.action.assignments
            if not isinstance(value, Now)
        ]
        return self.optional(Predicate((tuple(tests),))) if tests else self.spelling.false

    def companion_image(self) -> str:
        """Read the columns that companions name, ahead of the change.

        Raises:
            RuleRefused: a parameter is neither a column nor one of ours, or a companion holds more
                than one statement: the rest would run uncounted, and even while one is planned.
        """
        if any(is_several(one.sql) for one in self.rule.companions):
            why = f"a companion of rule {self.rule.name} holds more than one statement"
            raise RuleRefused(why, "42601")
        named = [name for one in self.rule.companions for name in parameters(one.sql)]
        orders = [one.lock_by for one in self.rule.companions if one.lock_by is not None]
        columns = [n for n in dict.fromkeys([*named, *orders]) if n not in COMPANION_PARAMETERS]
        for name in columns:
            if name not in self.columns:
                raise RuleRefused(
                    f"a companion of rule {self.rule.name} names :{name}, "
                    f"which is no column of {self.rule.table}",
                    "42703",
                )
        return self.image(tuple(columns))

    def tenant(self) -> str:
        if self.rule.tenant.column is not None:
            return self.text(self.rule.tenant.column)
        if self.rule.tenant.constant is None:
            return self.spelling.null_text
        self.parameters["tenant_constant"] = self.rule.tenant.constant
        return self.spelling.text_parameter("tenant_constant")

    def key_text(self) -> str:
        texts = [self.text(name) for name in self.rule.key]
        return texts[0] if len(texts) == 1 else self.spelling.pack(texts)

    def key_parts(self, source: str) -> list[str]:
        """Return the key's values, taken from a text expression, in their own types."""
        count = len(self.rule.key)
        return [
            self.spelling.key_part(self.columns[name], source, place, count)
            for place, name in enumerate(self.rule.key)
        ]

    def key_match(self) -> str:
        pairs = zip(self.rule.key, self.key_parts("o.hold_key"), strict=True)
        return " and ".join(
            self.spelling.key_equals(self.spelling.key_left(self.columns[n]), v) for n, v in pairs
        )

    def key_order(self) -> str:
        return ", ".join(self.spelling.key_left(self.columns[name]) for name in self.rule.key)

    def after_key(self) -> str:
        values = ", ".join(self.key_parts(self.spelling.text_parameter("cursor_key")))
        return f"(({self.key_order()}) > ({values}))"

    def due_slots(self) -> dict[str, str]:
        column = self.columns[self.rule.due.column]
        due = f"h.{quote(column.name)}"
        if not self.rule.due.comparable_bare:
            true = self.spelling.true
            return {
                "due": due,
                "due_range": f"{due} is not null",
                "overdue": true,
                "due_upto": true,
                "upto": "null",
                "due_empty": f"{due} is null",
                "scan_order": self.key_order(),
            }
        kind = self.rule.due.kind

        def bound(name: str) -> str:
            return self.spelling.due_bound(column, kind, name)

        less = "<=" if self.rule.due.inclusive else "<"
        in_gap = f"{due} > {bound('due_gap_from')} and {due} < {bound('due_gap_to')}"
        upto = f"{due} {less} {bound('due_upto')} and not ({in_gap})"
        unreadable = self.spelling.unreadable(column, kind)
        empty = f"({due} is null or {due} <= {bound('due_after')}{unreadable})"
        due_range = f"{due} > {bound('due_after')} and {upto}"
        with_empty = f"(({upto}) or {empty})"
        empty_is_due = self.rule.due.on_empty is EmptyDue.NOW
        return {
            "due": due,
            "upto": bound("due_upto"),
            "due_from": bound("due_after"),
            "due_to": bound("due_upto"),
            "due_upto": with_empty if empty_is_due else upto,
            "due_range": due_range,
            "overdue": with_empty if empty_is_due else due_range,
            "due_empty": empty,
            "scan_order": f"{due}, {self.key_order()}",
        }

    def due_instant(self) -> str:
        """Return the due as an instant, for statements that Python does not look over."""
        column = self.columns[self.rule.due.column]
        return self.spelling.due_instant(column, self.rule.due) or ""

    def after_cursor(self, compared: str = ">") -> str:
        """Compare (due, key) as one row, which an index that goes on with the key can seek."""
        if not self.rule.due.comparable_bare:
            return self.after_key()
        column = self.columns[self.rule.due.column]
        keys = ", ".join(self.key_parts(self.spelling.text_parameter("cursor_key")))
        row = f"h.{quote(column.name)}, {self.key_order()}"
        return f"(({row}) {compared} ({self.spelling.due_cursor(column)}, {keys}))"

    def tenant_slots(self, due_slots: Mapping[str, str]) -> dict[str, str]:
        """Return the slots of reading tenant by tenant; none where the rule cannot be read so."""
        if self.rule.tenant.column is None or not self.rule.due.comparable_bare:
            return {}
        column, spelling = self.columns[self.rule.tenant.column], self.spelling
        tenant, due = f"h.{quote(column.name)}", due_slots["due"]
        cursor_due = spelling.due_cursor(self.columns[self.rule.due.column])
        slots = {
            "tenant_column": tenant,
            "tenant_out": spelling.tenant_out("t.tenant"),
            "after_tenant": f"{tenant} > {spelling.tenant_value(column, ':after_tenant')}",
            "of_nobody": f"{tenant} is null",
        }
        if isinstance(spelling, SqliteSpelling):
            after = self.after_cursor()
            own = f"{tenant} = {spelling.tenant_value(column, ':of_tenant')}"
            places = {"of_tenant": own, "after_place": after, "after_of_nobody": after}
            return {**slots, **places, "behind": after}
        own = spelling.tenant_value(column, "t.tenant")
        place_due = cursor_due.replace(":cursor_due", "t.due")
        keys, key_values = self.key_order(), ", ".join(self.key_parts("t.hold_key"))
        low, high = due_slots["due_from"], due_slots["due_to"]
        pair = f"({tenant}, {due})"
        return {
            **slots,
            # Rows compared whole: an index on due alone is never taken for these.
            "of_tenant": f"{pair} > ({own}, {low}) and {pair} <= ({own}, {high})",
            "after_place": f"({tenant}, {due}, {keys}) > ({own}, {place_due}, {key_values})",
            "after_of_nobody": f"{due} >= {place_due} "
            f"and ({due}, {keys}) > ({place_due}, {key_values})",
            "behind": f"{pair} >= (t.tenant, {cursor_due}) and {self.after_cursor()}",
        }

    def slots(self) -> dict[str, str]:
        held = self.predicate(self.rule.held)
        due_slots = self.due_slots()
        return {
            "table": quoted(self.rule.table),
            "key_text": self.key_text(),
            "identity": self.packed(self.rule.identity_columns),
            "guard": self.packed(self.rule.guard_columns),
            "due_text": self.text(self.rule.due.column),
            "tenant": self.tenant(),
            "held": held,
            "is_held": self.spelling.surely(held),
            "confirmed": self.optional(self.rule.confirmed),
            "cancelled": self.optional(self.rule.cancelled),
            "looks_expired": self.looks_expired(),
            "key_match": self.key_match(),
            "key_order": self.key_order(),
            "key_order_of_operation": ", ".join(self.key_parts("hold_key")),
            "after_key": self.after_key(),
            "lock_strength": "no key update"
            if isinstance(self.rule.action, SetColumns)
            else "update",
            "assignments": self.assignments(),
            "before_image": self.image(self.rule.mapped_columns),
            "companion_image": self.companion_image(),
            "due_instant": self.due_instant(),
            "tokens": self.image(self.rule.fence),
            "carry": self.image(self.rule.carry),
            "after_cursor": self.after_cursor(),
            "upto_cursor": self.after_cursor("<="),
            "true": self.spelling.true,
            "is_due": self.spelling.surely(due_slots["due_upto"]),
            **due_slots,
            **self.tenant_slots(due_slots),
        }


def compile_rule(
    rule: Rule, columns: Mapping[str, Column], dialect: str, *, sample_due: str | None = None
) -> RuleSql:
    """Compile a rule against the live catalogue.

    Args:
        sample_due: one value of a textual due column, whose date and time separator the bounds
            must share to be comparable.
    """
    separator = "T" if sample_due is not None and sample_due[10:11] == "T" else " "
    spellings: dict[str, Spelling] = {
        "postgres": PostgresSpelling(),
        "sqlite": SqliteSpelling(separator),
    }
    compiler = _Compiler(rule, columns, spellings[dialect])
    return RuleSql(rule, compiler.slots(), compiler.parameters)
