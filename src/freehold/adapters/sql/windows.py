"""Windows in SQL; implements `ports.windows.Windows`."""

from __future__ import annotations

from datetime import datetime

from freehold.adapters.sql.operations import SqlOperations, remove_operations
from freehold.adapters.sql.session import Runner
from freehold.domain.errors import ChangeLost
from freehold.domain.names import NO_IDENTITY, digest, window_key
from freehold.ports.windows import Window


class SqlWindows:
    """Windows inside one transaction."""

    def __init__(self, runner: Runner, now: datetime, operations: SqlOperations) -> None:
        self._sql = runner
        self._now = now
        self._operations = operations

    def is_open(self, rule: str) -> bool:
        """Tell whether a window of the rule waits, or is worked on."""
        return bool(self._sql.rows("has_window", rule=rule)[0][0])

    def open(self, rule: str, begins_at: datetime, until: datetime, tick_id: int | None) -> bool:
        """Write a window."""
        key = window_key(begins_at, until)
        count = self._sql.count(
            "open_window",
            rule=rule,
            hold_key=key,
            digest=digest(rule, key, NO_IDENTITY),
            identity=NO_IDENTITY,
            begins_at=begins_at,
            until=until,
            tick_id=tick_id,
            now=self._now,
        )
        return count == 1

    def lease(self, rule: str, until: datetime) -> Window | None:
        """Take the rule's oldest claimable window."""
        rows = self._sql.rows("claim_window", rule=rule, now=self._now)
        leased = self._operations.lease_these([row[0] for row in rows], until) if rows else []
        if not leased:
            return None
        instant = self._sql.session.sure_instant
        return Window(leased[0], instant(rows[0][1]), instant(rows[0][2]), rows[0][3])

    def close(self, window: Window, reason: str) -> None:
        """Move the window to `record` with outcome closed."""
        claim = window.claim
        count = self._sql.count(
            "close_window", id=claim.id, lease_token=claim.lease_token, reason=reason, now=self._now
        )
        if count != 1:
            raise ChangeLost(f"the lease of window {claim.hold_key} was lost", "FREEHOLD")
        remove_operations(self._sql, [claim.id])
