"""Checks of the customer's table of tenants, which `[tenants]` maps.

*Not here*: the values in its rows (`freehold tenant sync --dry-run`).
"""

from __future__ import annotations

from collections.abc import Iterator

from freehold.application.doctor.columns import guess
from freehold.application.doctor.findings import Code, Finding, fine, refuse
from freehold.domain.tenant_mapping import TenantMapping
from freehold.ports.inspection import Inspection, ServerFacts, Shape, TableFacts, TableKind


def tenants_findings(
    mapping: TenantMapping, inspection: Inspection, server: ServerFacts
) -> Iterator[Finding]:
    """Find what keeps the table from being read, page by page in the order of its id."""
    place = str(mapping.table)
    facts = inspection.table(mapping.table)
    if facts is None:
        other = guess(place, list(inspection.table_names()))
        yield refuse(
            Code.TABLE_MISSING,
            None,
            place,
            f"There is no table {place}, which [tenants] names"
            f"{other or ': mend the name or the database URL.'}",
        )
        return
    found = [*_columns(mapping, facts)]
    if not found:
        found += [*_right(mapping, facts, server), *_id(mapping, facts)]
        found += [*_literals(mapping, facts, inspection)]
    yield from found
    if not found:
        sentence = f"The tenants of [tenants] can be read from {facts.kind} {place}."
        yield fine(Code.FITS, None, place, sentence)


def _columns(mapping: TenantMapping, facts: TableFacts) -> Iterator[Finding]:
    for name in mapping.columns:
        if name not in facts.columns:
            yield refuse(
                Code.COLUMN_MISSING,
                None,
                name,
                f"Table {mapping.table} has no column {name}, which [tenants] maps"
                f"{guess(name, list(facts.columns)) or ': mend the mapping or the table.'}",
            )


def _right(mapping: TenantMapping, facts: TableFacts, server: ServerFacts) -> Iterator[Finding]:
    unread = [name for name in mapping.columns if not facts.columns[name].readable]
    outside = facts.rights is not None and not facts.rights.use_schema
    if server.role is None or server.role.superuser or not (unread or outside):
        return
    missing = [*(["USAGE of the schema"] if outside else []), f"SELECT ({', '.join(unread)})"]
    yield refuse(
        Code.RIGHT_MISSING,
        None,
        str(mapping.table),
        f"Role {server.role.name} lacks {', '.join(missing)} on table {mapping.table}, which "
        "[tenants] needs: grant it.",
    )


def _id(mapping: TenantMapping, facts: TableFacts) -> Iterator[Finding]:
    if facts.columns[mapping.id].shape is Shape.FREE:
        yield refuse(
            Code.KEY_WITHOUT_TYPE,
            None,
            mapping.id,
            f"Column {mapping.id} of table {mapping.table} has no type, so that SQLite would not "
            "find its values again: declare it INTEGER or TEXT.",
        )
    whole = [one for one in facts.indexes if one.unique and not one.partial]
    if facts.kind is not TableKind.VIEW and not any(one.columns == (mapping.id,) for one in whole):
        yield refuse(
            Code.KEY_NOT_UNIQUE,
            None,
            mapping.id,
            f"Nothing makes column {mapping.id} of table {mapping.table} unique, so that one "
            "tenant could have two rows: add a unique index, or name another column.",
        )


def _literals(
    mapping: TenantMapping, facts: TableFacts, inspection: Inspection
) -> Iterator[Finding]:
    for alternative in mapping.active.alternatives if mapping.active is not None else ():
        for condition in alternative:
            column = facts.columns[condition.column]
            for value in condition.values:
                problem = inspection.literal_problem(column, value)
                if problem is not None:
                    yield refuse(
                        Code.LITERAL,
                        None,
                        column.name,
                        f"Column {column.name} is {column.type}, and tenants.active compares it "
                        f"with {value!r} ({problem}): mend the value in [tenants].",
                    )
