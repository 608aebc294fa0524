"""How fast a rule may take up what was overdue when it was attached."""

from __future__ import annotations

from datetime import datetime

from freehold.adapters.sql.session import Runner
from freehold.ports.rates import AttachRate


class SqlAttachRates:
    """Implements `ports.rates.AttachRates`."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now

    def write(self, rule: str, per_second: float) -> None:
        """Let a rule that is attached now take up so many a second."""
        self._sql.count("write_rate", rule=rule, per_second=per_second, now=self._now)

    def lock(self, rule: str) -> AttachRate | None:
        """Read a rule's rate and keep others from spending of it."""
        rows = self._sql.rows("lock_rate", rule=rule)
        if not rows:
            return None
        per_second, attached_at, credited_at = rows[0]
        instant = self._sql.session.sure_instant
        return AttachRate(per_second, instant(attached_at), instant(credited_at))

    def spend(self, rule: str, credited_at: datetime) -> None:
        """Note up to when the rate is used up."""
        self._sql.count("spend_rate", rule=rule, credited_at=credited_at)

    def end(self, rule: str) -> None:
        """Let the rule go at full speed."""
        self._sql.count("end_rate", rule=rule)
