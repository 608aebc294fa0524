"""What is wrong with reports, one plain sentence each, over the figures of `status`.

*Not here*: what is wrong with rules (`findings`), what a single report went through
(`report_insight`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from shlex import quote

from freehold.domain.days import due_at
from freehold.domain.pauses import Role
from freehold.domain.reports import ReportPolicy
from freehold.ports.insight import Heartbeat
from freehold.ports.report_insight import OpenDay, ReportFigures

START = "start `freehold run`, or put `freehold report run` into a crontab"
OWED_AFTER = timedelta(hours=1)  # a report that is due and has no end by then


def report_findings(
    figures: ReportFigures, policy: ReportPolicy, now: datetime, alive: Sequence[Heartbeat]
) -> Iterator[str]:
    """Yield what should not be so."""
    working = any(Role.REPORT in beat.roles.split(",") for beat in alive)
    if figures.never_began and not working:
        yield f"Reports are on, and nothing ever closed a day: {START}."
    yield from _owed(figures, policy, now, working=working)
    if figures.review_count:
        yield _review(figures)


def owed_since(figures: ReportFigures, policy: ReportPolicy) -> datetime | None:
    """Return since when the oldest report is owed, be its day closed or not."""
    dues = [figures.oldest_owed_at, _due_of(figures.next_day, policy)]
    return min((at for at in dues if at is not None), default=None)


def _due_of(day: OpenDay | None, policy: ReportPolicy) -> datetime | None:
    if day is None:
        return None
    return due_at(day.window, policy.hour if day.hour is None else day.hour)


def _owed(
    figures: ReportFigures, policy: ReportPolicy, now: datetime, *, working: bool
) -> Iterator[str]:
    since = owed_since(figures, policy)
    if since is None or now - since <= OWED_AFTER:
        return
    few = figures.owed_count <= 1
    what = "A report is" if few else f"{figures.owed_count:,} reports are"
    look = "`freehold report list` says how far they are"
    mend = look if working else f"{look}; if nothing reports, {START}"
    yield f"{what} owed{'' if few else ', the oldest'} since {since:%Y-%m-%d %H:%M} UTC; {mend}."


def _review(figures: ReportFigures) -> str:
    assert figures.oldest_review is not None
    day, tenant = figures.oldest_review
    count = figures.review_count
    some = "A report waits" if count == 1 else f"{count:,} reports wait"
    return (
        f"{some} for a person: how a mail ended is not known, or its attempts are used up; look at "
        f"`freehold report show {quote(tenant)} {day}`, then `freehold report resolve`."
    )
