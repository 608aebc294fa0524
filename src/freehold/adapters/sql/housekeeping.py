"""What the ledger's own tables need from time to time: monthly partitions made ahead.

*Invariants*: a record without a partition of its own lands in the default one and is found there
all the same; rows that fell into it are moved when their month gets its partition.
"""

from __future__ import annotations

from datetime import UTC, datetime

from freehold.adapters.sql.session import Session
from freehold.adapters.sql.statements import fill, load
from freehold.domain.errors import DatabaseBusy, RuleRefused

MONTHS_AHEAD = 2
_STEPS = ("hold_records", "hold_default", "make_partition", "fill_partition", "attach_partition")


def keep_house(session: Session) -> None:
    """Make the partitions of this month and the next ones, as far as rights and locks allow.

    Again: makes only what is missing.
    Crash: a partition is made whole, with the rows that belong to it, or not at all.
    """
    if session.dialect != "postgres":
        return
    for month in _missing(session):
        try:
            _make_partition(session, month)
        except (RuleRefused, DatabaseBusy):
            # A role that may not create tables, or a busy table: the default partition serves.
            return


def _missing(session: Session) -> list[datetime]:
    now = session.begin()
    try:
        months = months_from(now, MONTHS_AHEAD + 1)
        rows, _ = session.run(
            load("postgres")["missing_partitions"],
            {"names": [f"{session.prefix}{partition_name(month)}" for month in months]},
        )
        places = {row[0] for row in rows}
        return [month for place, month in enumerate(months, start=1) if place in places]
    finally:
        session.rollback()


def months_from(now: datetime, count: int) -> list[datetime]:
    """Return the first instants, UTC, of this month and the following ones."""
    first = datetime(now.year, now.month, 1, tzinfo=UTC)
    months = [first]
    while len(months) < count:
        last = months[-1]
        months.append(datetime(last.year + last.month // 12, last.month % 12 + 1, 1, tzinfo=UTC))
    return months


def partition_name(month: datetime) -> str:
    """Return the name of a month's partition, without the schema."""
    return f"record_{month:%Y_%m}"


def _make_partition(session: Session, month: datetime) -> None:
    """Make a table, move what the default partition holds of that month, and attach it."""
    slots = {
        "s": session.prefix,
        "partition": partition_name(month),
        "start": month.isoformat(),
        "end": months_from(month, 2)[1].isoformat(),
    }
    texts = load("postgres")
    session.begin()
    try:
        session.run(fill(texts["lock_migrations"], slots), {})
        for name in _STEPS:
            session.run(fill(texts[name], slots), {})
        session.commit()
    except BaseException:
        session.rollback()
        raise
