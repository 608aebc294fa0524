-- Targets: who is told of events and what is owed to each; what came over a broker that nobody can
-- read; and how much came.

alter table {s}outbox add column routed_at timestamptz;
-- Events whose targets are not worked out yet. By two columns, so that no statistics can make the
-- index of all waiting events, which are many while a target is paused, look as good.
create index outbox_unrouted on {s}outbox (routed_at, id) where state = 'pending' and routed_at is null;

create table {s}target (
    name text primary key,
    kind text not null check (kind in ('rabbitmq', 'nats', 'webhook')),
    active boolean not null default true,
    failing_since timestamptz,
    failure_count integer not null default 0,
    probe_at timestamptz,
    changed_at timestamptz not null,
    constraint target_failing check ((failing_since is null) = (failure_count = 0))
);

-- One row for each time that a target was paused, by a person or by itself.
create table {s}target_pause (
    id bigint generated always as identity primary key,
    target text not null references {s}target (name),
    reason text not null,
    paused_by text,
    paused_at timestamptz not null,
    paused_until timestamptz,
    ended_at timestamptz,
    ended_by text
);
create unique index target_pause_standing on {s}target_pause (target) where ended_at is null;

-- One event that is owed to one target.
create table {s}forward (
    event_id bigint not null,
    target text not null references {s}target (name),
    state text not null check (state in (
        'ready', 'leased', 'retrying', 'dead', 'discarded', 'delivered')),
    attempt integer not null default 0,
    replay_count integer not null default 0,
    owed_at timestamptz not null,
    available_at timestamptz not null,
    leased_until timestamptz,
    lease_token bigint,
    failure_class text,
    reason text,
    first_tried_at timestamptz,
    ended_at timestamptz,
    changed_at timestamptz not null,
    primary key (event_id, target),
    constraint forward_leased check ((state = 'leased') = (leased_until is not null)),
    constraint forward_ended check ((state in ('dead', 'discarded', 'delivered')) = (ended_at is not null))
);
create index forward_claim on {s}forward (target, available_at, event_id)
    where state in ('ready', 'retrying');
create index forward_leased_until on {s}forward (leased_until) where state = 'leased';
create index forward_dead on {s}forward (target, event_id) where state = 'dead';

-- Failed attempts only: most forwards arrive at the first.
create table {s}forward_attempt (
    event_id bigint not null,
    target text not null,
    replay_count integer not null,
    attempt integer not null,
    ended_at timestamptz not null,
    failure_class text not null,
    code text not null,
    reason text not null,
    primary key (event_id, target, replay_count, attempt)
);

-- Payloads of a queue that are no message of ours; the same bytes are one row.
create table {s}stray (
    id bigint generated always as identity primary key,
    queue text not null,
    digest text not null,
    raw bytea not null,
    byte_count bigint not null,
    reason text not null,
    seen_count bigint not null default 1,
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    state text not null default 'dead' check (state in ('dead', 'discarded')),
    constraint stray_once unique (queue, digest)
);
create index stray_dead on {s}stray (id) where state = 'dead';

-- How many messages one process published and took in one minute.
create table {s}delivery_count (
    minute_at timestamptz not null,
    process text not null,
    published_count bigint not null default 0,
    unconfirmed_count bigint not null default 0,
    delivered_count bigint not null default 0,
    redelivered_count bigint not null default 0,
    passed_over_count bigint not null default 0,
    unreadable_count bigint not null default 0,
    primary key (minute_at, process)
);
