"""SQL that mends what doctor finds: text for a person to read, copy and run; never run by us."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from freehold.adapters.sql.catalogue import quote, quoted
from freehold.adapters.sql.mapping import COMPANION_PARAMETERS
from freehold.adapters.sql.statements import parameters
from freehold.domain.rules import (
    Condition,
    Literal,
    Predicate,
    Rule,
    SetColumns,
    TableName,
    Test,
)

NAME_LENGTH = 63  # the longest identifier of PostgreSQL


def held_text(held: Predicate) -> str:
    """Write a held predicate with its literals in place, as an index needs it."""
    ands = [" and ".join(map(_condition, alternative)) for alternative in held.alternatives]
    return " or ".join(f"({one})" if len(ands) > 1 else one for one in ands)


def _condition(condition: Condition) -> str:
    left = quote(condition.column)
    if condition.test in (Test.IS_NULL, Test.IS_NOT_NULL):
        return f"{left} {condition.test}"
    values = [_literal(value) for value in condition.values]
    if condition.test is Test.IN:
        return f"{left} in ({', '.join(values)})"
    return f"{left} {condition.test} {values[0]}"


def _literal(value: Literal) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return "null" if value is None else "'" + value.replace("'", "''") + "'"


def _where(rule: Rule) -> str:
    return f" where {held_text(rule.held)}" if rule.held.alternatives else ""


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(quote, names))


def _name(rule: Rule, ending: str) -> str:
    return quote(f"{rule.table.name}_{rule.name}_{ending}"[:NAME_LENGTH])


class _Indexes:
    """Index statements; the dialects differ in one word."""

    def _concurrently(self, rule: Rule) -> str:
        return ""

    def _target(self, rule: Rule) -> str:
        return quoted(rule.table)

    def due_index(self, rule: Rule) -> str:
        """Return the index led by due, over held rows only; the key orders equal dues."""
        columns = _list([rule.due.column, *rule.key])
        return self._index(rule, "due", columns) + _where(rule) + ";"

    def tenant_index(self, rule: Rule) -> str:
        """Return the index led by tenant and due, over held rows only; the key orders equal dues."""
        columns = _list([rule.tenant.column or "", rule.due.column, *rule.key])
        return self._index(rule, "tenant_due", columns) + _where(rule) + ";"

    def unique_key(self, rule: Rule) -> str:
        """Return the unique index on the key."""
        return self._index(rule, "key", _list(rule.key), "unique ") + ";"

    def _index(self, rule: Rule, ending: str, columns: str, unique: str = "") -> str:
        how = self._concurrently(rule)
        return (
            f"create {unique}index {how}{_name(rule, ending)} on {self._target(rule)} ({columns})"
        )

    def one_separator(self, rule: Rule) -> str:
        """Return what writes every textual due with a blank between date and time."""
        due = quote(rule.due.column)
        return (
            f"update {quoted(rule.table)} set {due} = replace({due}, 'T', ' ') "
            f"where {due} like '%T%';"
        )


class SqliteMends(_Indexes):
    """Mending SQL for SQLite; there are no roles and few alterations."""

    def not_null(self, rule: Rule, column: str) -> str | None:
        """Return None: SQLite cannot add the constraint to a table that exists."""
        return None

    def grants(self, rule: Rule) -> str:
        """Return nothing: there are no rights."""
        return ""

    def only_needed(self, rule: Rule) -> str:
        """Return nothing: there are no rights."""
        return ""

    def write_ahead(self) -> str:
        """Return what switches the file to write-ahead logging; it stays so."""
        return "pragma journal_mode = wal;"


class PostgresMends(_Indexes):
    """Mending SQL for PostgreSQL, for the role that we are."""

    def __init__(self, role: str, is_partitioned: Callable[[TableName], bool]) -> None:
        self._role = quote(role)
        self._is_partitioned = is_partitioned

    def _concurrently(self, rule: Rule) -> str:
        return "" if self._is_partitioned(rule.table) else "concurrently "

    def not_null(self, rule: Rule, column: str) -> str | None:
        """Return what forbids NULL in a column."""
        return f"alter table {quoted(rule.table)} alter column {quote(column)} set not null;"

    def grants(self, rule: Rule) -> str:
        """Return the least rights; a row lock needs UPDATE on one column also for a delete."""
        table = quoted(rule.table)
        rights = [f"select ({_list(reads(rule))})", f"update ({_list(writes(rule))})"]
        if not isinstance(rule.action, SetColumns):
            rights.append("delete")
        grant = f"grant {', '.join(rights)} on {table} to {self._role};"
        if rule.table.schema is None:
            return grant
        return f"grant usage on schema {quote(rule.table.schema)} to {self._role};\n{grant}"

    def only_needed(self, rule: Rule) -> str:
        """Return what takes all rights away and grants the least ones."""
        table = quoted(rule.table)
        return f"revoke all on {table} from {self._role};\n{self.grants(rule)}"

    def write_ahead(self) -> str:
        """Return nothing: a server always logs ahead."""
        return ""


def reads(rule: Rule) -> tuple[str, ...]:
    """Return the columns that need SELECT: those mapped, and those that companions name."""
    named = [name for one in rule.companions for name in (*parameters(one.sql), one.lock_by)]
    columns = [name for name in named if name is not None and name not in COMPANION_PARAMETERS]
    return tuple(dict.fromkeys((*rule.mapped_columns, *columns)))


def writes(rule: Rule) -> tuple[str, ...]:
    """Return the columns that need UPDATE: those set, or one for the row lock of a delete."""
    if isinstance(rule.action, SetColumns):
        return tuple(name for name, _ in rule.action.assignments)
    return rule.key[:1]
