-- name: open_strays
-- Purpose: page through strays in review.
-- Caller: adapters.sql.strays
-- Index: stray_dead, or the primary key: both are in the order of ids
select id, queue, digest, raw, byte_count, reason, seen_count, first_seen_at, last_seen_at
from {s}stray where state = 'dead' and id > :after_id order by id limit :limit

-- name: count_open_strays
-- Purpose: count strays in review, and stop at a limit.
-- Caller: adapters.sql.strays
-- Index: stray_dead
select count(*) from (select id from {s}stray where state = 'dead' limit :limit) as s

-- name: find_stray
-- Purpose: read one stray in review.
-- Caller: adapters.sql.strays
-- Index: the primary key, or stray_dead
select id, queue, digest, raw, byte_count, reason, seen_count, first_seen_at, last_seen_at
from {s}stray where id = :id and state = 'dead'

-- name: delivery_counts
-- Purpose: add up what all processes published and took since an instant.
-- Caller: adapters.sql.strays
-- Index: the primary key
select coalesce(sum(published_count), 0), coalesce(sum(unconfirmed_count), 0),
       coalesce(sum(delivered_count), 0), coalesce(sum(redelivered_count), 0),
       coalesce(sum(passed_over_count), 0), coalesce(sum(unreadable_count), 0)
from {s}delivery_count where minute_at >= :since
