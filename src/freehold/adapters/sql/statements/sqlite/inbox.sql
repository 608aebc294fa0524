-- name: inbox_add
-- Purpose: write one key if the consumer sees it for the first time; the row count says so.
-- Caller: adapters.sql.inbox, in the consumer's transaction; the slot is the consumer's table
-- Index: its primary key
-- Differs: one key at a time, since a statement costs no round trip
insert into {inbox} (consumer, event_key) values (:consumer, :key) on conflict do nothing

-- name: inbox_prune
-- Purpose: forget a consumer's oldest keys, some at a time.
-- Caller: adapters.sql.inbox, in the consumer's transaction
-- Index: (consumer, received_at)
-- Differs: the table has no row address, and writers never overlap
delete from {inbox} where consumer = :consumer and event_key in (
    select i.event_key from {inbox} i
    where i.consumer = :consumer and i.received_at < :before
    order by i.received_at limit :limit)
