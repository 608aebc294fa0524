"""Doctor: everything that is wrong with a rule's mapping before it runs, in one sentence each.

*Invariants*: nothing is written, and every read is bounded; a check whose ground was refused (a
missing table, a missing right) is left out rather than reported as trouble of its own.
*Not here*: the facts (`ports.inspection`), how findings are shown (`entrypoints.cli.doctor`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from freehold.application.doctor import columns, dues, rights, work
from freehold.application.doctor.findings import Code, Finding, Severity, fine, refuse, warn
from freehold.application.doctor.predicates import action_ends_hold
from freehold.application.doctor.server import server_findings
from freehold.application.doctor.tenants import tenants_findings
from freehold.domain.errors import DatabaseAway, DatabaseError
from freehold.domain.rules import DeleteRow, Rule
from freehold.domain.tenant_mapping import TenantMapping
from freehold.ports.inspection import Inspection, ServerFacts, TableFacts, TableKind
from freehold.ports.system import HostClock

__all__ = ["Code", "Finding", "Severity", "examine", "is_refused"]

_USABLE = (TableKind.TABLE, TableKind.PARTITIONED, TableKind.WITHOUT_ROWID)


def examine(
    inspection: Inspection,
    rules: Sequence[Rule],
    clock: HostClock,
    *,
    strict: bool = False,
    unusable: Mapping[str, str] = {},
    stopped: Mapping[str, str] = {},
    tenants: TenantMapping | None = None,
) -> list[Finding]:
    """Examine a database and the rules on it.

    Args:
        strict: refuse a superuser, and a role that bypasses row-level security.
        unusable: by rule, what is wrong with its handler, in a sentence.
        stopped: by rule, the guard or the pause that keeps it from releasing anything.
        tenants: the mapping of the customer's table of tenants.

    Raises:
        DatabaseAway: the database cannot be reached.
    """
    server = inspection.server()
    host_now = clock.wall()
    found = list(server_findings(server, host_now, inspection.mends, strict=strict))
    for rule in rules:
        found += Examination(inspection, server, rule).run()
        found += work.handler_findings(rule, unusable.get(rule.name), server)
        found += work.stop_findings(rule, stopped.get(rule.name))
    if tenants is not None:
        found += tenants_findings(tenants, inspection, server)
    return [*found, *work.overlap_findings(rules)]


def is_refused(findings: Sequence[Finding]) -> bool:
    """Tell whether something forbids to run."""
    return any(one.severity is Severity.REFUSE for one in findings)


class Examination:
    """One rule's checks, in stages: each stage stands on what the ones before have found sound."""

    def __init__(self, inspection: Inspection, server: ServerFacts, rule: Rule) -> None:
        self._inspection = inspection
        self._server = server
        self._rule = rule

    def run(self) -> list[Finding]:
        """Run the stages until one refuses."""
        facts = self._inspection.table(self._rule.table)
        found = list(self._named(facts))
        if facts is None or is_refused(found):
            return found
        for stage in (self._fitting, self._planned, self._read):
            found += stage(facts)
            if is_refused(found):
                return found
        return [*found, *self._sound(facts)]

    def _named(self, facts: TableFacts | None) -> Iterator[Finding]:
        """Check that table and columns are there."""
        rule = self._rule
        if facts is None:
            yield refuse(
                Code.TABLE_MISSING,
                rule,
                str(rule.table),
                f"There is no table {rule.table}, which rule {rule.name} names"
                f"{self._other_table() or ': mend the name or the database URL.'}",
            )
            return
        if facts.kind not in _USABLE or _needs_rowid(rule, facts):
            yield refuse(
                Code.NOT_A_TABLE,
                rule,
                str(rule.table),
                f"{rule.table} of rule {rule.name} is a {facts.kind}, whose rows cannot be locked "
                "and changed as a release must: name the table behind it.",
            )
        yield from columns.missing_columns(rule, facts)

    def _other_table(self) -> str:
        return columns.guess(str(self._rule.table), list(self._inspection.table_names()))

    def _fitting(self, facts: TableFacts) -> Iterator[Finding]:
        """Check the rule against types and rights."""
        rule, mends = self._rule, self._inspection.mends
        yield from columns.zone_findings(rule)
        yield from columns.due_type(rule, facts, self._server.engine)
        yield from columns.key_findings(rule, facts, mends)
        yield from columns.literal_findings(rule, facts, self._inspection)
        yield from work.parameter_findings(rule, facts, self._inspection)
        if not action_ends_hold(rule):
            yield refuse(
                Code.ACTION_KEEPS_HELD,
                rule,
                "expire",
                f"What rule {rule.name} sets leaves its held condition true, so that the hold "
                "would come due again and again: set a column of the held condition to another "
                "value.",
            )
        yield from rights.right_findings(rule, facts, self._server.role, self._inspection)

    def _planned(self, facts: TableFacts) -> Iterator[Finding]:
        """Have the database plan the companions and, if they are sound, the release."""
        rule = self._rule
        companions = list(work.companion_findings(rule, self._inspection))
        yield from companions
        problem = None if is_refused(companions) else self._inspection.change_problem(rule)
        if problem is not None:
            yield refuse(
                Code.CHANGE,
                rule,
                "expire",
                f"The database would refuse the release of rule {rule.name}: {problem}; mend what "
                "the rule sets or compares.",
            )
        yield from rights.row_security(rule, facts, self._inspection)

    def _read(self, facts: TableFacts) -> Iterator[Finding]:
        """Look at plans and values."""
        rule = self._rule
        yield from work.fence_findings(rule)
        yield from self._tried(lambda: work.index_findings(rule, facts, self._inspection))
        yield from self._tried(lambda: dues.due_values(rule, self._server, self._inspection))

    def _tried(self, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
        """Turn a refused or slow read into a finding of its own."""
        try:
            return list(check())
        except DatabaseAway:
            raise
        except DatabaseError as error:
            rule = self._rule
            sentence = (
                f"Some checks of rule {rule.name} could not read table {rule.table}: {error}; "
                "run doctor again when that is mended."
            )
            return [warn(Code.UNREAD, rule, str(rule.table), sentence)]

    def _sound(self, facts: TableFacts) -> Iterator[Finding]:
        rule = self._rule
        size = "" if facts.row_estimate is None else f" of about {facts.row_estimate:,} rows"
        if facts.triggers:
            yield fine(
                Code.TRIGGERS,
                rule,
                str(rule.table),
                f"Table {rule.table} has triggers ({', '.join(facts.triggers)}), which run with "
                f"each release of rule {rule.name}.",
            )
        sentence = f"Rule {rule.name} fits {facts.kind} {rule.table}{size}."
        yield fine(Code.FITS, rule, str(rule.table), sentence)


def _needs_rowid(rule: Rule, facts: TableFacts) -> bool:
    return facts.kind is TableKind.WITHOUT_ROWID and isinstance(rule.action, DeleteRow)
