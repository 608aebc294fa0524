"""The account of asking a language model, in SQL; implements `ports.summary.Summaries`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from freehold.adapters.sql.session import Row, Runner
from freehold.domain.facts_text import read_facts
from freehold.ports.summary import Place, SummaryAttempt, SummaryWanted, Told, WantedPage

_BEHIND = 2**63 - 1  # no report's id is greater
ABANDONED = "nobody noted an answer"


class SqlSummaries:
    """Attempts and texts inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def wanted(
        self, until: datetime, after: Place | None, limit: int, attempts_max: int
    ) -> WantedPage:
        """Look through one page of frozen reports."""
        start = max(after or (until, _BEHIND), (until, _BEHIND))
        bounds = {"after_at": start[0], "after": start[1], "limit": limit}
        rows = self._sql.rows("summaries_wanted", **bounds, attempts_max=attempts_max)
        instant = self._sql.session.sure_instant
        place = (instant(rows[-1][1]), rows[-1][0]) if len(rows) == limit else None
        return WantedPage([self._wanted(row) for row in rows if row[2]], place)

    def _wanted(self, row: Row) -> SummaryWanted:
        return SummaryWanted(
            report_id=row[0],
            tenant=row[3],
            facts=read_facts(row[4]),
            facts_digest=row[5],
            locale=row[6],
            due_at=self._sql.session.sure_instant(row[1]),
            attempt_count=row[7],
        )

    def spent(self, tenant: str, since: datetime) -> int:
        """Return the tokens used since."""
        return int(self._sql.rows("summary_tokens_spent", tenant=tenant, since=since)[0][0])

    def begin(
        self, wanted: SummaryWanted, prompt_version: str, host: str, model: str, tokens_max: int
    ) -> SummaryAttempt | None:
        """Open the next attempt."""
        attempt = wanted.attempt_count + 1
        said = {"prompt_version": prompt_version, "host": host, "model": model}
        rows = self._sql.rows(
            "begin_summary_attempt",
            **said,
            now=self._now,
            report_id=wanted.report_id,
            attempt=attempt,
            facts_digest=wanted.facts_digest,
            tokens_max=tokens_max,
        )
        if not rows:
            return None
        return SummaryAttempt(rows[0][0], wanted.report_id, attempt, wanted.facts_digest)

    def end(
        self,
        attempt: SummaryAttempt,
        told: Told,
        rejected: str | None,
        cost_micros: int | None,
        currency: str | None,
    ) -> bool:
        """Close an attempt."""
        outcome = _outcome(told, rejected)
        changed_count = self._sql.count(
            "end_summary_attempt",
            **_used(told),
            id=attempt.id,
            now=self._now,
            outcome=outcome,
            reason=told.trouble if told.text is None else rejected,
            model=told.model,
            cost_micros=cost_micros,
            currency=currency if cost_micros is not None else None,
            summary=told.text if outcome == "accepted" else None,
        )
        return changed_count == 1

    def abandon(self, older_than: datetime) -> int:
        """Close attempts that were left open."""
        bounds = {"older_than": older_than, "now": self._now, "reason": ABANDONED}
        return self._sql.count("abandon_summary_attempts", **bounds)

    def accepted(self, report_ids: Sequence[int]) -> Mapping[int, tuple[int, str]]:
        """Return the first accepted text of each report."""
        rows = self._sql.rows("accepted_summaries", ids=list(report_ids))
        return {row[0]: (row[1], row[2]) for row in rows}


def _outcome(told: Told, rejected: str | None) -> str:
    if told.text is None:
        return "failed"
    return "accepted" if rejected is None else "rejected"


def _used(told: Told) -> dict[str, Any]:
    usage = told.usage
    return {
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "raw_usage": None if usage.raw is None else json.dumps(dict(usage.raw), allow_nan=False),
    }
