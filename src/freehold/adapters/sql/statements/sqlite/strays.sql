-- name: known_strays
-- Purpose: tell which payloads are written down already.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.strays, before writing
-- Index: stray_once
select digest from {s}stray
where queue = :queue and digest in (select value from json_each(:digests))

-- name: add_strays
-- Purpose: write payloads down, or count them once more.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.strays
-- Index: stray_once
insert into {s}stray (queue, digest, raw, byte_count, reason, seen_count, first_seen_at, last_seen_at)
values (:c0, :c1, unhex(:c2), :c3, :c4, :c5, :now, :now)
on conflict (queue, digest) do update
set seen_count = seen_count + excluded.seen_count,
    last_seen_at = max(last_seen_at, excluded.last_seen_at)

-- name: discard_strays
-- Purpose: take strays out of review.
-- Differs: the batch arrives as JSON; the plus keeps the state from choosing the index.
-- Caller: adapters.sql.strays
-- Index: the primary key
update {s}stray set state = 'discarded'
where id in (select value from json_each(:ids)) and +state = 'dead'

-- name: add_delivery_counts
-- Purpose: add to a minute's counts of a process.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.strays
-- Index: the primary key
insert into {s}delivery_count (
    minute_at, process, published_count, unconfirmed_count, delivered_count, redelivered_count,
    passed_over_count, unreadable_count)
values (:c0, :c1, :c2, :c3, :c4, :c5, :c6, :c7)
on conflict (minute_at, process) do update
set published_count = published_count + excluded.published_count,
    unconfirmed_count = unconfirmed_count + excluded.unconfirmed_count,
    delivered_count = delivered_count + excluded.delivered_count,
    redelivered_count = redelivered_count + excluded.redelivered_count,
    passed_over_count = passed_over_count + excluded.passed_over_count,
    unreadable_count = unreadable_count + excluded.unreadable_count
