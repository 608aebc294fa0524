-- name: known_strays
-- Purpose: tell which payloads are written down already.
-- Caller: adapters.sql.strays, before writing
-- Index: stray_once
select digest from {s}stray where queue = :queue and digest = any (:digests::text[])

-- name: add_strays
-- Purpose: write payloads down, or count them once more.
-- Caller: adapters.sql.strays; the rows come in the order of their digests
-- Index: stray_once
insert into {s}stray as s (queue, digest, raw, byte_count, reason, seen_count, first_seen_at, last_seen_at)
select n.queue, n.digest, decode(n.raw, 'hex'), n.byte_count, n.reason, n.seen_count, :now, :now
from unnest(:c0::text[], :c1::text[], :c2::text[], :c3::bigint[], :c4::text[], :c5::bigint[])
     as n (queue, digest, raw, byte_count, reason, seen_count)
on conflict (queue, digest) do update
set seen_count = s.seen_count + excluded.seen_count,
    last_seen_at = greatest(s.last_seen_at, excluded.last_seen_at)

-- name: discard_strays
-- Purpose: take strays out of review.
-- Caller: adapters.sql.strays
-- Index: the primary key
update {s}stray set state = 'discarded' where id = any (:ids::bigint[]) and state = 'dead'

-- name: add_delivery_counts
-- Purpose: add to a minute's counts of a process.
-- Caller: adapters.sql.strays
-- Index: the primary key
insert into {s}delivery_count as d (
    minute_at, process, published_count, unconfirmed_count, delivered_count, redelivered_count,
    passed_over_count, unreadable_count)
select * from unnest(:c0::timestamptz[], :c1::text[], :c2::bigint[], :c3::bigint[], :c4::bigint[],
                     :c5::bigint[], :c6::bigint[], :c7::bigint[])
on conflict (minute_at, process) do update
set published_count = d.published_count + excluded.published_count,
    unconfirmed_count = d.unconfirmed_count + excluded.unconfirmed_count,
    delivered_count = d.delivered_count + excluded.delivered_count,
    redelivered_count = d.redelivered_count + excluded.redelivered_count,
    passed_over_count = d.passed_over_count + excluded.passed_over_count,
    unreadable_count = d.unreadable_count + excluded.unreadable_count
