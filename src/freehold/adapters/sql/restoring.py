"""Doubts about the sends of a restored database; implements `ports.restoring`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from freehold.adapters.sql.session import Runner

CODE = "restored"
WHY = "the database was put back to an older state; it may have been sent since"


class SqlRestoring:
    """Doubts inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def living(self, since: datetime) -> Sequence[str]:
        """Name the processes that said since an instant that they live."""
        rows = self._sql.rows("beating_workers", alive_after=since)
        return [f"{host} (pid {pid})" for _, host, pid in rows]

    def leased_count(self) -> int:
        """Count the sends in somebody's hands."""
        return int(self._sql.rows("count_leased_sends")[0][0])

    def doubt(self, since: datetime, transport: str, limit: int) -> int:
        """Make sends that wait unknown."""
        ids = [row[0] for row in self._sql.rows("doubtful_sends", limit=limit)]
        if ids:
            known = {"ids": ids, "since": since, "now": self._now, "transport": transport}
            self._sql.count("note_doubts", **known, code=CODE, answer=WHY)
            self._sql.count("doubt_sends", **known, reason=WHY)
        return len(ids)
