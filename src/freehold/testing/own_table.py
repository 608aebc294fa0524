"""Our own table of holds in the guise of the standard one, so that the same invariants read it.

A view `reservation` shows the holds under the names of `tables`, and triggers fill `history` behind
everybody's back. *Invariants*: nothing here goes through the SQL adapters.
"""

from __future__ import annotations

from freehold.testing.backdoor import BackDoor

_TABLES = """
create table stock (id integer primary key, free integer not null);
create table receipt (reservation_id integer);
create table history (
    seq {serial}, reservation_id {integer} not null, tenant text, old_status text, new_status text,
    old_token text, new_token text, old_hold_until {instant}, new_hold_until {instant},
    released_at {instant});
create index history_hold on history (reservation_id, new_token);
create view reservation as
    select id, tenant, status, cast(hold_token as text) as token, hold_until,
           expired_at as released_at, unit_id as stock_id, 1 as quantity
    from {{s}}hold;
"""
_HISTORY = (
    "insert into history (reservation_id, tenant, old_status, new_status, old_token, new_token,"
    " old_hold_until, new_hold_until, released_at) values "
)
_BORN = "(new.id, new.tenant, null, new.status, null, new.hold_token, null, new.hold_until, null)"
_CHANGED = (
    "(new.id, new.tenant, old.status, new.status, old.hold_token, new.hold_token,"
    " old.hold_until, new.hold_until, new.expired_at)"
)
_THERE = "select id, tenant, null, status, null, hold_token, null, hold_until, null from {s}hold"
# SQLite has no hash join: without these, each record of many would read the whole history.
_SQLITE_INDEXES = """
create index history_released on history (cast(reservation_id as text))
    where new_status = 'expired';
create index hold_key on {s}hold (cast(id as text));
"""
_SQLITE_TRIGGERS = f"""
create trigger hold_born after insert on {{s}}hold begin {_HISTORY} {_BORN}; end;
create trigger hold_changed after update on {{s}}hold begin {_HISTORY} {_CHANGED}; end;
"""
_POSTGRES_TRIGGERS = f"""
create function note_hold() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then {_HISTORY} {_BORN};
    else {_HISTORY} {_CHANGED};
    end if;
    return null;
end $$;
create trigger hold_history after insert or update on {{s}}hold
for each row execute function note_hold();
"""


def disguise(door: BackDoor) -> None:
    """Make view, history and triggers; holds that are there already are the first of the history."""
    sqlite = door.dialect == "sqlite"
    kinds = {
        "integer": "integer" if sqlite else "bigint",
        "instant": "text" if sqlite else "timestamptz",
        "serial": "integer primary key autoincrement"
        if sqlite
        else "bigint generated always as identity primary key",
    }
    door.script(_TABLES.format(**kinds))
    door.execute(_HISTORY.removesuffix("values ") + _THERE)
    door.script(_SQLITE_INDEXES + _SQLITE_TRIGGERS if sqlite else _POSTGRES_TRIGGERS)
