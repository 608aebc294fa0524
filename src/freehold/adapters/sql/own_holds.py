"""Holds of our own table, in SQL; implements `ports.inventory.OwnHolds`.

*Invariants*: every change is one conditional statement; an id that an event carries comes from the
operations' own counter.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from freehold.adapters.sql.inventory import batch, inventory_runner, written_instant
from freehold.adapters.sql.session import Row, Session
from freehold.domain.errors import UsageError
from freehold.domain.events import EventType
from freehold.domain.inventory import Hold, HoldStatus, ImportedHold, NewHold, Renewal, Stay
from freehold.domain.names import digest
from freehold.ports.inventory import Imported, ImportRefusal, Written

_Granting = tuple[UUID, str, str]  # token, tenant and reference: what names one imported row


class SqlOwnHolds:
    """The holds of our own table inside one transaction."""

    def __init__(self, session: Session, now: datetime) -> None:
        self._session = session
        self._sql = inventory_runner(session)
        self._at = now
        self._now = written_instant(session, now)

    def _write(self, instant: datetime | None) -> Any:
        return written_instant(self._session, instant)

    def _holds(self, name: str, /, **parameters: Any) -> list[Hold]:
        return [self._hold(row) for row in self._sql.rows(name, **parameters)]

    def _one(self, name: str, /, **parameters: Any) -> Hold | None:
        return next(iter(self._holds(name, **parameters)), None)

    def place(self, new: NewHold) -> Hold | None:
        """Write a held hold, unless something is in its way."""
        return self._one(
            "place_own_hold",
            tenant=new.tenant,
            unit_id=new.unit_id,
            hold_until=self._write(new.hold_until),
            token=new.token,
            reference=new.reference,
            now=self._now,
            **self._stay(new.stay),
        )

    def _stay(self, stay: Stay | None) -> dict[str, Any]:
        return {
            "starts_at": None if stay is None else self._write(stay.starts_at),
            "ends_at": None if stay is None else self._write(stay.ends_at),
        }

    def in_way(self, unit_id: int, stay: Stay | None, limit: int) -> Sequence[Hold]:
        """Return held and confirmed holds that overlap the stay."""
        asked = self._stay(stay)
        return self._holds("own_holds_in_way", unit_id=unit_id, limit=limit, **asked)

    def lock(self, hold_ids: Sequence[int]) -> Sequence[Hold]:
        """Lock holds in id order, waiting for others."""
        return self._holds("lock_own_holds", ids=list(hold_ids))

    def renew(self, renewal: Renewal) -> Hold | None:
        """Give a hold a new end and a new token."""
        return self._one(
            "renew_own_hold",
            token=renewal.token,
            new_token=renewal.new_token,
            hold_until=self._write(renewal.hold_until),
            now=self._now,
        )

    def confirm(self, token: UUID) -> Hold | None:
        """Confirm a hold that is held and not due."""
        return self._one("confirm_own_hold", token=token, now=self._now)

    def cancel(self, token: UUID) -> Hold | None:
        """Cancel a hold that is held or confirmed."""
        return self._one("cancel_own_hold", token=token, now=self._now)

    def tell(self, event: EventType, rule: str, hold: Hold) -> None:
        """Write the event of a change to the outbox."""
        told = {
            "type": event.value,
            "rule": rule,
            "digest": digest(rule, str(hold.id), hold.identity),
            "now": self._at,
            "id": hold.id,
        }
        if self._session.dialect == "sqlite":
            told |= {"operation_id": self._drawn_id(), "due_at": hold.hold_until}
        self._sql.count("tell_own_hold", **told)

    def _drawn_id(self) -> int:
        rows = self._sql.rows("draw_ids", count=1) or self._sql.rows("begin_ids", count=1)
        return int(rows[0][0])

    def still_held(self, tokens: Sequence[UUID]) -> set[UUID]:
        """Return those of the tokens that still hold."""
        rows = self._sql.rows("tokens_held", tokens=list(tokens), now=self._now)
        return {self._session.uuid(row[0]) for row in rows}

    def read(self, hold_ids: Sequence[int]) -> Sequence[Hold]:
        """Return those of the holds that are there."""
        return self._holds("read_own_holds", ids=list(hold_ids))

    def granted(self, tokens: Sequence[UUID]) -> Sequence[Hold]:
        """Return the holds that have one of the tokens now."""
        return self._holds("read_granted", tokens=list(tokens))

    def referenced(self, tenant: str, references: Sequence[str]) -> Sequence[Hold]:
        """Return the holds of a tenant that have one of the references."""
        return self._holds("read_referenced", tenant=tenant, references=list(references))

    def find(
        self,
        after_id: int,
        limit: int,
        *,
        tenant: str | None = None,
        unit_id: int | None = None,
        statuses: Sequence[HoldStatus] = (),
    ) -> Sequence[Hold]:
        """Return holds in id order; one bounded read for each status, merged."""
        page = {"after_id": after_id, "limit": limit}
        if tenant is None and unit_id is None:
            if statuses:
                raise UsageError("Holds are listed by status within a tenant or a unit; name one.")
            return self._holds("find_own_holds", **page)
        found: list[Hold] = []
        for status in dict.fromkeys(statuses or HoldStatus):
            if unit_id is not None:
                found += self._holds(
                    "find_own_holds_of_unit", unit_id=unit_id, status=status.value, **page
                )
            else:
                found += self._holds(
                    "find_own_holds_of_tenant", tenant=tenant, status=status.value, **page
                )
        return sorted(found, key=lambda one: one.id)[:limit]

    def take_over(self, rows: Sequence[ImportedHold]) -> Sequence[Imported]:
        """Write holds that were granted elsewhere, each on its own merits."""
        answers, units = self._judge(dict(enumerate(rows)))
        fresh = {place: rows[place] for place in sorted(units)}
        written = self._import([(fresh[place], units[place]) for place in fresh])
        late = {place: one for place, one in fresh.items() if not _taken(written, one)}
        answers |= {place: Imported(Written.NEW) for place in fresh.keys() - late.keys()}
        judged, overlapping = self._judge(late)
        overlap = Imported(Written.MISSING, ImportRefusal.OVERLAP)
        answers |= {**judged, **dict.fromkeys(overlapping, overlap)}
        return [answers[place] for place in range(len(rows))]

    def _judge(self, rows: dict[int, ImportedHold]) -> tuple[dict[int, Imported], dict[int, int]]:
        """Return answers for rows that need no writing, and the units of all others, by place."""
        answers: dict[int, Imported] = {}
        units: dict[int, int] = {}
        if not rows:
            return answers, units
        places = list(rows)
        given = batch(
            self._session, [(one.tenant, one.unit, one.reference) for one in rows.values()]
        )
        for place, unit_id, held_unit_id, starts_at, ends_at in self._sql.rows(
            "judge_imports", **given
        ):
            one = rows[places[place]]
            if held_unit_id is not None:
                same = held_unit_id == unit_id and self._read_stay(starts_at, ends_at) == one.stay
                answers[places[place]] = _EXISTS if same else _OTHER_HOLD
            elif unit_id is None:
                answers[places[place]] = _UNKNOWN_UNIT
            else:
                units[places[place]] = unit_id
        return answers, units

    def _import(self, fresh: Sequence[tuple[ImportedHold, int]]) -> set[_Granting]:
        """Write rows; return which were written."""
        if not fresh:
            return set()
        rows = [self._imported_row(one, unit_id) for one, unit_id in fresh]
        if self._session.dialect == "postgres":
            given = batch(self._session, rows)
            found = self._sql.rows("import_own_holds", now=self._now, **given)
            return {(self._session.uuid(row[0]), row[1], row[2]) for row in found}
        each = [
            {f"c{n}": value for n, value in enumerate(row)} | {"now": self._now} for row in rows
        ]
        counts = self._session.run_each(self._sql.text("import_own_hold"), each)
        return {_granting(one) for (one, _), count in zip(fresh, counts, strict=True) if count}

    def _imported_row(self, one: ImportedHold, unit_id: int) -> Row:
        stay = self._stay(one.stay)
        until = self._write(one.hold_until)
        return (
            *(one.tenant, unit_id, one.status.value, stay["starts_at"], stay["ends_at"], until),
            *(one.token, one.reference),
        )

    def _hold(self, row: Row) -> Hold:
        instant = self._instant
        return Hold(
            id=row[0],
            tenant=row[1],
            unit_id=row[2],
            status=HoldStatus(row[3]),
            stay=self._read_stay(row[4], row[5]),
            hold_until=instant(row[6]) or self._at,
            token=self._session.uuid(row[7]),
            reference=row[8],
            created_at=instant(row[9]) or self._at,
            changed_at=instant(row[10]) or self._at,
            expired_at=instant(row[11]),
            identity=row[12],
        )

    def _read_stay(self, starts_at: Any, ends_at: Any) -> Stay | None:
        start, end = self._instant(starts_at), self._instant(ends_at)
        return None if start is None or end is None else Stay(start, end)

    def _instant(self, value: Any) -> datetime | None:
        """Read an instant; SQLite's text carries no offset and means UTC."""
        instant = self._session.instant(value)
        if instant is None or instant.utcoffset() is not None:
            return instant
        return instant.replace(tzinfo=UTC)


def _granting(one: ImportedHold) -> _Granting:
    return (one.token, one.tenant, one.reference)


def _taken(written: set[_Granting], one: ImportedHold) -> bool:
    """Tell whether this row was written; one that stands twice in a call was written once."""
    granting = _granting(one)
    if granting not in written:
        return False
    written.remove(granting)
    return True


_EXISTS = Imported(Written.EXISTS)
_UNKNOWN_UNIT = Imported(Written.MISSING, ImportRefusal.UNKNOWN_UNIT)
_OTHER_HOLD = Imported(Written.DIFFERS, ImportRefusal.OTHER_HOLD)
