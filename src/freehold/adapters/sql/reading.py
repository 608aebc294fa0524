"""One read-only snapshot for people; implements `ports.insight.Reading`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from freehold.adapters.sql.audit import SqlAudit
from freehold.adapters.sql.event_insight import SqlEventsInSight
from freehold.adapters.sql.insight import SqlFigures, SqlHistory
from freehold.adapters.sql.insight_holds import SqlHoldsInSight
from freehold.adapters.sql.mapping import RuleSql
from freehold.adapters.sql.report_insight import SqlReportsInSight
from freehold.adapters.sql.session import Runner, Session
from freehold.domain.rules import Rule


class SqlReading:
    """What one snapshot offers."""

    def __init__(
        self, session: Session, now: datetime, compiled: Callable[[Rule], RuleSql]
    ) -> None:
        self.now = now
        self._session = session
        self._compiled = compiled
        runner = Runner(session)
        self.figures = SqlFigures(runner, now)
        self.history = SqlHistory(runner, now)
        self.reports = SqlReportsInSight(runner, now)
        self.events = SqlEventsInSight(runner, now)
        self.audit = SqlAudit(session, now, compiled)

    def holds(self, rule: Rule) -> SqlHoldsInSight:
        """Return the customer's rows under a rule."""
        return SqlHoldsInSight(self._session, self._compiled(rule), self.now)


@contextmanager
def open_reading(
    session: Session, compiled: Callable[[Rule], RuleSql], *, whole_tables: bool
) -> Iterator[SqlReading]:
    """Open a snapshot, and let it go at the end of the block."""
    now = session.begin(read_only=True)
    try:
        if whole_tables:
            Runner(session).rows("read_whole_tables")
        yield SqlReading(session, now, compiled)
    finally:
        session.rollback()
