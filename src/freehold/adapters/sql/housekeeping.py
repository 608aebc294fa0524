"""What the ledger's own tables need from time to time: monthly partitions made ahead."""

from __future__ import annotations

from datetime import UTC, datetime

from freehold.adapters.sql.session import Session
from freehold.adapters.sql.statements import fill, load
from freehold.domain.errors import DatabaseError

MONTHS_AHEAD = 2


def keep_house(session: Session) -> None:
    """Make the partitions of this month and the next ones.

    Again: makes only what is missing.
    """
    if session.dialect != "postgres":
        return
    now = session.begin()
    try:
        for month in months_from(now, MONTHS_AHEAD + 1):
            _make_partition(session, month)
        session.commit()
    except DatabaseError:
        session.rollback()
        raise


def months_from(now: datetime, count: int) -> list[datetime]:
    """Return the first instants, UTC, of this month and the following ones."""
    first = datetime(now.year, now.month, 1, tzinfo=UTC)
    months = [first]
    while len(months) < count:
        last = months[-1]
        months.append(datetime(last.year + last.month // 12, last.month % 12 + 1, 1, tzinfo=UTC))
    return months


def _make_partition(session: Session, month: datetime) -> None:
    following = months_from(month, 2)[1]
    slots = {
        "s": session.prefix,
        "partition": f"record_{month:%Y_%m}",
        "start": month.isoformat(),
        "end": following.isoformat(),
    }
    session.run(fill(load("postgres")["make_partition"], slots), {})
