"""Removing what is older than its age; implements `ports.retention.Retention`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from freehold.adapters.sql.housekeeping import months_from
from freehold.adapters.sql.session import Runner
from freehold.adapters.sql.statements import fill, load
from freehold.ports.retention import Place, Readings, Step, Subject

COUNT_EXACTLY = 10_000  # rows of a month that are counted; more are taken from the statistics
MONTH_PREFIX = "record_"
COUNTS = {
    Subject.RECORDS: "count_records",
    Subject.TALLIES: "count_tallies",
    Subject.ATTEMPTS: "count_attempts",
    Subject.EVENTS: "count_events",
    Subject.MAILS: "count_mails",
    Subject.TICKS: "count_ticks",
    Subject.GUARDS: "count_guards",
    Subject.PAUSES: "count_pauses",
    Subject.TARGET_PAUSES: "count_target_pauses",
    Subject.STRAYS: "count_strays",
    Subject.DELIVERY_COUNTS: "count_delivery_counts",
}
# The statement that finds a page's end, and the one that removes the page.
PAGES = {
    Subject.RECORDS: ("last_of_records", "prune_records"),
    Subject.TALLIES: ("last_of_tallies", "prune_tallies"),
    Subject.EVENTS: ("last_of_events", "prune_events"),
    Subject.TICKS: ("last_of_ticks", "prune_ticks"),
    Subject.GUARDS: ("last_of_guards", "prune_guards"),
    Subject.PAUSES: ("last_of_pauses", "prune_pauses"),
    Subject.TARGET_PAUSES: ("last_of_target_pauses", "prune_target_pauses"),
    Subject.STRAYS: ("last_of_strays", "prune_strays"),
}
# Those that are walked in the order of time, not of ids: what finds a page, and what removes it.
WALKS = {
    Subject.ATTEMPTS: ("page_of_attempts", "prune_attempts"),
    Subject.MAILS: ("page_of_mails", "prune_mails"),
    Subject.DELIVERY_COUNTS: ("page_of_delivery_counts", "prune_delivery_counts"),
}
# What goes with a page of events, in the same transaction.
WITH_EVENTS = ("prune_forwards", "prune_forward_attempts")
_BEGINNING = Place(datetime(1970, 1, 1, tzinfo=UTC), 0)


class SqlRetention:
    """What prunes, inside one transaction."""

    def __init__(self, runner: Runner, now: datetime) -> None:
        self._sql = runner
        self._now = now
        self._months = runner.session.dialect == "postgres"

    def readings(self) -> Mapping[Subject, Readings]:
        """Return the readings of every subject that was read."""
        instant = self._sql.session.instant
        return {
            Subject(row[0]): Readings(instant(row[1]), instant(row[2]), instant(row[3]))
            for row in self._sql.rows("read_readings")
        }

    def write(self, subject: Subject, readings: Readings) -> None:
        """Write the readings of a subject."""
        self._sql.count(
            "write_readings",
            subject=subject.value,
            read_at=readings.read_at,
            read_before=readings.read_before,
            pruned_before=readings.pruned_before,
        )

    def begin_round(self, every: timedelta, stale: timedelta) -> bool:
        """Begin a round of pruning in its time."""
        due, old = self._now - every, self._now - stale
        return self._sql.count("begin_round", now=self._now, due_before=due, stale_before=old) == 1

    def keep_round(self) -> None:
        """Say that the round goes on."""
        self._sql.count("keep_round", now=self._now)

    def end_round(self) -> None:
        """Close the round."""
        self._sql.count("end_round", now=self._now)

    def forgotten_before(self, rule: str) -> datetime | None:
        """Return the instant before which records of the rule may be gone."""
        rows = self._sql.rows("read_forgotten", rule=rule)
        return self._sql.session.instant(rows[0][0]) if rows else None

    # ------------------------------------------------------------------------------ one page

    def prune(self, subject: Subject, before: datetime, place: Place | None, limit: int) -> Step:
        """Remove one page of what is older."""
        after = place or _BEGINNING
        if subject is Subject.RECORDS and self._months:
            return self._month(before) or self._default(before, limit)
        if subject in WALKS:
            return self._walk(WALKS[subject], before, after, limit)
        return self._page(PAGES[subject], before, after, limit)

    def _page(self, names: tuple[str, str], before: datetime, after: Place, limit: int) -> Step:
        """Walk in the order of ids, which is that of time, up to the first page with young rows."""
        ends = self._sql.rows(names[0], after=after.id, limit=limit)
        if not ends:
            return Step(0, None)
        last, at = ends[0]
        page = {"after": after.id, "last": last, "before": before}
        if names[1] == "prune_records":
            self._forget([row[0] for row in self._sql.rows("rules_of_records", **page)], before)
        removed_count = self._sql.count(names[1], **page)
        for name in WITH_EVENTS if names[1] == "prune_events" and removed_count else ():
            self._sql.count(name, after=after.id, last=last)
        is_young = self._sql.session.sure_instant(at) >= before
        return Step(removed_count, None if is_young else Place(None, last))

    def _walk(self, names: tuple[str, str], before: datetime, after: Place, limit: int) -> Step:
        """Walk in the order of time; what belongs to open work is passed over."""
        start = {"after_at": after.at or _BEGINNING.at, "after": after.id}
        page = self._sql.rows(names[0], **start, before=before, limit=limit)
        if not page:
            return Step(0, None)
        last = Place(self._sql.session.sure_instant(page[-1][0]), page[-1][1])
        removed_count = self._sql.count(names[1], **start, last_at=last.at, last=last.id)
        return Step(removed_count, last if len(page) == limit else None)

    # ---------------------------------------------------------------- months, on PostgreSQL

    def _old_months(self, before: datetime) -> list[str]:
        """Return the partitions all of whose records are older, oldest first."""
        names = [row[0] for row in self._sql.rows("record_partitions")]
        return [name for name in names if (end := month_end(name)) is not None and end <= before]

    def _month(self, before: datetime) -> Step | None:
        """Drop the oldest month that is old enough; None when there is none."""
        for partition in self._old_months(before)[:1]:
            self._sql.rows("hurry")
            removed_count = self._count_month(partition, COUNT_EXACTLY)
            end = month_end(partition) or before
            self._forget(self._on("rules_of_partition", partition), end)
            text = load("postgres")["drop_partition"]
            slots = {"s": self._sql.session.prefix, "partition": partition}
            self._sql.session.run(fill(text, slots), {})
            return Step(removed_count, _BEGINNING)
        return None

    def _on(self, name: str, partition: str, **parameters: int) -> list[str]:
        """Return the first column of a statement about one partition."""
        slots = {"s": self._sql.session.prefix, "partition": partition}
        rows, _ = self._sql.session.run(fill(load("postgres")[name], slots), parameters)
        return [row[0] for row in rows]

    def _count_month(self, partition: str, limit: int) -> int:
        return int(self._on("count_partition", partition, limit=limit)[0])

    def _default(self, before: datetime, limit: int) -> Step:
        removed_count = self._sql.rows("prune_default", before=before, limit=limit)[0][0]
        return Step(removed_count, _BEGINNING if removed_count == limit else None)

    def _forget(self, rules: Sequence[str], before: datetime) -> None:
        for rule in rules:
            self._sql.count("note_forgotten", rule=rule, before=before)

    # ------------------------------------------------------------------------- looking ahead

    def count(self, subject: Subject, before: datetime, at_most: int) -> int:
        """Count what `prune` would remove now, and stop counting about `at_most`."""
        bounds = {"before": before, "limit": at_most}
        if subject is Subject.RECORDS and self._months:
            months = [self._count_month(one, at_most) for one in self._old_months(before)]
            return sum(months) + int(self._sql.rows("count_default", **bounds)[0][0])
        return int(self._sql.rows(COUNTS[subject], **bounds)[0][0])


def month_end(partition: str) -> datetime | None:
    """Return the first instant after a month's partition; None for another table's name."""
    try:
        month = datetime.strptime(partition, f"{MONTH_PREFIX}%Y_%m").replace(tzinfo=UTC)
    except ValueError:
        return None
    return months_from(month, 2)[1]
