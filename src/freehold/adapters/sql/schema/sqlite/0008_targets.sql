-- Differs from PostgreSQL: instants are UTC text of one width, bytes are blobs.
-- Targets: who is told of events and what is owed to each; what came over a broker that nobody can
-- read; and how much came.

alter table {s}outbox add column routed_at text;
-- Events whose targets are not worked out yet.
create index {s}outbox_unrouted on {s}outbox (id) where state = 'pending' and routed_at is null;

create table {s}target (
    name text primary key not null,
    kind text not null check (kind in ('rabbitmq', 'nats', 'webhook')),
    active integer not null default 1 check (active in (0, 1)),
    failing_since text,
    failure_count integer not null default 0,
    probe_at text,
    changed_at text not null,
    constraint target_failing check ((failing_since is null) = (failure_count = 0))
) strict;

-- One row for each time that a target was paused, by a person or by itself.
create table {s}target_pause (
    id integer primary key autoincrement,
    target text not null references {s}target (name),
    reason text not null,
    paused_by text,
    paused_at text not null,
    paused_until text,
    ended_at text,
    ended_by text
) strict;
create unique index {s}target_pause_standing on {s}target_pause (target) where ended_at is null;

-- One event that is owed to one target.
create table {s}forward (
    event_id integer not null,
    target text not null references {s}target (name),
    state text not null check (state in (
        'ready', 'leased', 'retrying', 'dead', 'discarded', 'delivered')),
    attempt integer not null default 0,
    replay_count integer not null default 0,
    owed_at text not null,
    available_at text not null,
    leased_until text,
    lease_token integer,
    failure_class text,
    reason text,
    first_tried_at text,
    ended_at text,
    changed_at text not null,
    primary key (event_id, target),
    constraint forward_leased check ((state = 'leased') = (leased_until is not null)),
    constraint forward_ended check ((state in ('dead', 'discarded', 'delivered')) = (ended_at is not null))
) strict;
create index {s}forward_claim on {s}forward (target, available_at, event_id)
    where state in ('ready', 'retrying');
create index {s}forward_leased_until on {s}forward (leased_until) where state = 'leased';
create index {s}forward_dead on {s}forward (target, event_id) where state = 'dead';

-- Failed attempts only: most forwards arrive at the first.
create table {s}forward_attempt (
    event_id integer not null,
    target text not null,
    replay_count integer not null,
    attempt integer not null,
    ended_at text not null,
    failure_class text not null,
    code text not null,
    reason text not null,
    primary key (event_id, target, replay_count, attempt)
) strict;

-- Payloads of a queue that are no message of ours; the same bytes are one row.
create table {s}stray (
    id integer primary key autoincrement,
    queue text not null,
    digest text not null,
    raw blob not null,
    byte_count integer not null,
    reason text not null,
    seen_count integer not null default 1,
    first_seen_at text not null,
    last_seen_at text not null,
    state text not null default 'dead' check (state in ('dead', 'discarded')),
    constraint stray_once unique (queue, digest)
) strict;
create index {s}stray_dead on {s}stray (id) where state = 'dead';

-- How many messages one process published and took in one minute.
create table {s}delivery_count (
    minute_at text not null,
    process text not null,
    published_count integer not null default 0,
    unconfirmed_count integer not null default 0,
    delivered_count integer not null default 0,
    redelivered_count integer not null default 0,
    passed_over_count integer not null default 0,
    unreadable_count integer not null default 0,
    primary key (minute_at, process)
) strict;
