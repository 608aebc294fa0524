-- The daily report: whose day ends when, what is frozen of it, and every attempt to send it.
-- The empty text stands for the holds that belong to nobody.

create table {s}report_calendar (
    tenant text primary key,
    next_date date not null,
    start_at timestamptz not null,
    end_at timestamptz not null,
    zone text not null,
    tz_version text not null,
    active boolean not null default true,
    constraint calendar_forward check (start_at < end_at)
);
create index report_calendar_end on {s}report_calendar (end_at, tenant) where active;

create table {s}report (
    id bigint generated always as identity primary key,
    tenant text not null,
    report_date date not null,
    start_at timestamptz not null,
    end_at timestamptz not null,
    zone text not null,
    tz_version text not null,
    watermark_at timestamptz not null,
    due_at timestamptz not null,
    state text not null check (state in (
        'assigned', 'frozen', 'sending', 'in review', 'sent', 'partly sent', 'not sent', 'skipped')),
    reason text,
    expired_count bigint,
    facts text,
    facts_digest text,
    assigned_at timestamptz not null,
    frozen_at timestamptz,
    ended_at timestamptz,
    constraint report_once unique (tenant, report_date),
    constraint report_start unique (tenant, start_at),
    constraint report_forward check (start_at < end_at),
    constraint report_facts check ((facts is null) = (state = 'assigned')),
    constraint report_counted check (facts is null or expired_count is not null)
);
create index report_assigned on {s}report (id) where state = 'assigned';
-- A report that gets its tallies in parts, one of a tenant at a time, has no count until it has all.
create unique index report_in_parts on {s}report (tenant) where expired_count is null;
create index report_due on {s}report (due_at, id) where state = 'frozen';
create index report_open on {s}report (id) where state in ('sending', 'in review');
create index report_by_date on {s}report (report_date, tenant);

create table {s}mail (
    report_id bigint primary key references {s}report (id),
    locale text not null,
    subject text not null,
    body bytea,
    body_digest text not null,
    byte_count integer not null,
    summary_id bigint,
    frozen_at timestamptz not null
);
create index mail_frozen_at on {s}mail (frozen_at, report_id) where body is not null;

create table {s}send (
    id bigint generated always as identity primary key,
    report_id bigint not null references {s}mail (report_id),
    recipient text not null,
    message_key text not null,
    head text not null,
    mail_digest text not null,
    state text not null check (state in (
        'ready', 'leased', 'retrying', 'unknown', 'review',
        'accepted', 'refused', 'abandoned', 'unsubscribed')),
    reason text,
    attempt integer not null default 0,
    available_at timestamptz not null,
    leased_until timestamptz,
    lease_token bigint,
    transport text,
    reference text,
    first_tried_at timestamptz,
    last_tried_at timestamptz,
    spent_count integer not null default 0,
    look_count integer not null default 0,
    state_before text check (state_before in ('ready', 'retrying', 'unknown')),
    changed_at timestamptz not null,
    constraint send_once unique (report_id, recipient),
    constraint send_key unique (message_key),
    constraint send_leased check ((state = 'leased') = (leased_until is not null)),
    constraint send_before check ((state = 'leased') = (state_before is not null))
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
create index send_claim on {s}send (available_at, id) where state in ('ready', 'retrying', 'unknown');
create index send_leased_until on {s}send (leased_until) where state = 'leased';
create index send_open on {s}send (report_id) where state in ('ready', 'leased', 'retrying', 'unknown');
create index send_review on {s}send (id) where state = 'review';

create table {s}send_attempt (
    send_id bigint not null references {s}send (id),
    attempt integer not null,
    kind text not null check (kind in ('send', 'replay', 'look-up', 'resolve')),
    transport text not null,
    lease_token bigint,
    started_at timestamptz not null,
    ended_at timestamptz,
    outcome text check (outcome in (
        'accepted', 'refused', 'transient', 'unknown', 'found', 'not found', 'abandoned', 'send again')),
    reference text,
    code text,
    answer text,
    primary key (send_id, attempt),
    constraint attempt_ended check ((ended_at is null) = (outcome is null))
);
create unique index send_attempt_open on {s}send_attempt (send_id) where outcome is null;

create table {s}unsubscribed (
    tenant text not null,
    recipient text not null,
    at timestamptz not null,
    actor text not null,
    reason text not null,
    primary key (tenant, recipient)
);

-- What the links in mails name: one row for each recipient that was ever given a link.
create table {s}unsubscribe_token (
    token text primary key,
    tenant text not null,
    recipient text not null
);

create table {s}summary_attempt (
    id bigint generated always as identity primary key,
    report_id bigint not null references {s}report (id),
    tenant text not null,
    attempt integer not null,
    prompt_version text not null,
    facts_digest text not null,
    host text not null,
    model_asked text not null,
    model_answered text,
    started_at timestamptz not null,
    ended_at timestamptz,
    outcome text check (outcome in ('accepted', 'rejected', 'failed', 'abandoned')),
    reason text,
    input_tokens bigint,
    cached_tokens bigint,
    cache_write_tokens bigint,
    output_tokens bigint,
    reasoning_tokens bigint,
    raw_usage json,
    cost_micros bigint,
    currency text,
    tokens_max bigint not null,
    summary text,
    constraint summary_attempt_once unique (report_id, attempt),
    constraint summary_ended check ((ended_at is null) = (outcome is null))
);
create index summary_spent on {s}summary_attempt (tenant, started_at);
create unique index summary_open on {s}summary_attempt (report_id) where ended_at is null;

-- Facts are read by way of the tallies: of a report its tallies, of a tally its records. Tally ids
-- only grow, so that the index on records is written at one end and holds each id once a page.
create index record_tally on {s}record (tally_id);

-- Last: every release writes to this table, and would wait while an index is made.
alter table {s}tally add column report_id bigint;
create index tally_unreported on {s}tally ((coalesce(tenant, '')), at) where report_id is null;
create index tally_reported on {s}tally (report_id) where report_id is not null;

drop view {s}unreported_tally;
create view {s}unreported_tally as
    select t.id from {s}tally t
    where t.report_id is null
      and exists (select 1 from {s}report_calendar c
                  where c.tenant = coalesce(t.tenant, '') and c.active);

create index tenant_changed on {s}tenant (changed_at, id);

-- Tenants that a table of the customer's names: what is gone from there becomes inactive.
alter table {s}tenant add column from_source boolean not null default false;
create index tenant_sourced on {s}tenant (id) where from_source and active;
