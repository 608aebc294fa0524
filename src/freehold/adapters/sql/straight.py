"""The customer's rows released without operation rows, in SQL; implements `ports.straight`.

*Invariants*: as of `adapters.sql.holds`; ids come from the operations' own counter, so that an id
never names two things.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from freehold.adapters.sql.companions import run_companion
from freehold.adapters.sql.holds import image_of, look_again, rule_slots
from freehold.adapters.sql.mapping import RuleSql
from freehold.adapters.sql.session import Row, Runner, Session
from freehold.adapters.sql.statements import fill, load
from freehold.domain.errors import ChangeLost
from freehold.domain.expiry import RowAbsence
from freehold.domain.names import KEY_BYTES_MAX, operation_key
from freehold.domain.operations import Claim
from freehold.domain.tallies import LAG_BOUNDS_SECONDS
from freehold.ports.holds import FoundHold, ScanCursor
from freehold.ports.straight import STRAIGHT, Bulk, ChosenFound, LockedFound, Stretch

_LAG_ENDS = ("'-infinity'", *map(str, LAG_BOUNDS_SECONDS), "'infinity'")
LAG_COUNTS = ", ".join(  # of a tally, as `domain.tallies` counts them
    f"count(*) filter (where c.lag > {low} and c.lag <= {high})"
    for low, high in pairwise(_LAG_ENDS)
)
SOONEST_END = timedelta(days=1)  # before its due; no record of a hold is older, but for clocks


class SqlStraight:
    """One rule's rows inside one transaction."""

    def __init__(self, session: Session, rule_sql: RuleSql, now: datetime) -> None:
        self._rule = rule_sql.rule
        self._removes = rule_sql.removes
        self._takes_bulk = rule_sql.takes_bulk
        self._slots = rule_slots(session, rule_sql)
        self._sql = Runner(session, self._slots)
        self._now = now
        self._before: dict[int, dict[str, Any]] = {}
        self._fixed = {
            **rule_sql.parameters,
            **rule_sql.bounds(now),
            "now": now,
            "rule": rule_sql.rule.name,
        }

    def _rows(self, name: str, /, **parameters: Any) -> list[Row]:
        return self._sql.rows(name, **self._fixed, **parameters)

    @property
    def _in_json(self) -> bool:
        return self._sql.session.dialect == "sqlite"

    def _batch(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Bind a batch as the dialect wants it: one JSON array of rows, or an array a column."""
        if self._in_json:
            return {"rows": rows}
        return {f"c{n}": list(column) for n, column in enumerate(zip(*rows, strict=True))}

    def find_named(self, hold_keys: Sequence[str]) -> Sequence[FoundHold]:
        """Read those of the named rows that are held and due."""
        return [FoundHold(*row) for row in self._rows("find_named", keys=list(hold_keys))]

    def lock_found(self, found: Sequence[FoundHold]) -> Sequence[LockedFound]:
        """Lock found rows and compare the whole fence; draw ids for those that match."""
        if not found:
            return []
        batch = self._batch([(one.hold_key, one.identity, one.guard) for one in found])
        rows = self._rows("lock_found", **batch)
        ids = iter(self._drawn([row[2] for row in rows if row[1]]))
        locked = [LockedFound(found[row[0]], next(ids) if row[1] else None) for row in rows]
        seen = {row[0] for row in rows}
        return [*locked, *self._absent([one for n, one in enumerate(found) if n not in seen])]

    def _drawn(self, ids: list[int]) -> Sequence[int]:
        """Return the ids drawn with the lock; SQLite's counter is moved on here."""
        if not self._in_json or not ids:
            return ids
        rows = self._sql.rows("draw_ids", count=len(ids))
        last = (rows or self._sql.rows("begin_ids", count=len(ids)))[0][0]
        return range(last - len(ids) + 1, last + 1)

    def _absent(self, found: Sequence[FoundHold]) -> Iterator[LockedFound]:
        """Tell rows that the host has locked from rows that are gone."""
        keys = [one.hold_key for one in found]
        there = {row[0] for row in self._rows("named_there", keys=keys)} if keys else set()
        for one in found:
            locked = one.hold_key in there
            yield LockedFound(one, absence=RowAbsence.LOCKED_BY_HOST if locked else RowAbsence.GONE)

    def release_found(self, chosen: Sequence[ChosenFound], tick_id: int | None) -> None:
        """Change the rows, and write event and record."""
        if not chosen:
            return
        changed = self._change(self._batch([_row(one) for one in chosen]), tick_id)
        if changed != len(chosen):
            raise ChangeLost(
                "a trigger, rule or policy suppressed the change: "
                f"{changed} of {len(chosen)} rows changed",
                "FREEHOLD",
            )
        look_again(self._sql, self._fixed, [one.found.hold_key for one in chosen])

    def _change(self, batch: dict[str, Any], tick_id: int | None) -> int:
        told = {**self._fixed, **batch, "tick_id": tick_id, "reason": STRAIGHT}
        if not self._in_json:
            return int(self._sql.rows("release_found", **told)[0][0])
        self._sql.count("note_found", **told)
        self._sql.count("tell_found", **told)
        name = "change_found_by_delete" if self._removes else "change_found_by_update"
        return self._sql.count(name, **told)

    @property
    def takes_bulk(self) -> bool:
        """Tell whether one statement can take a stretch of the rule's rows."""
        return self._takes_bulk

    def release_bulk(self, stretch: Stretch, tick_id: int | None) -> Bulk:
        """Find, lock, compare, change and write down as many rows of a stretch as are plain."""
        self._rows("keep_order")
        rows = self._bulk_runner().rows(
            "release_bulk",
            **self._fixed,
            cursor_due=stretch.after.due,
            cursor_key=stretch.after.hold_key,
            limit=stretch.limit,
            later_than=stretch.later_than,
            until=stretch.until,
            since=stretch.later_than - SOONEST_END,
            key_bytes_max=KEY_BYTES_MAX,
            quoted=self._slots["table"],
            tick_id=tick_id,
            reason=STRAIGHT,
        )
        if rows and rows[0][6]:  # triggers or rules, which alone could put rows back
            look_again(self._sql, self._fixed, [row[2] for row in rows])
        released = [self._released(*row[:5]) for row in rows]
        if len(rows) < stretch.limit:
            return Bulk(released, None)
        (after,) = (ScanCursor(row[5], row[2]) for row in rows if row[5] is not None)
        return Bulk(released, after)

    def _bulk_runner(self) -> Runner:
        """Return what runs the one statement, which is put together of parts."""
        texts, slots = load(self._sql.session.dialect), self._slots
        change = "change_in_place_by_delete" if self._removes else "change_in_place_by_update"
        parts = {
            "change_in_place": fill(texts[change], slots),
            "digest": fill(texts["digest_expression"], slots),
            "lag_counts": LAG_COUNTS,
        }
        return Runner(self._sql.session, {**slots, **parts})

    def _released(
        self, number: int, tenant: str | None, hold_key: str, digest: UUID, due_at: datetime
    ) -> Claim:
        return Claim(
            number,
            self._rule.name,
            tenant,
            hold_key,
            digest,
            due_at,
            1,
            after_expired=False,
            attempt=0,
        )

    def run_companions_of(self, chosen: Sequence[ChosenFound], *, before: bool) -> None:
        """Run the rule's companions of that side, once for each row."""
        if not self._rule.companions:
            return
        if before:
            self._before |= self._values_before(chosen)
        values = [
            self._before[one.operation_id] for one in chosen if one.operation_id in self._before
        ]
        for companion in self._rule.companions:
            if companion.before is before:
                run_companion(self._sql.session, companion, values)

    def _values_before(self, chosen: Sequence[ChosenFound]) -> dict[int, dict[str, Any]]:
        rows = self._rows("companion_values_of", keys=[one.found.hold_key for one in chosen])
        images: dict[str, Any] = dict(rows)
        return {
            one.operation_id: {
                **image_of(images[one.found.hold_key]),
                "now": self._now,
                "operation_key": operation_key(self._rule.name, one.digest),
                "tenant": one.found.tenant,
            }
            for one in chosen
            if one.found.hold_key in images
        }


def _row(one: ChosenFound) -> Row:
    found = one.found
    return (
        one.operation_id,
        one.tally_id,
        found.hold_key,
        found.identity,
        found.guard,
        one.digest,
        one.due_at,
        found.tenant,
    )
