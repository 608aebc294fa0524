create table if not exists {inbox} (
    consumer text not null check (length(consumer) between 1 and 64),
    event_key text not null check (length(event_key) between 1 and 255),
    received_at text not null default (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    primary key (consumer, event_key)
) without rowid;
create index if not exists {schema}{index} on {name} (consumer, received_at);
