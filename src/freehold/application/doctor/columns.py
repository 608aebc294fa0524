"""Checks of a rule against its table's columns: there, fitting, allowed."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from freehold.application.doctor.findings import Code, Finding, refuse, warn
from freehold.domain.due import DueKind, check_zone
from freehold.domain.rules import Literal, Now, Rule, SetColumns
from freehold.ports.inspection import ColumnFacts, Inspection, Mends, Shape, TableFacts

ALL_BITS = 64

_FITTING: dict[DueKind, tuple[Shape, ...]] = {
    DueKind.INSTANT: (Shape.INSTANT,),
    DueKind.NAIVE: (Shape.WALL,),
    DueKind.DATE: (Shape.DAY,),
    DueKind.EPOCH_SECONDS: (Shape.INTEGER, Shape.NUMBER),
    DueKind.EPOCH_MILLIS: (Shape.INTEGER, Shape.NUMBER),
    DueKind.ISO: (Shape.TEXT, Shape.JSON),
}
_TEXTUAL = (Shape.TEXT, Shape.WALL, Shape.FREE, Shape.OTHER)
# SQLite keeps date and time as text under any name that is no number's.
_FITTING_SQLITE: dict[DueKind, tuple[Shape, ...]] = {
    DueKind.INSTANT: (),
    DueKind.NAIVE: _TEXTUAL,
    DueKind.DATE: _TEXTUAL,
    DueKind.EPOCH_SECONDS: (Shape.INTEGER, Shape.NUMBER),
    DueKind.EPOCH_MILLIS: (Shape.INTEGER, Shape.NUMBER),
    DueKind.ISO: _TEXTUAL,
}
_BETTER = {
    Shape.INSTANT: "timestamptz",
    Shape.WALL: "naive with a zone",
    Shape.DAY: "date",
    Shape.INTEGER: "epoch_s or epoch_ms",
    Shape.NUMBER: "epoch_s or epoch_ms",
    Shape.TEXT: "iso",
    Shape.JSON: "iso",
}


def guess(name: str, known: list[str]) -> str:
    """Return a suggestion for a name that is not there, or nothing."""
    folded = {one.lower(): one for one in reversed(known)}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f"; did you mean {folded[close[0]]}?" if close else ""


def missing_columns(rule: Rule, facts: TableFacts) -> Iterator[Finding]:
    """Find columns that the rule maps and the table has not."""
    for name in rule.mapped_columns:
        if name not in facts.columns:
            yield refuse(
                Code.COLUMN_MISSING,
                rule,
                name,
                f"Table {rule.table} has no column {name}, which rule {rule.name} maps"
                f"{guess(name, list(facts.columns)) or ': mend the rule or the table.'}",
            )


def zone_findings(rule: Rule) -> Iterator[Finding]:
    """Find a due whose local times have no known zone."""
    due = rule.due
    if due.zone is None:
        if due.kind in (DueKind.NAIVE, DueKind.DATE):
            yield refuse(
                Code.DUE_ZONE,
                rule,
                due.column,
                f"Column {due.column} of rule {rule.name} holds local times of kind {due.kind}, "
                'and the rule names no zone: add one, such as zone = "UTC".',
            )
        return
    try:
        check_zone(due.zone)
    except ValueError as error:
        yield refuse(Code.DUE_ZONE, rule, due.column, f"Rule {rule.name}: {error}.")


def due_type(rule: Rule, facts: TableFacts, engine: str) -> Iterator[Finding]:
    """Find a kind that the due column's type does not hold."""
    column, kind = facts.columns[rule.due.column], rule.due.kind
    where = f"of rule {rule.name}"
    if engine == "SQLite" and kind is DueKind.INSTANT:
        yield refuse(
            Code.DUE_TYPE,
            rule,
            column.name,
            f"SQLite has no type for instants, so kind timestamptz of column {column.name} {where} "
            "cannot be: say naive with a zone, or iso where the text names its offset.",
        )
        return
    fitting = (_FITTING_SQLITE if engine == "SQLite" else _FITTING)[kind]
    narrow = kind is DueKind.EPOCH_MILLIS and column.bits < ALL_BITS
    if column.shape not in fitting or narrow:
        better = _BETTER.get(column.shape)
        advice = f"say kind = {better}" if better and not narrow else "map another column"
        yield refuse(
            Code.DUE_TYPE,
            rule,
            column.name,
            f"Column {column.name} is {column.type or 'without a type'}, which does not hold kind "
            f"{kind} {where}: {advice}.",
        )


def key_findings(rule: Rule, facts: TableFacts, mends: Mends) -> Iterator[Finding]:
    """Find a key that may name two rows, or none."""
    key = set(rule.key)
    names = ", ".join(rule.key)
    for name in rule.key:
        if facts.columns[name].shape is Shape.FREE:
            yield refuse(
                Code.KEY_WITHOUT_TYPE,
                rule,
                name,
                f"Key column {name} of rule {rule.name} has no type, so that SQLite would not find "
                "its values again: declare it INTEGER or TEXT.",
            )
    if not any(_makes_unique(one.columns, key) for one in facts.indexes if _whole(one)):
        yield refuse(
            Code.KEY_NOT_UNIQUE,
            rule,
            names,
            f"Nothing makes the key ({names}) of rule {rule.name} unique, so that one hold could "
            "stand for two rows: add a unique index, or name other columns.",
            mends.unique_key(rule),
        )
    for name in rule.key:
        if facts.columns[name].nullable:
            yield warn(
                Code.KEY_NULLABLE,
                rule,
                name,
                f"Key column {name} of rule {rule.name} may be NULL, and such a row can never be "
                "released: forbid NULL.",
                mends.not_null(rule, name),
            )


def _whole(index: object) -> bool:
    return bool(getattr(index, "unique", False)) and not getattr(index, "partial", True)


def _makes_unique(columns: tuple[str, ...], key: set[str]) -> bool:
    return bool(columns) and set(columns) <= key


def literal_findings(rule: Rule, facts: TableFacts, inspection: Inspection) -> Iterator[Finding]:
    """Find configured values that their column's type cannot hold."""
    for name, literal in dict.fromkeys(_compared(rule)):
        column = facts.columns[name]
        problem = inspection.literal_problem(column, literal)
        if problem is not None:
            yield _unfit(rule, column, literal, problem, "compares it with")
    if isinstance(rule.action, SetColumns):
        for name, value in rule.action.assignments:
            if not isinstance(value, Now):
                yield from _assigned(rule, facts.columns[name], value, inspection)


def _compared(rule: Rule) -> Iterator[tuple[str, Literal]]:
    for predicate in (rule.held, rule.confirmed, rule.cancelled):
        for alternative in predicate.alternatives if predicate is not None else ():
            for condition in alternative:
                for value in condition.values:
                    yield condition.column, value


def _assigned(
    rule: Rule, column: ColumnFacts, value: Literal, inspection: Inspection
) -> Iterator[Finding]:
    if value is None:
        if not column.nullable:
            yield refuse(
                Code.NULL_REFUSED,
                rule,
                column.name,
                f"Rule {rule.name} sets column {column.name} to NULL, which the column forbids: "
                "set a value, or allow NULL there.",
            )
        return
    problem = inspection.literal_problem(column, value)
    if problem is not None:
        yield _unfit(rule, column, value, problem, "sets it to")
    elif column.length is not None and len(str(value)) > column.length:
        yield refuse(
            Code.TOO_LONG,
            rule,
            column.name,
            f"Rule {rule.name} sets column {column.name} to {value!r}, {len(str(value))} "
            f"characters, and the column takes {column.length}: shorten the value or widen the "
            "column.",
        )


def _unfit(rule: Rule, column: ColumnFacts, literal: Literal, problem: str, how: str) -> Finding:
    advice = guess(str(literal), list(column.labels)) or ": mend the value in the rule."
    return refuse(
        Code.LITERAL,
        rule,
        column.name,
        f"Column {column.name} is {column.type}, and rule {rule.name} {how} {literal!r} "
        f"({problem}){advice}",
    )
