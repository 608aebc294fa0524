"""The customer's rows for looking only; implements `ports.insight.HoldsInSight`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from freehold.adapters.sql.holds import SqlHolds, rule_slots
from freehold.adapters.sql.mapping import RuleSql
from freehold.adapters.sql.session import Runner, Session
from freehold.domain.due import due_bound
from freehold.domain.expiry import HoldRow
from freehold.domain.names import key_values, unpack
from freehold.ports.holds import FoundHold, ScanCursor
from freehold.ports.insight import SeenHold


class SqlHoldsInSight:
    """One rule's rows inside one reading."""

    def __init__(self, session: Session, rule_sql: RuleSql, now: datetime) -> None:
        self._rule = rule_sql.rule
        self._holds = SqlHolds(session, rule_sql, now)
        slots = rule_slots(session, rule_sql)
        first = slots["due"] if self._rule.due.comparable_bare else slots["key_order"]
        self._sql = Runner(session, {**slots, "first_order": first})
        self._fixed = {
            **rule_sql.parameters,
            **rule_sql.bounds(now),
            "now": now,
            "rule": self._rule.name,
        }

    def look(self, hold_key: str) -> SeenHold | None:
        """Read one row."""
        key_values(hold_key, len(self._rule.key))
        rows = self._sql.rows("look_at_hold", **self._fixed, hold_key=hold_key)
        if not rows:
            return None
        key, due, identity, guard, tenant, held, confirmed, cancelled, expired, image = rows[0]
        row = HoldRow(
            unpack(identity),
            unpack(guard),
            bool(held),
            bool(confirmed),
            bool(cancelled),
            bool(expired),
        )
        read = json.loads(image) if isinstance(image, str) else dict(image)
        return SeenHold(key, due, identity, guard, tenant, row, read)

    def find_due(
        self, after: ScanCursor | None, limit: int, since: datetime | None = None
    ) -> Sequence[FoundHold]:
        """Read due rows behind the cursor, open ones marked."""
        return self._holds.find_due(after, limit, since)

    def first_due(self, limit: int, since: datetime | None = None) -> Sequence[FoundHold]:
        """Read the first due rows."""
        floor = {}
        if since is not None and self._rule.due.comparable_bare:
            floor = {"due_after": due_bound(self._rule.due, since).gap_from}
        rows = self._sql.rows("oldest_due_rows", **{**self._fixed, **floor, "limit": limit})
        return [FoundHold(*row) for row in rows]

    def count_empty_due(self, at_most: int) -> int:
        """Count held rows without a usable due."""
        zero = {}
        if self._rule.due.comparable_bare:
            zero = {"due_upto": self._fixed["due_after"]}
        rows = self._sql.rows("count_empty_due", **{**self._fixed, **zero, "limit": at_most})
        return int(rows[0][0])
