-- name: inbox_add
-- Purpose: write the keys that a consumer sees for the first time; return their places in the
-- batch. A key that another transaction has written and not yet ended is waited for. The order by
-- key keeps two consumers with overlapping batches from waiting for each other.
-- Caller: adapters.sql.inbox, in the consumer's transaction; the slot is the consumer's table
-- Index: its primary key
with given as materialized (
    select g.event_key, min(g.place) as place
    from unnest(:keys::text[]) with ordinality as g (event_key, place)
    group by g.event_key
), added as (
    insert into {inbox} as i (consumer, event_key)
    select :consumer, g.event_key from given g order by g.event_key
    on conflict do nothing
    returning i.event_key
)
select g.place from added a join given g on g.event_key = a.event_key order by g.place

-- name: inbox_prune
-- Purpose: forget a consumer's oldest keys, some at a time.
-- Caller: adapters.sql.inbox, in the consumer's transaction
-- Index: (consumer, received_at)
with gone as (
    delete from {inbox} where ctid = any(array(
        select i.ctid from {inbox} i
        where i.consumer = :consumer and i.received_at < :before
        order by i.received_at limit :limit for update skip locked))
    returning 1
)
select count(*) from gone
