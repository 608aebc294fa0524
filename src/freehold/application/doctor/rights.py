"""Checks of what our role may do to the table, and of what it is shown."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.application.doctor.findings import Code, Finding, refuse, warn
from freehold.domain.errors import RuleRefused
from freehold.domain.rules import DeleteRow, Rule, SetColumns
from freehold.ports.inspection import Inspection, Mends, RoleFacts, TableFacts, TableRights


def right_findings(
    rule: Rule, facts: TableFacts, role: RoleFacts | None, inspection: Inspection
) -> Iterator[Finding]:
    """Find rights that are missing or that nobody needs."""
    if facts.rights is None or role is None or role.superuser:
        return
    mends = inspection.mends
    reads = [*rule.mapped_columns, *_companion_columns(rule, facts, inspection)]
    missing = list(_missing(rule, reads, facts, facts.rights))
    if missing:
        yield refuse(
            Code.RIGHT_MISSING,
            rule,
            str(rule.table),
            f"Role {role.name} lacks {', '.join(missing)} on table {rule.table}, which rule "
            f"{rule.name} needs: grant it.",
            mends.grants(rule),
        )
        return
    yield from _unneeded(rule, facts, facts.rights, role.name, mends)


def _companion_columns(rule: Rule, facts: TableFacts, inspection: Inspection) -> Iterator[str]:
    for companion in rule.companions:
        names = (*inspection.companion_parameters(companion), companion.lock_by)
        yield from (name for name in names if name is not None and name in facts.columns)


def _missing(rule: Rule, reads: list[str], facts: TableFacts, rights: TableRights) -> Iterator[str]:
    if not rights.use_schema:
        yield "USAGE of the schema"
    unread = [name for name in dict.fromkeys(reads) if not facts.columns[name].readable]
    if unread:
        yield f"SELECT ({', '.join(unread)})"
    if isinstance(rule.action, SetColumns):
        fixed = [n for n, _ in rule.action.assignments if not facts.columns[n].writable]
        if fixed:
            yield f"UPDATE ({', '.join(fixed)})"
        return
    if not rights.delete:
        yield "DELETE"
    if not any(column.writable for column in facts.columns.values()):
        yield f"UPDATE ({rule.key[0]}) (PostgreSQL asks for it to lock a row)"


def _unneeded(
    rule: Rule, facts: TableFacts, rights: TableRights, role: str, mends: Mends
) -> Iterator[Finding]:
    if rights.owner:
        yield warn(
            Code.RIGHT_UNNEEDED,
            rule,
            str(rule.table),
            f"Role {role} owns table {rule.table} and so may do anything to it, where rule "
            f"{rule.name} needs little: connect as a role of its own.",
        )
        return
    extra = list(_extra(rule, facts, rights))
    if extra:
        yield warn(
            Code.RIGHT_UNNEEDED,
            rule,
            str(rule.table),
            f"Role {role} holds {', '.join(extra)} on table {rule.table}, which rule {rule.name} "
            "does not need: take it away unless another rule or a companion does.",
            mends.only_needed(rule),
        )


def _extra(rule: Rule, facts: TableFacts, rights: TableRights) -> Iterator[str]:
    removes = isinstance(rule.action, DeleteRow)
    needed = {rule.key[0]} if removes else set(dict(_assignments(rule)))
    wide = [name for name, one in facts.columns.items() if one.writable and name not in needed]
    if wide:
        yield f"UPDATE ({', '.join(wide)})"
    if rights.delete and not removes:
        yield "DELETE"
    for held, name in ((rights.insert, "INSERT"), (rights.truncate, "TRUNCATE")):
        if held:
            yield name


def _assignments(rule: Rule) -> tuple[tuple[str, object], ...]:
    return rule.action.assignments if isinstance(rule.action, SetColumns) else ()


def row_security(rule: Rule, facts: TableFacts, inspection: Inspection) -> Iterator[Finding]:
    """Find a filter that hides every row, or say that there is one."""
    if not facts.row_security:
        return
    hidden = _hidden(rule, facts, inspection)
    if hidden is not None:
        yield refuse(Code.ROW_SECURITY, rule, str(rule.table), hidden)
        return
    yield warn(
        Code.ROW_SECURITY,
        rule,
        str(rule.table),
        f"Row-level security filters table {rule.table}, so that rule {rule.name} releases only "
        "what its policy shows: check that it shows every held row.",
    )


def _hidden(rule: Rule, facts: TableFacts, inspection: Inspection) -> str | None:
    """Say that nothing is shown, or that the policy itself fails."""
    try:
        if not facts.has_pages or inspection.sees_rows(rule):
            return None
    except RuleRefused as error:
        return (
            f"Row-level security of table {rule.table} fails for rule {rule.name}: {error}; give "
            "our role what its policy reads, such as a setting made with alter role."
        )
    return (
        f"Row-level security shows rule {rule.name} no row of table {rule.table}, which is not "
        "empty: give our role a policy that shows it the held rows."
    )
