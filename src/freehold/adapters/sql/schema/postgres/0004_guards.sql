-- Guards that freeze releases, pauses by role and tenant, and what each host's clock said.

create table {s}guard (
    id bigint generated always as identity primary key,
    kind text not null check (kind in ('clock', 'mass')),
    rule text,
    tripped_at timestamptz not null,
    reason text not null,
    figures json not null,
    released_at timestamptz,
    released_by text,
    released_reason text
);
create unique index guard_standing on {s}guard (kind, coalesce(rule, ''))
    where released_at is null;

create table {s}pause (
    id bigint generated always as identity primary key,
    role text not null,
    rule text,
    tenant text,
    paused_by text not null,
    reason text not null,
    paused_at timestamptz not null,
    paused_until timestamptz,
    ended_at timestamptz
);
create unique index pause_standing on {s}pause (role, coalesce(rule, ''), coalesce(tenant, ''))
    where ended_at is null;

create table {s}host_clock (
    host text primary key,
    database_at timestamptz not null,
    host_at timestamptz not null
);
create index host_clock_newest on {s}host_clock (database_at);

create index operation_paused on {s}operation (rule, tenant, id)
    where state = 'deferred' and reason = 'paused';

-- Last: every transaction reads this table, and would wait while an index is made.
alter table {s}rule_state add column scanned_at timestamptz;
alter table {s}rule_state add column unsettled_at timestamptz;
