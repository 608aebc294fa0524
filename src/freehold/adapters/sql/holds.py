"""The customer's rows under one rule, in SQL; implements `ports.holds.Holds`.

*Invariants*: the records and events of a release are written by the transaction that changes the
rows; a release that changes fewer rows than it was told to is an error, never a shrug.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from freehold.adapters.sql.companions import run_companion
from freehold.adapters.sql.mapping import RuleSql
from freehold.adapters.sql.operations import remove_operations
from freehold.adapters.sql.session import Row, Runner, Session
from freehold.adapters.sql.statements import fill, load, parameters
from freehold.adapters.sql.weighing import weigh_by_index, weigh_by_reading
from freehold.domain.due import EmptyDue, due_bound, is_due, read_due, released_from
from freehold.domain.errors import ChangeLost
from freehold.domain.expiry import ExpireHold, HoldRow, RowAbsence
from freehold.domain.names import key_values, operation_key, unpack
from freehold.ports.holds import Chosen, FoundHold, LockedHold, ScanCursor, Weighing, Weight

PAGE_ROWS = 1_000  # read at a time where every row must be read
_Find = Callable[[ScanCursor | None, int], Sequence[FoundHold]]


class SqlHolds:
    """One rule's rows inside one transaction."""

    def __init__(self, session: Session, rule_sql: RuleSql, now: datetime) -> None:
        self._rule = rule_sql.rule
        self._rule_sql = rule_sql
        slots = rule_slots(session, rule_sql)
        true = {"after_cursor": slots["true"], "after_key": slots["true"]}
        start = {**true, "upto_cursor": f"not {slots['true']}"}
        self._sql = Runner(session, slots)
        self._from_start = Runner(session, {**slots, **start})
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

    def find_due(
        self, after: ScanCursor | None, limit: int, since: datetime | None = None
    ) -> Sequence[FoundHold]:
        """Read due rows behind the cursor, open ones marked."""
        floor = {}
        if since is not None and self._rule.due.comparable_bare:
            # Local times inside a gap of that instant were not due yet: begin below them.
            floor = {"due_after": due_bound(self._rule.due, since).gap_from}
        self._rows("keep_order")
        return self._find("find_due", after, limit, floor)

    def find_empty_due(self, after: ScanCursor | None, limit: int) -> Sequence[FoundHold]:
        """Read held rows without a usable due, in key order."""
        return self._find("find_empty_due", after, limit, {})

    def _find(
        self, name: str, after: ScanCursor | None, limit: int, floor: Mapping[str, Any]
    ) -> Sequence[FoundHold]:
        runner = self._from_start if after is None else self._sql
        cursor = {} if after is None else {"cursor_due": after.due, "cursor_key": after.hold_key}
        rows = runner.rows(name, **{**self._fixed, **floor, **cursor, "limit": limit})
        return [FoundHold(*row) for row in rows]

    def next_due(self, until: datetime) -> datetime | None:
        """Return the first instant at which a hold falls due, if it is before `until`."""
        if not self._rule.due.comparable_bare:
            return None
        rows = self._rows("next_due")
        due_at = read_due(self._rule.due, rows[0][0]) if rows else None
        if not isinstance(due_at, datetime):
            return None
        wake_at = released_from(self._rule.due, due_at)
        return wake_at if wake_at <= until else None

    def count_overdue(self, at_most: int) -> int:
        """Count due rows up to a limit; text is read row by row, since only Python can judge it."""
        if self._rule.due.comparable_bare:
            return int(self._rows("count_overdue", limit=at_most)[0][0])
        return sum(1 for _ in islice(filter(self._is_due, self._held_rows()), at_most))

    def weigh(self, after: ScanCursor | None, wanted: Weighing) -> Weight:
        """Weigh the rows that were due at an instant and have no open operation."""
        if not self._rule.due.comparable_bare:
            return weigh_by_reading(self._pages_of(self.find_due, after), self._rule, wanted)
        self._rows("keep_order")
        runner = self._from_start if after is None else self._sql
        cursor = {} if after is None else {"cursor_due": after.due, "cursor_key": after.hold_key}
        fixed = {**self._fixed, **cursor}
        return weigh_by_index(runner, fixed, self._rule, wanted)

    def _is_due(self, row: FoundHold) -> bool:
        due_at = read_due(self._rule.due, row.due)
        if isinstance(due_at, datetime):
            return is_due(self._rule.due, due_at, self._now)
        return self._rule.due.on_empty is EmptyDue.NOW

    def _held_rows(self) -> Iterator[FoundHold]:
        """Read every held row in key order, those without any due last and only where they count."""
        empty_is_due = self._rule.due.on_empty is EmptyDue.NOW
        for find in (self.find_due, self.find_empty_due) if empty_is_due else (self.find_due,):
            yield from self._pages_of(find, None)

    def _pages_of(self, find: _Find, after: ScanCursor | None) -> Iterator[FoundHold]:
        while rows := find(after, PAGE_ROWS):
            yield from rows
            after = ScanCursor(rows[-1].due or "", rows[-1].hold_key)

    def lock(self, operation_ids: Sequence[int]) -> Sequence[LockedHold]:
        """Lock the rows of claimed operations and compare the whole fence."""
        rows = self._rows("lock_holds", ids=list(operation_ids))
        matching = [LockedHold(row[0], matches=True, due=row[2]) for row in rows if row[1]]
        differing = [row[0] for row in rows if not row[1]]
        seen = {row[0] for row in rows}
        missing = [one for one in operation_ids if one not in seen]
        return [*matching, *self._differing(differing), *self._absent(missing)]

    def _differing(self, ids: list[int]) -> list[LockedHold]:
        """Read what rows hold now that do not match."""
        rows = self._rows("what_differs", ids=ids) if ids else []
        instant = self._sql.session.instant
        return [
            LockedHold(
                row[0],
                matches=False,
                command=_command(row, instant(row[10])),
                row=_hold_row(row),
            )
            for row in rows
        ]

    def _absent(self, ids: list[int]) -> list[LockedHold]:
        """Tell rows that the host has locked from rows that are gone."""
        if not ids:
            return []
        there = {row[0] for row in self._rows("unlocked_holds", ids=ids)}
        return [
            LockedHold(
                one,
                matches=False,
                row=RowAbsence.LOCKED_BY_HOST if one in there else RowAbsence.GONE,
            )
            for one in ids
        ]

    def release(self, chosen: Sequence[Chosen]) -> None:
        """Change the rows, write event and record, and take the operations out."""
        changed = self._change(chosen)
        if changed != len(chosen):
            raise ChangeLost(
                "a trigger, rule or policy suppressed the change: "
                f"{changed} of {len(chosen)} rows changed",
                "FREEHOLD",
            )
        look_again(self._sql, self._fixed, [one.hold_key for one in chosen])

    def _change(self, chosen: Sequence[Chosen]) -> int:
        ids = [one.operation_id for one in chosen]
        tally_ids = [one.tally_id for one in chosen]
        if self._sql.session.dialect == "postgres":
            changed, gone = self._rows("release", ids=ids, tally_ids=tally_ids)[0]
            return int(min(changed, gone))
        pairs = list(zip(ids, tally_ids, strict=True))
        self._rows("note_expired", pairs=pairs)
        self._rows("tell_expired", ids=ids)
        name = "change_by_delete" if self._rule_sql.removes else "change_by_update"
        changed = self._sql.count(name, ids=ids, **self._fixed)
        remove_operations(self._sql, ids)
        return changed

    def rehearse(self) -> None:
        """Run the statements of a release over no row, and plan the companions."""
        self.find_due(None, 1)
        self._rows("lock_holds", ids=[])
        self._rows("what_differs", ids=[])
        self._rows("unlocked_holds", ids=[])
        self._change([])
        look_again(self._sql, self._fixed, [])
        for companion in self._rule.companions:
            nothing = dict.fromkeys(parameters(companion.sql))
            self._sql.session.run(f"explain {companion.sql}", nothing)

    def run_companions(self, operation_ids: Sequence[int], *, before: bool) -> None:
        """Run the rule's companions of that side, once for each operation."""
        if not self._rule.companions:
            return
        if before:
            self._before |= self._values_before(operation_ids)
        values = [self._before[one] for one in operation_ids if one in self._before]
        for companion in self._rule.companions:
            if companion.before is before:
                run_companion(self._sql.session, companion, values)

    def _values_before(self, operation_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        uuid = self._sql.session.uuid
        return {
            row[0]: {
                **image_of(row[4]),
                "now": self._now,
                "operation_key": operation_key(row[1], uuid(row[2])),
                "tenant": row[3],
            }
            for row in self._rows("companion_values", ids=list(operation_ids))
        }

    def images(self, operation_ids: Sequence[int]) -> Mapping[int, Mapping[str, str | None]]:
        """Read the mapped columns of operations' rows as text."""
        rows = self._rows("images", ids=list(operation_ids))
        return {row[0]: image_of(row[1]) for row in rows}

    def read(self, hold_key: str) -> Mapping[str, str | None] | None:
        """Read one row's mapped columns as text."""
        key_values(hold_key, len(self._rule.key))
        rows = self._rows("read_hold", hold_key=hold_key)
        return image_of(rows[0][0]) if rows else None

    def still_due(self, operation_ids: Sequence[int]) -> set[int]:
        """Return those operations whose hold is still held with the same identity."""
        return {row[0] for row in self._rows("still_due", ids=list(operation_ids))}


def rule_slots(session: Session, rule_sql: RuleSql) -> dict[str, str]:
    """Return the slots of a rule, with the change set into the release."""
    slots = {**rule_sql.slots, "s": session.prefix}
    change = "change_by_delete" if rule_sql.removes else "change_by_update"
    return {**slots, "change": fill(load(session.dialect)[change], slots)}


def look_again(runner: Runner, fixed: Mapping[str, Any], hold_keys: list[str]) -> None:
    """Raise when a trigger put rows back after the change."""
    count = runner.rows("still_held", **fixed, keys=hold_keys)[0][0]
    if count:
        raise ChangeLost(f"a trigger restored {count} released rows", "FREEHOLD")


def _command(row: Row, due_at: datetime | None) -> ExpireHold:
    if due_at is None:
        raise ChangeLost(f"operation {row[0]} was claimed without a due instant", "FREEHOLD")
    return ExpireHold(
        hold_key=row[11],
        identity=unpack(row[1]),
        guard=unpack(row[2]),
        due_at=due_at,
        after_expired=bool(row[3]),
    )


def _hold_row(row: Row) -> HoldRow:
    return HoldRow(
        identity=unpack(row[4]),
        guard=unpack(row[5]),
        held=bool(row[6]),
        confirmed=bool(row[7]),
        cancelled=bool(row[8]),
        expired=bool(row[9]),
    )


def image_of(image: Any) -> dict[str, str | None]:
    """Read an image of a row's columns as the database returned it."""
    return dict(json.loads(image)) if isinstance(image, str) else dict(image)
