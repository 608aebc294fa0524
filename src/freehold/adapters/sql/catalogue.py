"""What the database itself says about the customer's table: where it is and what its columns are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from freehold.adapters.sql.session import Runner, Session
from freehold.domain.errors import RuleRefused
from freehold.domain.rules import Rule, TableName


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `type` is the name that values are cast to, lower case."""

    name: str
    type: str
    nullable: bool
    category: str = ""


def quote(name: str) -> str:
    """Quote one identifier; both databases double the quotes inside."""
    return '"' + name.replace('"', '""') + '"'


def quoted(table: TableName) -> str:
    """Quote a table's whole name."""
    return (
        quote(table.name) if table.schema is None else f"{quote(table.schema)}.{quote(table.name)}"
    )


def read_columns(session: Session, table: TableName) -> Mapping[str, Column]:
    """Read a table's columns by exact name; empty where the table is missing or not visible."""
    runner = Runner(session)
    rows = runner.rows("columns", quoted=quoted(table), table=table.name)
    return {name: Column(name, kind, bool(null), category) for name, kind, null, category in rows}


def is_plain_table(session: Session, table: TableName) -> bool:
    """Tell whether a row's place in the table names it: the table is no view, and has no parts."""
    rows = Runner(session).rows("is_plain_table", quoted=quoted(table))
    return bool(rows and rows[0][0])


def columns_of(session: Session, rule: Rule) -> Mapping[str, Column]:
    """Read the columns that a rule maps.

    Raises:
        RuleRefused: the table or one of the columns is not there; helps after the mend.
    """
    found = read_columns(session, rule.table)
    if not found:
        raise RuleRefused(f"table {rule.table} of rule {rule.name} is not there", "42P01")
    missing = [name for name in rule.mapped_columns if name not in found]
    if missing:
        names = ", ".join(missing)
        raise RuleRefused(f"table {rule.table} of rule {rule.name} has no column {names}", "42703")
    return found
