-- name: events_by_ids
-- Purpose: read events.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.event_insight
-- Index: the primary key
select e.id, e.state, e.routed_at, e.published_at,
       e.id, e.type, e.rule, e.tenant, e.hold_key, e.digest, e.generation, e.due_at, e.at,
       e.tokens, e.carry
from {s}outbox e where e.id in (select value from json_each(:ids)) order by e.id

-- name: forwards_of_events
-- Purpose: read what of events was owed to whom.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.event_insight, for lists and why
-- Index: the primary key
select f.event_id, f.target, f.state, f.attempt, f.replay_count, f.owed_at, f.available_at,
       f.leased_until, f.reason, f.ended_at
from {s}forward f where f.event_id in (select value from json_each(:ids))
order by f.event_id, f.target

-- name: unrouted_depth
-- Purpose: count waiting events whose targets are not worked out, up to a limit.
-- Differs: the index is named, as one of all waiting events is ordered alike.
-- Caller: adapters.sql.event_insight, for status
-- Index: outbox_unrouted
select count(*) from (
    select e.id from {s}outbox e indexed by {s}outbox_unrouted
    where e.state = 'pending' and e.routed_at is null order by e.id limit :limit) u
