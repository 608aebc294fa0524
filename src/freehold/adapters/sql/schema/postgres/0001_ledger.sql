-- The ledger: open operations, insert-only records, and what the loops need to know.

create table {s}operation (
    id bigint generated always as identity primary key,
    rule text not null,
    tenant text,
    hold_key text not null,
    digest uuid not null,
    identity text not null,
    guard text not null,
    due_at timestamptz,
    generation integer not null,
    after_expired boolean not null,
    state text not null check (state in ('ready', 'leased', 'retrying', 'deferred', 'dead', 'discarded')),
    reason text,
    attempt integer not null default 0,
    deferrals integer not null default 0,
    available_at timestamptz not null,
    leased_until timestamptz,
    lease_token bigint,
    failure_class text,
    failure_code text,
    failure_message text,
    found_at timestamptz not null,
    changed_at timestamptz not null,
    tick_id bigint,
    trace_context text,
    constraint operation_due_known check (due_at is not null or state in ('dead', 'discarded')),
    constraint operation_leased check ((state = 'leased') = (leased_until is not null))
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
create unique index operation_identity on {s}operation (rule, hold_key, digest);
create index operation_claim on {s}operation (rule, available_at, id)
    where state in ('ready', 'retrying', 'deferred');
create index operation_leased_until on {s}operation (leased_until) where state = 'leased';
create index operation_review on {s}operation (rule, id) where state in ('dead', 'discarded');

create sequence {s}lease_token;

create table {s}attempt (
    operation_id bigint not null,
    attempt integer not null,
    failure_class text not null,
    failure_code text not null,
    failure_message text not null,
    failed_at timestamptz not null,
    lease_token bigint
);
create index attempt_operation on {s}attempt (operation_id);

create table {s}record (
    operation_id bigint not null,
    rule text not null,
    tenant text,
    hold_key text not null,
    digest uuid not null,
    generation integer not null,
    due_at timestamptz,
    outcome text not null check (outcome in ('expired', 'skipped', 'closed')),
    reason text,
    attempt integer not null,
    before_image json,
    tick_id bigint,
    tally_id bigint,
    found_at timestamptz not null,
    finished_at timestamptz not null
) partition by range (finished_at);
create index record_hold on {s}record (rule, hold_key);
create table {s}record_default partition of {s}record default;

create table {s}tally (
    id bigint generated always as identity primary key,
    rule text not null,
    tenant text,
    at timestamptz not null,
    expired_count integer not null,
    skipped json not null,
    lag_counts json not null
);
create index tally_at on {s}tally (at);

create table {s}outbox (
    id bigint generated always as identity primary key,
    type text not null,
    operation_id bigint not null,
    rule text not null,
    tenant text,
    hold_key text not null,
    digest uuid not null,
    generation integer not null,
    due_at timestamptz not null,
    at timestamptz not null,
    tokens json not null,
    carry json not null,
    state text not null check (state in ('kept', 'pending', 'published')),
    published_at timestamptz
);
create unique index outbox_event on {s}outbox (operation_id, type);
create index outbox_pending on {s}outbox (id) where state = 'pending';

create table {s}tick (
    id bigint generated always as identity primary key,
    schedule text not null,
    logical_time timestamptz not null,
    started_at timestamptz not null,
    finished_at timestamptz,
    host_at timestamptz not null,
    runner text not null,
    run_count integer not null default 1,
    found_count bigint not null default 0,
    new_count bigint not null default 0,
    outcome text
);
create unique index tick_once on {s}tick (schedule, logical_time);
create index tick_unfinished on {s}tick (schedule, logical_time) where finished_at is null;

create table {s}rule_state (
    rule text primary key,
    fingerprint text not null,
    condition text not null check (condition in ('waiting', 'active', 'paused')),
    reason text,
    batch_limit integer,
    leased boolean not null default false,
    probe_at timestamptz,
    probe_count integer not null default 0,
    crash_count integer not null default 0,
    scan_paused text,
    changed_at timestamptz not null
);

create table {s}worker (
    worker text primary key,
    roles text not null,
    host text not null,
    pid integer not null,
    in_hand text,
    host_at timestamptz not null,
    started_at timestamptz not null,
    beat_at timestamptz not null
);

create table {s}action (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    actor text not null,
    action text not null,
    subject text not null,
    reason text not null,
    before text,
    after text,
    previous_hash text not null,
    hash text not null unique
);
