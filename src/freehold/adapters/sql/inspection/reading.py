"""What both dialects read alike: counts, samples and plans of one rule.

*Invariants*: every method reads in a transaction of its own and rolls it back, also when a
statement was refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from freehold.adapters.sql.due_by_tenant import SqlDueByTenant
from freehold.adapters.sql.ledger import SqlLedger
from freehold.adapters.sql.session import Row, Runner
from freehold.adapters.sql.statements import is_several, parameters
from freehold.domain.due import is_due, read_due
from freehold.domain.errors import DatabaseAway, DatabaseBusy, DatabaseError
from freehold.domain.rules import Companion, Rule
from freehold.ports.inspection import DueNow, TenantDue

PAGE_ROWS = 10_000
NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class Reader:
    """A rule's statements inside one reading transaction."""

    runner: Runner
    fixed: Mapping[str, Any]
    now: datetime

    def rows(self, name: str, /, **given: Any) -> list[Row]:
        """Execute a statement with the rule's own parameters beside the given ones."""
        return self.runner.rows(name, **self.fixed, **given)


class SqlInspection:
    """The part of an inspection that is one text for both dialects."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger
        self._session = ledger.session
        self._sql = Runner(ledger.session)

    @contextmanager
    def _reading(self) -> Iterator[datetime]:
        """Open a transaction that only reads, and roll it back."""
        try:
            yield self._session.begin(read_only=True)
        finally:
            self._session.rollback()

    @contextmanager
    def _rule(self, rule: Rule, **slots: str) -> Iterator[Reader]:
        with self._reading() as now:
            compiled = self._ledger.compiled(rule)
            runner = Runner(self._session, {**compiled.slots, **slots})
            yield Reader(runner, {**compiled.parameters, **compiled.bounds(now), "now": now}, now)

    def sees_rows(self, rule: Rule) -> bool:
        """Tell whether this role sees any row."""
        with self._rule(rule) as reader:
            return bool(reader.rows("sees_rows")[0][0])

    def serves_tenants(self, rule: Rule) -> bool:
        """Tell whether an index led by tenant and due serves a scan by turns."""
        with self._reading() as now:
            compiled = self._ledger.compiled(rule)
            return SqlDueByTenant(self._session, compiled, now, {}).is_served()

    def count_due(self, rule: Rule, at_most: int) -> int:
        """Count due holds up to a limit."""
        with self._rule(rule) as reader:
            return int(reader.rows("count_overdue", limit=at_most)[0][0])

    def count_empty(self, rule: Rule, at_most: int) -> int:
        """Count held rows whose due is NULL or zero, up to a limit."""
        with self._rule(rule) as reader:
            return int(reader.rows("count_empty", limit=at_most)[0][0])

    def sample_due(self, rule: Rule, at_most: int) -> Sequence[str]:
        """Return due values of held rows as text."""
        with self._rule(rule) as reader:
            return [str(row[0]) for row in reader.rows("sample_dues", limit=at_most)]

    def change_problem(self, rule: Rule) -> str | None:
        """Return why the release could not be planned."""
        with self._refusal() as problem, self._rule(rule) as reader:
            if self._ledger.compiled(rule).removes:
                reader.rows("plan_delete")
            else:
                reader.rows("plan_update")
        return problem.text

    def companion_parameters(self, companion: Companion) -> Sequence[str]:
        """Return the parameters that a companion names."""
        return parameters(companion.sql)

    def companion_problem(self, companion: Companion) -> str | None:
        """Return why a companion could not be planned."""
        if is_several(companion.sql):
            return "it holds more than one statement"
        given = dict.fromkeys(parameters(companion.sql))
        with self._refusal() as problem, self._reading():
            Runner(self._session, {"companion": companion.sql}).rows("plan_companion", **given)
        return problem.text

    @contextmanager
    def _refusal(self) -> Iterator[_Problem]:
        """Turn what the database refuses into its words; trouble of the connection goes on."""
        problem = _Problem()
        try:
            yield problem
        except (DatabaseAway, DatabaseBusy):
            raise
        except DatabaseError as error:
            problem.text = str(error)

    def due_now(
        self, rule: Rule, at_most: int | None, top: int, only_tenant: str | None = None
    ) -> DueNow:
        """Count due holds by tenant."""
        limit = NO_LIMIT if at_most is None else at_most
        slots = self._ledger_slots(rule)
        is_asked = slots["true"]
        if only_tenant is not None:
            is_asked = f"{slots['tenant']} = :only_tenant"
        with self._rule(rule, is_asked=is_asked) as reader:
            if at_most is None:
                reader.rows("no_time_limit")
            if rule.due.comparable_bare:
                return self._due_by_index(rule, reader, (limit, top), only_tenant)
        return self._due_by_reading(rule, limit, top, only_tenant)

    def _ledger_slots(self, rule: Rule) -> Mapping[str, str]:
        with self._reading():
            return self._ledger.compiled(rule).slots

    def _due_by_index(
        self, rule: Rule, reader: Reader, limits: tuple[int, int], only_tenant: str | None
    ) -> DueNow:
        limit, top = limits
        rows = reader.rows("due_by_tenant", limit=limit, top=top, only_tenant=only_tenant)
        first = reader.rows("first_due", only_tenant=only_tenant)
        oldest = read_due(rule.due, first[0][0]) if first else None
        total = int(rows[0][3]) if rows else 0
        return DueNow(
            due_count=total,
            capped=total >= limit,
            tenant_count=int(rows[0][2]) if rows else 0,
            tenants=tuple(TenantDue(row[0], int(row[1])) for row in rows),
            oldest_due=oldest if isinstance(oldest, datetime) else None,
        )

    def _due_by_reading(self, rule: Rule, limit: int, top: int, only_tenant: str | None) -> DueNow:
        """Read every held row, a page a transaction: text cannot be compared in the database."""
        counts: Counter[str | None] = Counter()
        oldest: datetime | None = None
        for tenant, due_at in self._due_rows(rule):
            if only_tenant not in (None, tenant):
                continue
            counts[tenant] += 1
            oldest = due_at if oldest is None else min(oldest, due_at)
            if counts.total() >= limit:
                break
        return DueNow(
            due_count=counts.total(),
            capped=counts.total() >= limit,
            tenant_count=len(counts),
            tenants=tuple(TenantDue(tenant, n) for tenant, n in counts.most_common(top)),
            oldest_due=oldest,
        )

    def _due_rows(self, rule: Rule) -> Iterator[tuple[str | None, datetime]]:
        for now, rows in self._pages(rule):
            for _, tenant, text in rows:
                due_at = read_due(rule.due, text)
                if isinstance(due_at, datetime) and is_due(rule.due, due_at, now):
                    yield tenant, due_at

    def _pages(self, rule: Rule) -> Iterator[tuple[datetime, list[Row]]]:
        compiled = self._ledger.compiled
        after: str | None = None
        while True:
            with self._reading():
                slots = compiled(rule).slots
            page = slots["true"] if after is None else slots["after_key"]
            with self._rule(rule, after_page=page) as reader:
                rows = reader.rows("page_of_dues", cursor_key=after, limit=PAGE_ROWS)
            yield reader.now, rows
            if len(rows) < PAGE_ROWS:
                return
            after = rows[-1][0]

    def close(self) -> None:
        """Give the connection back."""
        self._ledger.close()


@dataclass(slots=True)
class _Problem:
    """What the database said, if it refused."""

    text: str | None = None
