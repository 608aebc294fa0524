"""Strays and counts of deliveries in SQL; implements `ports.strays.Strays`.

*Invariants*: rows are written in the order of their digests, so that two processes which met the
same payloads wait for each other and do not deadlock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple
from datetime import datetime

from freehold.adapters.sql.session import Row, Runner
from freehold.domain.messages import Unreadable
from freehold.ports.strays import STRAYS_MOST, DeliveryCounts, Stray


class SqlStrays:
    """Strays and counts inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def record(self, queue: str, payloads: Sequence[Unreadable]) -> int:
        """Write down payloads; return how many are new."""
        seen = Counter(one.digest for one in payloads)
        first = {one.digest: one for one in reversed(payloads)}
        known = self._known(queue, list(seen))
        new = [digest for digest in seen if digest not in known]
        new = new[: max(0, STRAYS_MOST - self.count_open(STRAYS_MOST))] if new else []
        chosen = sorted([*known, *new])
        rows = [_row(queue, first[digest], seen[digest]) for digest in chosen]
        self._sql.many("add_strays", rows, now=self._now)
        return len(new)

    def _known(self, queue: str, digests: Sequence[str]) -> set[str]:
        if not digests:
            return set()
        rows = self._sql.rows("known_strays", queue=queue, digests=list(digests))
        return {row[0] for row in rows}

    def open(self, after_id: int, limit: int) -> Sequence[Stray]:
        """Read strays in review by id."""
        rows = self._sql.rows("open_strays", after_id=after_id, limit=limit)
        return [self._stray(row) for row in rows]

    def count_open(self, at_most: int) -> int:
        """Count strays in review up to a limit."""
        return int(self._sql.rows("count_open_strays", limit=at_most)[0][0])

    def find(self, stray_id: int) -> Stray | None:
        """Read one stray in review."""
        rows = self._sql.rows("find_stray", id=stray_id)
        return self._stray(rows[0]) if rows else None

    def _stray(self, row: Row) -> Stray:
        return Stray(
            id=row[0],
            queue=row[1],
            digest=row[2],
            raw=bytes(row[3]),
            byte_count=row[4],
            reason=row[5],
            seen_count=row[6],
            first_seen_at=self._sql.session.sure_instant(row[7]),
            last_seen_at=self._sql.session.sure_instant(row[8]),
        )

    def discard(self, stray_ids: Sequence[int]) -> int:
        """Take strays out of review."""
        return self._sql.count("discard_strays", ids=list(stray_ids)) if stray_ids else 0

    def count(self, process: str, counts: DeliveryCounts) -> None:
        """Add to this minute's counts of a process."""
        row = (self._now.replace(second=0, microsecond=0), process, *astuple(counts))
        self._sql.many("add_delivery_counts", [row])

    def counts_since(self, since: datetime) -> DeliveryCounts:
        """Add up all processes' counts."""
        return DeliveryCounts(*map(int, self._sql.rows("delivery_counts", since=since)[0]))


def _row(queue: str, payload: Unreadable, seen_count: int) -> Row:
    kept = (payload.raw.hex(), payload.length_bytes, payload.reason)
    return (queue, payload.digest, *kept, seen_count)
