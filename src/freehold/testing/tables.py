"""A customer's table of standard shape, with a history that triggers fill behind everybody's back.

`reservation` holds the holds, `stock` counts free pieces, `history` gets a row for every change of
a reservation, and `refusal` names tokens whose release the database refuses. *Invariants*: nothing
here goes through the SQL adapters; the history cannot be switched off by the code under test.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from freehold.domain.due import DueKind, DueSpec
from freehold.domain.rules import (
    Companion,
    Condition,
    Now,
    Predicate,
    Rule,
    SetColumns,
    TableName,
    TenantSource,
    Test,
)
from freehold.testing.backdoor import BackDoor, Row

_TABLES = """
create table stock (id integer primary key, free integer not null);
create table seal (id integer primary key);
create table receipt (
    reservation_id integer not null,
    seal_id integer not null references seal (id) deferrable initially deferred);
create table refusal (token text primary key, how text not null);
create table reservation (
    id {integer} primary key, tenant text not null, status text not null, token text not null,
    hold_until {instant}, released_at {instant}, stock_id integer not null references stock (id),
    quantity integer not null);
create index reservation_due on reservation (hold_until) where status = 'held';
create table history (
    seq {serial}, reservation_id {integer} not null, tenant text, old_status text, new_status text,
    old_token text, new_token text, old_hold_until {instant}, new_hold_until {instant},
    released_at {instant});
"""
_HISTORY = (
    "insert into history (reservation_id, tenant, old_status, new_status, old_token, new_token,"
    " old_hold_until, new_hold_until, released_at) values "
)
_BORN = "(new.id, new.tenant, null, new.status, null, new.token, null, new.hold_until, null)"
_CHANGED = (
    "(new.id, new.tenant, old.status, new.status, old.token, new.token, old.hold_until,"
    " new.hold_until, new.released_at)"
)
_GONE = "(old.id, old.tenant, old.status, null, old.token, null, old.hold_until, null, null)"
_REFUSES = "exists (select 1 from refusal r where r.token = old.token and r.how = '{how}')"
_SQLITE_TRIGGERS = f"""
create trigger reservation_born after insert on reservation begin {_HISTORY} {_BORN}; end;
create trigger reservation_changed after update on reservation begin {_HISTORY} {_CHANGED}; end;
create trigger reservation_gone after delete on reservation begin {_HISTORY} {_GONE}; end;
create trigger reservation_raises before update on reservation
when new.status = 'expired' and {_REFUSES.format(how="raise")}
begin select raise(abort, 'this row is poison'); end;
create trigger reservation_defers after update on reservation
when new.status = 'expired' and {_REFUSES.format(how="defer")}
begin insert into receipt values (new.id, -1); end;
"""
_POSTGRES_TRIGGERS = f"""
create function note_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then {_HISTORY} {_BORN};
    elsif tg_op = 'UPDATE' then {_HISTORY} {_CHANGED};
    else {_HISTORY} {_GONE};
    end if;
    return null;
end $$;
create function refuse() returns trigger language plpgsql as $$
begin
    if new.status <> 'expired' then return new; end if;
    if {_REFUSES.format(how="raise")} then raise exception 'this row is poison'; end if;
    if {_REFUSES.format(how="sleep")} then perform pg_sleep(60); end if;
    if {_REFUSES.format(how="end")} then perform pg_terminate_backend(pg_backend_pid()); end if;
    if {_REFUSES.format(how="defer")} then insert into receipt values (new.id, -1); end if;
    return new;
end $$;
create trigger reservation_history after insert or update or delete on reservation
for each row execute function note_change();
create trigger reservation_refuses before update on reservation
for each row execute function refuse();
"""


class Refusal(StrEnum):
    """How the database refuses the release of a hold."""

    RAISE = "raise"  # its trigger raises
    DEFER = "defer"  # a deferred foreign key fails at COMMIT
    SLEEP = "sleep"  # PostgreSQL: its trigger runs into the statement's time limit
    END = "end"  # PostgreSQL: its trigger ends the backend


def standard_rule(url: str, **changes: Any) -> Rule:
    """Return the rule of the standard table on the database of that URL.

    Args:
        changes: fields of `Rule` to set otherwise.
    """
    sqlite = url.startswith("sqlite")
    due = (
        DueSpec("hold_until", DueKind.NAIVE, "UTC")
        if sqlite
        else DueSpec("hold_until", DueKind.INSTANT)
    )
    fields: dict[str, Any] = {
        "name": "reservation",
        "table": TableName("reservation"),
        "key": ("id",),
        "held": _status("held"),
        "due": due,
        "action": SetColumns((("status", "expired"), ("released_at", Now()))),
        "tenant": TenantSource("tenant"),
        "fence": ("token",),
        "confirmed": _status("confirmed"),
        "cancelled": _status("cancelled"),
        "companions": (RESTOCK,),
        "carry": ("stock_id", "quantity"),
    }
    return Rule(**{**fields, **changes})


def _status(value: str) -> Predicate:
    return Predicate(((Condition("status", Test.EQUALS, (value,)),),))


RESTOCK = Companion(
    "update stock set free = free + cast(:quantity as integer)"
    " where id = cast(:stock_id as integer)",
    rows_min=1,
    rows_max=1,
    lock_by="stock_id",
)


@dataclass(slots=True)
class StandardTable:
    """The table seen by its owner, the host application."""

    door: BackDoor

    def create(self) -> None:
        """Make the tables and their triggers, with two stock rows of nothing free."""
        sqlite = self.door.dialect == "sqlite"
        if sqlite:
            self.door.execute("pragma journal_mode = wal")
        kinds = {
            "integer": "integer" if sqlite else "bigint",
            "instant": "text" if sqlite else "timestamptz",
            "serial": "integer primary key autoincrement"
            if sqlite
            else "bigint generated always as identity primary key",
        }
        self.door.script(_TABLES.format(**kinds))
        self.door.script(_SQLITE_TRIGGERS if sqlite else _POSTGRES_TRIGGERS)
        self.clear()

    def clear(self) -> None:
        """Empty the tables."""
        for name in ("receipt", "seal", "refusal", "reservation", "history", "stock"):
            self.door.execute(f"delete from {name}")
        self.door.execute("insert into stock values (1, 0), (2, 0)")

    def hold(
        self,
        number: int,
        until: datetime,
        *,
        tenant: str = "a",
        token: str | None = None,
        stock: int = 1,
        quantity: int = 1,
        refusal: Refusal | None = None,
    ) -> None:
        """Make a hold; its token is its number's unless another is given."""
        name = token or f"t{number}"
        if refusal is not None:
            self.refuse(name, refusal)
        self.door.execute(
            "insert into reservation values"
            " (:id, :tenant, 'held', :token, :until, null, :stock, :quantity)",
            id=number,
            tenant=tenant,
            token=name,
            until=self.door.local(until),
            stock=stock,
            quantity=quantity,
        )

    def refuse(self, token: str, how: Refusal) -> None:
        """Let the database refuse the release of holds of this token."""
        self.door.execute("insert into refusal values (:token, :how)", token=token, how=how.value)

    def mend(self, token: str) -> bool:
        """Take the refusal back; tell whether there was one."""
        return self.door.execute("delete from refusal where token = :token", token=token) == 1

    def renew(self, number: int, until: datetime) -> bool:
        """Give the same holder more time, if the hold still stands; tell whether it did."""
        return self._change(number, "hold_until = :until", until=self.door.local(until))

    def take_over(self, number: int, token: str, until: datetime) -> bool:
        """Grant the hold anew to somebody else, if it still stands; tell whether it did."""
        sets = "token = :token, hold_until = :until"
        return self._change(number, sets, token=token, until=self.door.local(until))

    def set_status(self, number: int, status: str) -> bool:
        """Confirm or cancel, if the hold still stands; tell whether it did."""
        return self._change(number, "status = :status", status=status)

    def delete(self, number: int) -> None:
        """Take the row away."""
        self.door.execute("delete from reservation where id = :id", id=number)

    def _change(self, number: int, sets: str, **values: Any) -> bool:
        changed = self.door.execute(
            f"update reservation set {sets} where id = :id and status = 'held'", id=number, **values
        )
        return changed == 1

    def status(self, number: int) -> str | None:
        """Return the status of a reservation, None when it is gone."""
        rows = self.door.rows("select status from reservation where id = :id", id=number)
        return str(rows[0][0]) if rows else None

    def statuses(self) -> dict[int, str]:
        """Return every reservation's status by its number."""
        return dict(self.door.rows("select id, status from reservation order by id"))

    def free(self) -> dict[int, int]:
        """Return the free pieces by stock row."""
        return dict(self.door.rows("select id, free from stock order by id"))

    def expirations(self, number: int) -> list[Row]:
        """Return the token and end of every release of a reservation, as the history saw them."""
        return self.door.rows(
            "select old_token, old_hold_until from history"
            " where reservation_id = :id and new_status = 'expired' order by seq",
            id=number,
        )
