-- Differs from PostgreSQL: instants are UTC text, dates ISO text, truth 0 or 1.
-- The daily report: whose day ends when, what is frozen of it, and every attempt to send it.
-- The empty text stands for the holds that belong to nobody.

create table {s}report_calendar (
    tenant text primary key not null,
    next_date text not null,
    start_at text not null,
    end_at text not null,
    zone text not null,
    tz_version text not null,
    active integer not null default 1,
    constraint calendar_forward check (start_at < end_at)
) strict;
create index {s}report_calendar_end on {s}report_calendar (end_at, tenant) where active = 1;

create table {s}report (
    id integer primary key autoincrement,
    tenant text not null,
    report_date text not null,
    start_at text not null,
    end_at text not null,
    zone text not null,
    tz_version text not null,
    watermark_at text not null,
    due_at text not null,
    state text not null check (state in (
        'assigned', 'frozen', 'sending', 'in review', 'sent', 'partly sent', 'not sent', 'skipped')),
    reason text,
    expired_count integer,
    facts text,
    facts_digest text,
    assigned_at text not null,
    frozen_at text,
    ended_at text,
    constraint report_once unique (tenant, report_date),
    constraint report_start unique (tenant, start_at),
    constraint report_forward check (start_at < end_at),
    constraint report_facts check ((facts is null) = (state = 'assigned')),
    constraint report_counted check (facts is null or expired_count is not null)
) strict;
create index {s}report_assigned on {s}report (id) where state = 'assigned';
-- A report that gets its tallies in parts, one of a tenant at a time, has no count until it has all.
create unique index {s}report_in_parts on {s}report (tenant) where expired_count is null;
create index {s}report_due on {s}report (due_at, id) where state = 'frozen';
create index {s}report_open on {s}report (id) where state in ('sending', 'in review');
create index {s}report_by_date on {s}report (report_date, tenant);

create table {s}mail (
    report_id integer primary key references {s}report (id),
    locale text not null,
    subject text not null,
    body blob,
    body_digest text not null,
    byte_count integer not null,
    summary_id integer,
    frozen_at text not null
) strict;
create index {s}mail_frozen_at on {s}mail (frozen_at, report_id) where body is not null;

create table {s}send (
    id integer primary key autoincrement,
    report_id integer not null references {s}mail (report_id),
    recipient text not null,
    message_key text not null,
    head text not null,
    mail_digest text not null,
    state text not null check (state in (
        'ready', 'leased', 'retrying', 'unknown', 'review',
        'accepted', 'refused', 'abandoned', 'unsubscribed')),
    reason text,
    attempt integer not null default 0,
    available_at text not null,
    leased_until text,
    lease_token integer,
    transport text,
    reference text,
    first_tried_at text,
    last_tried_at text,
    spent_count integer not null default 0,
    look_count integer not null default 0,
    state_before text check (state_before in ('ready', 'retrying', 'unknown')),
    changed_at text not null,
    constraint send_once unique (report_id, recipient),
    constraint send_key unique (message_key),
    constraint send_leased check ((state = 'leased') = (leased_until is not null)),
    constraint send_before check ((state = 'leased') = (state_before is not null))
) strict;
create index {s}send_claim on {s}send (available_at, id) where state in ('ready', 'retrying', 'unknown');
create index {s}send_leased_until on {s}send (leased_until) where state = 'leased';
create index {s}send_open on {s}send (report_id) where state in ('ready', 'leased', 'retrying', 'unknown');
create index {s}send_review on {s}send (id) where state = 'review';

create table {s}send_attempt (
    send_id integer not null references {s}send (id),
    attempt integer not null,
    kind text not null check (kind in ('send', 'replay', 'look-up', 'resolve')),
    transport text not null,
    lease_token integer,
    started_at text not null,
    ended_at text,
    outcome text check (outcome in (
        'accepted', 'refused', 'transient', 'unknown', 'found', 'not found', 'abandoned', 'send again')),
    reference text,
    code text,
    answer text,
    primary key (send_id, attempt),
    constraint attempt_ended check ((ended_at is null) = (outcome is null))
) strict;
create unique index {s}send_attempt_open on {s}send_attempt (send_id) where outcome is null;

create table {s}unsubscribed (
    tenant text not null,
    recipient text not null,
    at text not null,
    actor text not null,
    reason text not null,
    primary key (tenant, recipient)
) strict;

-- What the links in mails name: one row for each recipient that was ever given a link.
create table {s}unsubscribe_token (
    token text primary key not null,
    tenant text not null,
    recipient text not null
) strict;

create table {s}summary_attempt (
    id integer primary key autoincrement,
    report_id integer not null references {s}report (id),
    tenant text not null,
    attempt integer not null,
    prompt_version text not null,
    facts_digest text not null,
    host text not null,
    model_asked text not null,
    model_answered text,
    started_at text not null,
    ended_at text,
    outcome text check (outcome in ('accepted', 'rejected', 'failed', 'abandoned')),
    reason text,
    input_tokens integer,
    cached_tokens integer,
    cache_write_tokens integer,
    output_tokens integer,
    reasoning_tokens integer,
    raw_usage text,
    cost_micros integer,
    currency text,
    tokens_max integer not null,
    summary text,
    constraint summary_attempt_once unique (report_id, attempt),
    constraint summary_ended check ((ended_at is null) = (outcome is null))
) strict;
create index {s}summary_spent on {s}summary_attempt (tenant, started_at);
create unique index {s}summary_open on {s}summary_attempt (report_id) where ended_at is null;

-- Facts are read by way of the tallies: of a report its tallies, of a tally its records. Tally ids
-- only grow, so that the index on records is written at one end and holds each id once a page.
create index {s}record_tally on {s}record (tally_id);

alter table {s}tally add column report_id integer;
create index {s}tally_unreported on {s}tally ((coalesce(tenant, '')), at) where report_id is null;
create index {s}tally_reported on {s}tally (report_id) where report_id is not null;

drop view {s}unreported_tally;
create view {s}unreported_tally as
    select t.id from {s}tally t
    where t.report_id is null
      and exists (select 1 from {s}report_calendar c
                  where c.tenant = coalesce(t.tenant, '') and c.active = 1);

create index {s}tenant_changed on {s}tenant (changed_at, id);

-- Tenants that a table of the customer's names: what is gone from there becomes inactive.
alter table {s}tenant add column from_source integer not null default 0;
create index {s}tenant_sourced on {s}tenant (id) where from_source = 1 and active = 1;
