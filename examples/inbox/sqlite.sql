-- An inbox on SQLite: which events a consumer has seen, in the transaction of their effects.
-- For any language. In Python `freehold.inbox` does the same.

-- 1. Once, with your migrations.
create table if not exists freehold_inbox (
    consumer text not null check (length(consumer) between 1 and 64),
    event_key text not null check (length(event_key) between 1 and 255),
    received_at text not null default (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    primary key (consumer, event_key)
) without rowid;
create index if not exists freehold_inbox_received on freehold_inbox (consumer, received_at);

-- 2. For each event, in the transaction in which you do what it asks for; `immediate`, so that the
--    one write lock is taken before anything is read. :consumer is who you are, such as 'billing';
--    :event_key is the event's `id`.
--    One row back: the event is new, do the effect. No row: it was seen, do nothing and commit.
begin immediate;
insert into freehold_inbox (consumer, event_key) values (:consumer, :event_key)
on conflict do nothing
returning event_key;
-- ... the effect ...
commit;
-- Acknowledge the message, or answer the webhook with 200, after the commit and never before.

-- 3. If order matters to you: keep the highest `data.sequence` of each hold beside what you know of
--    it, and let only a later one change it. :sequence is `data.sequence` as a number (up to 19
--    digits, sent as text).
create table if not exists hold_seen (
    rule text not null,
    hold_key text not null,
    sequence integer not null,
    type text not null,
    primary key (rule, hold_key)
);
-- No row back: what you have is newer, ignore the event.
insert into hold_seen (rule, hold_key, sequence, type) values (:rule, :hold_key, :sequence, :type)
on conflict (rule, hold_key) do update set sequence = excluded.sequence, type = excluded.type
where hold_seen.sequence < excluded.sequence
returning sequence;

-- 4. Once a day. A forgotten event is new when it comes again: keep keys longer than delivered events
--    can be replayed (30 days by default) and longer than dead ones wait for a person.
delete from freehold_inbox where consumer = :consumer and event_key in (
    select event_key from freehold_inbox
    where consumer = :consumer and received_at < strftime('%Y-%m-%d %H:%M:%f', 'now', '-90 days')
    order by received_at limit 10000);
