-- The inbox as in ../inbox/postgresql.sql, and a table for what this consumer does.
create table if not exists freehold_inbox (
    consumer text not null check (length(consumer) between 1 and 64),
    event_key text not null check (length(event_key) between 1 and 255),
    received_at timestamptz not null default now(),
    primary key (consumer, event_key)
);
create index if not exists freehold_inbox_received on freehold_inbox (consumer, received_at);
create table if not exists offers (
    id bigint generated always as identity primary key,
    hold_key text not null,
    event_key text not null
);
