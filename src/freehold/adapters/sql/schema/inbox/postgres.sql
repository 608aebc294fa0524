create table if not exists {inbox} (
    consumer text not null check (length(consumer) between 1 and 64),
    event_key text not null check (length(event_key) between 1 and 255),
    received_at timestamptz not null default now(),
    primary key (consumer, event_key)
);
create index if not exists {index} on {inbox} (consumer, received_at);
