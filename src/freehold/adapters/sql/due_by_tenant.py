"""Due rows tenant by tenant, along an index (tenant, due); implements `ports.due_by_tenant`.

*Invariants*: no statement runs here that the planner did not promise to serve by such an index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from freehold.adapters.sql.catalogue import quote, quoted
from freehold.adapters.sql.mapping import RuleSql
from freehold.adapters.sql.session import Row, Runner, Session
from freehold.domain.due import due_bound
from freehold.domain.errors import RuleRefused
from freehold.ports.due_by_tenant import TenantKey, TenantPlace, TenantsFound
from freehold.ports.holds import FoundHold, ScanCursor

LOOKS_MOST = 1_000  # tenants stepped over by one statement; 10 ms when measured
WHOLE_ORDER = "keep_whole_order"
ASK_AGAIN = timedelta(minutes=1)
_SCANNED = re.compile(r"^(?:SCAN|SEARCH) h\b(?:.*?\bINDEX (\S+))?")


@dataclass(frozen=True, slots=True)
class _Index:
    """The index that serves.

    Attributes:
        walked: what the steps along it are narrowed to: a partial index must be proven to serve,
            of a whole one no step may read past rows that are no longer held.
        order: the statement that keeps the planner to it.
        named: what keeps a planner to it that has no such statement.
    """

    walked: str
    order: str
    named: str = ""


# By rule: when the catalogue was asked, and which index serves.
Served = MutableMapping[str, tuple[datetime, _Index | None]]


class SqlDueByTenant:
    """One rule's due rows by tenant, inside one transaction."""

    def __init__(self, session: Session, rule_sql: RuleSql, now: datetime, served: Served) -> None:
        """Read in this transaction.

        Args:
            served: what other transactions of this connection found out.
        """
        self._rule = rule_sql.rule
        self._session = session
        self._now = now
        self._served = served
        self._asked = False
        self._slots = {**rule_sql.slots, "s": session.prefix}
        self._fixed = {
            **rule_sql.parameters,
            **rule_sql.bounds(now),
            "now": now,
            "rule": rule_sql.rule.name,
        }

    def is_served(self) -> bool:
        """Tell whether an index that begins (tenant, due) serves."""
        return self._index() is not None

    def _index(self) -> _Index | None:
        """Return the index; SQLite, where it is named, is asked in every transaction."""
        asked_at, index = self._served.get(self._rule.name, (None, None))
        known = asked_at is not None and asked_at <= self._now < asked_at + ASK_AGAIN
        if not known or not (self._is_postgres or self._asked):
            found = list(self._candidates()) if "tenant_column" in self._slots else []
            whole = [one for one in found if one.order == WHOLE_ORDER]
            index = next(iter([*whole, *found]), None)
            self._served[self._rule.name] = (self._now, index)
            self._asked = True
        return index

    def _keep_order(self) -> None:
        index = self._index()
        Runner(self._session).rows("keep_order" if index is None else index.order)

    def _candidates(self) -> Iterator[_Index]:
        rows = Runner(self._session).rows(
            "tenant_indexes",
            quoted=quoted(self._rule.table),
            table_name=self._rule.table.name,
            tenant_name=self._rule.tenant.column,
            due_name=self._rule.due.column,
        )
        for name, partial, names, parts in rows:
            walked = self._slots["held"] if partial else self._slots["true"]
            columns = names if self._is_postgres else json.loads(names)
            whole = tuple(columns[2 : 2 + len(self._rule.key)]) == self._rule.key
            named = "" if self._is_postgres else f"indexed by {quote(name)}"
            index = _Index(walked, WHOLE_ORDER if whole else "keep_order", named)
            own = {name, *parts} if self._is_postgres else {name}
            with suppress(RuleRefused):  # SQLite's word for an index that cannot serve
                if self._scanned_by(index) <= own:
                    yield index

    def _scanned_by(self, index: _Index) -> set[str | None]:
        """Return the indexes by which the planner would read the customer's table."""
        explain = "explain (format json)" if self._is_postgres else "explain query plan"
        runner = self._from(None, None, index)
        runner.rows("keep_order")
        given = {**self._fixed, "looks": LOOKS_MOST, "limit": 1}
        rows, _ = self._session.run(f"{explain} {runner.text('find_tenants')}", given)
        return set(_indexes(rows[0][0]) if self._is_postgres else _lite_indexes(rows))

    @property
    def _is_postgres(self) -> bool:
        return self._session.dialect == "postgres"

    def _from(
        self, after: TenantKey | None, behind: ScanCursor | None, index: _Index | None
    ) -> Runner:
        true = self._slots["true"]
        walked, named = (index.walked, index.named) if index else (true, "")
        changed = {"walked": walked, "indexed": named}
        if after is None or after.value is None:
            changed["after_tenant"] = f"{self._slots['tenant_column']} is not null"
        if behind is None:
            changed["behind"] = true
        return Runner(self._session, {**self._slots, **changed})

    def find_tenants(
        self,
        after: TenantKey | None,
        limit: int,
        since: datetime | None = None,
        behind: ScanCursor | None = None,
    ) -> TenantsFound:
        """Find tenants with due rows, in the order of the index."""
        runner = self._from(after, behind, self._index())
        given = {**self._fixed, **self._floor(since), "looks": LOOKS_MOST}
        if after is not None and after.value is not None:
            given["after_tenant"] = after.value
        if behind is not None:
            given |= {"cursor_due": behind.due, "cursor_key": behind.hold_key}
        nobody = [TenantKey(None)] if after is None else []
        self._keep_order()
        rows = runner.rows("find_tenants", **given, limit=max(1, limit - len(nobody)))
        due = [*nobody, *(TenantKey(tenant) for tenant, is_due in rows if is_due)]
        end = rows[-1][0] if rows else None
        return TenantsFound(due, None if end is None else TenantKey(end))

    def _floor(self, since: datetime | None) -> Mapping[str, Any]:
        return {} if since is None else {"due_after": due_bound(self._rule.due, since).gap_from}

    def find_due(
        self, places: Sequence[TenantPlace], each: int, limit: int, since: datetime | None = None
    ) -> Sequence[Sequence[FoundHold]]:
        """Read due rows of these tenants, each behind its place."""
        given = {**self._fixed, **self._floor(since), "each": each}
        found: list[list[FoundHold]] = []
        self._keep_order()
        for (nobody, begins), alike in groupby(places, _kind):
            left = limit - sum(map(len, found))
            if left <= 0:
                break
            runner = self._reader(nobody=nobody, begins=begins)
            read = self._read_at_once if self._is_postgres else self._read_in_turn
            found += read(runner, list(alike), left, given)
        return found

    def _reader(self, *, nobody: bool, begins: bool) -> Runner:
        index = self._index()
        slots = {**self._slots, "indexed": index.named if index else ""}
        if nobody:
            slots |= {"of_tenant": slots["of_nobody"], "after_place": slots["after_of_nobody"]}
        if begins:
            slots["after_place"] = slots["true"]
        return Runner(self._session, slots)

    def _read_at_once(
        self, runner: Runner, places: list[TenantPlace], limit: int, given: Mapping[str, Any]
    ) -> list[list[FoundHold]]:
        rows = runner.rows(
            "find_due_of_tenants",
            **given,
            tenants=[one.tenant.value for one in places],
            dues=[one.after.due if one.after else None for one in places],
            keys=[one.after.hold_key if one.after else None for one in places],
            limit=limit,
        )
        reached = len(places) if len(rows) < limit else rows[-1][0]
        found: list[list[FoundHold]] = [[] for _ in range(reached)]
        for place, *row in rows:
            found[place - 1].append(FoundHold(*row))
        return found

    def _read_in_turn(
        self, runner: Runner, places: list[TenantPlace], limit: int, given: Mapping[str, Any]
    ) -> list[list[FoundHold]]:
        found: list[list[FoundHold]] = []
        for one in places:
            left = limit - sum(map(len, found))
            if left <= 0:
                break
            after = ScanCursor("", "") if one.after is None else one.after
            own = {
                "of_tenant": one.tenant.value,
                "cursor_due": after.due,
                "cursor_key": after.hold_key,
                "each": min(given["each"], left),
            }
            rows = runner.rows("find_due_of_tenants", **{**given, **own})
            found.append([FoundHold(*row) for row in rows])
        return found


def _kind(place: TenantPlace) -> tuple[bool, bool]:
    return place.tenant.value is None, place.after is None


def _indexes(node: Any) -> Iterator[str | None]:
    """Name the index of each scan in a PostgreSQL plan; None is a scan without one."""
    if isinstance(node, list):
        for one in node:
            yield from _indexes(one)
    elif isinstance(node, dict):
        if "Relation Name" in node:
            yield node.get("Index Name")
        for value in node.values():
            yield from _indexes(value)


def _lite_indexes(rows: Sequence[Row]) -> Iterator[str | None]:
    """Name the index of each scan of the customer's table in an SQLite plan."""
    for row in rows:
        match = _SCANNED.match(row[3])
        if match:
            yield match[1]
