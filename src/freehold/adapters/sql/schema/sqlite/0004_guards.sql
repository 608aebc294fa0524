-- Differs from PostgreSQL: instants are UTC text of one width, as in the first migration.
-- Guards that freeze releases, pauses by role and tenant, and what each host's clock said.

create table {s}guard (
    id integer primary key autoincrement,
    kind text not null check (kind in ('clock', 'mass')),
    rule text,
    tripped_at text not null,
    reason text not null,
    figures text not null,
    released_at text,
    released_by text,
    released_reason text
) strict;
create unique index {s}guard_standing on {s}guard (kind, coalesce(rule, ''))
    where released_at is null;

create table {s}pause (
    id integer primary key autoincrement,
    role text not null,
    rule text,
    tenant text,
    paused_by text not null,
    reason text not null,
    paused_at text not null,
    paused_until text,
    ended_at text
) strict;
create unique index {s}pause_standing on {s}pause (role, coalesce(rule, ''), coalesce(tenant, ''))
    where ended_at is null;

create table {s}host_clock (
    host text primary key,
    database_at text not null,
    host_at text not null
) strict;
create index {s}host_clock_newest on {s}host_clock (database_at);

alter table {s}rule_state add column scanned_at text;
alter table {s}rule_state add column unsettled_at text;

create index {s}operation_paused on {s}operation (rule, tenant, id)
    where state = 'deferred' and reason = 'paused';
