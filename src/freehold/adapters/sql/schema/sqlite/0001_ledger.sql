-- Differs from PostgreSQL: instants are UTC text of one width, so that text order is time order; one
-- record table, since SQLite has no partitions; ids are never used twice (autoincrement).
-- The ledger: open operations, insert-only records, and what the loops need to know.

create table {s}operation (
    id integer primary key autoincrement,
    rule text not null,
    tenant text,
    hold_key text not null,
    digest text not null,
    identity text not null,
    guard text not null,
    due_at text,
    generation integer not null,
    after_expired integer not null,
    state text not null check (state in ('ready', 'leased', 'retrying', 'deferred', 'dead', 'discarded')),
    reason text,
    attempt integer not null default 0,
    deferrals integer not null default 0,
    available_at text not null,
    leased_until text,
    lease_token integer,
    failure_class text,
    failure_code text,
    failure_message text,
    found_at text not null,
    changed_at text not null,
    tick_id integer,
    trace_context text,
    constraint operation_due_known check (due_at is not null or state in ('dead', 'discarded')),
    constraint operation_leased check ((state = 'leased') = (leased_until is not null))
) strict;
create unique index {s}operation_identity on {s}operation (rule, hold_key, digest);
create index {s}operation_claim on {s}operation (rule, available_at, id)
    where state in ('ready', 'retrying', 'deferred');
create index {s}operation_leased_until on {s}operation (leased_until) where state = 'leased';
create index {s}operation_review on {s}operation (rule, id) where state in ('dead', 'discarded');

create table {s}lease_token (last integer not null) strict;
insert into {s}lease_token (last) values (0);

create table {s}attempt (
    operation_id integer not null,
    attempt integer not null,
    failure_class text not null,
    failure_code text not null,
    failure_message text not null,
    failed_at text not null,
    lease_token integer
) strict;
create index {s}attempt_operation on {s}attempt (operation_id);

create table {s}record (
    operation_id integer not null,
    rule text not null,
    tenant text,
    hold_key text not null,
    digest text not null,
    generation integer not null,
    due_at text,
    outcome text not null check (outcome in ('expired', 'skipped', 'closed')),
    reason text,
    attempt integer not null,
    before_image text,
    tick_id integer,
    tally_id integer,
    found_at text not null,
    finished_at text not null
) strict;
create index {s}record_hold on {s}record (rule, hold_key);

create table {s}tally (
    id integer primary key autoincrement,
    rule text not null,
    tenant text,
    at text not null,
    expired_count integer not null,
    skipped text not null,
    lag_counts text not null
) strict;
create index {s}tally_at on {s}tally (at);

create table {s}outbox (
    id integer primary key autoincrement,
    type text not null,
    operation_id integer not null,
    rule text not null,
    tenant text,
    hold_key text not null,
    digest text not null,
    generation integer not null,
    due_at text not null,
    at text not null,
    tokens text not null,
    carry text not null,
    state text not null check (state in ('kept', 'pending', 'published')),
    published_at text
) strict;
create unique index {s}outbox_event on {s}outbox (operation_id, type);
create index {s}outbox_pending on {s}outbox (id) where state = 'pending';

create table {s}tick (
    id integer primary key autoincrement,
    schedule text not null,
    logical_time text not null,
    started_at text not null,
    finished_at text,
    host_at text not null,
    runner text not null,
    run_count integer not null default 1,
    found_count integer not null default 0,
    new_count integer not null default 0,
    outcome text
) strict;
create unique index {s}tick_once on {s}tick (schedule, logical_time);
create index {s}tick_unfinished on {s}tick (schedule, logical_time) where finished_at is null;

create table {s}rule_state (
    rule text primary key,
    fingerprint text not null,
    condition text not null check (condition in ('waiting', 'active', 'paused')),
    reason text,
    batch_limit integer,
    leased integer not null default 0,
    probe_at text,
    probe_count integer not null default 0,
    crash_count integer not null default 0,
    scan_paused text,
    changed_at text not null
) strict;

create table {s}worker (
    worker text primary key,
    roles text not null,
    host text not null,
    pid integer not null,
    in_hand text,
    host_at text not null,
    started_at text not null,
    beat_at text not null
) strict;

create table {s}action (
    id integer primary key autoincrement,
    at text not null,
    actor text not null,
    action text not null,
    subject text not null,
    reason text not null,
    before text,
    after text,
    previous_hash text not null,
    hash text not null unique
) strict;
