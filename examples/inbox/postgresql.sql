-- An inbox on PostgreSQL: which events a consumer has seen, in the transaction of their effects.
-- For any language. In Python `freehold.inbox` does the same.

-- 1. Once, with your migrations.
create table if not exists freehold_inbox (
    consumer text not null check (length(consumer) between 1 and 64),
    event_key text not null check (length(event_key) between 1 and 255),
    received_at timestamptz not null default now(),
    primary key (consumer, event_key)
);
create index if not exists freehold_inbox_received on freehold_inbox (consumer, received_at);

-- 2. For each event, in the transaction in which you do what it asks for (READ COMMITTED, the
--    default). $1 is who you are, such as 'billing'; $2 is the event's `id`.
--    One row back: the event is new, do the effect. No row: it was seen, do nothing and commit.
--    While another transaction has written the same key and not ended, this waits for its end.
begin;
insert into freehold_inbox (consumer, event_key) values ($1, $2)
on conflict do nothing
returning event_key;
-- ... the effect ...
commit;
-- Acknowledge the message, or answer the webhook with 200, after the commit and never before.

-- 2b. For a batch: $2 is an array of keys. Those that come back are new. In order of the key, so
--     that two consumers with overlapping batches do not wait for each other in a circle.
insert into freehold_inbox (consumer, event_key)
select $1, given.event_key from (select distinct unnest($2::text[]) as event_key) as given
order by given.event_key
on conflict do nothing
returning event_key;

-- 3. If order matters to you: keep the highest `data.sequence` of each hold beside what you know of
--    it, and let only a later one change it. $2 is `data.rule`, $3 is `data.key`, $4 is
--    `data.sequence` (a number of up to 19 digits, sent as text), $5 is the event's `type`.
create table if not exists hold_seen (
    rule text not null,
    hold_key text not null,
    sequence bigint not null,
    type text not null,
    primary key (rule, hold_key)
);
-- No row back: what you have is newer, ignore the event.
insert into hold_seen (rule, hold_key, sequence, type) values ($2, $3, $4, $5)
on conflict (rule, hold_key) do update set sequence = excluded.sequence, type = excluded.type
where hold_seen.sequence < excluded.sequence
returning sequence;

-- 4. Once a day. A forgotten event is new when it comes again: keep keys longer than delivered events
--    can be replayed (30 days by default) and longer than dead ones wait for a person.
delete from freehold_inbox where ctid = any(array(
    select ctid from freehold_inbox
    where consumer = $1 and received_at < now() - interval '90 days'
    order by received_at limit 10000 for update skip locked));
