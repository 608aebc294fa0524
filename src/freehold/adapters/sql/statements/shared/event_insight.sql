-- name: event_bounds
-- Purpose: find the first and the last event.
-- Caller: adapters.sql.event_insight, adapters.sql.forwards
-- Index: the primary key, from both ends
select (select min(id) from {s}outbox), (select max(id) from {s}outbox)

-- name: event_from
-- Purpose: read when the first event at or behind an id was made.
-- Caller: adapters.sql.event_insight, in search of an instant
-- Index: the primary key
select e.id, e.at from {s}outbox e where e.id >= :id order by e.id limit 1

-- name: walk_events
-- Purpose: read a range of events backwards, those of a rule, tenant or hold only.
-- Caller: adapters.sql.event_insight, for lists
-- Index: the primary key
select e.id, e.state, e.routed_at, e.published_at,
       e.id, e.type, e.rule, e.tenant, e.hold_key, e.digest, e.generation, e.due_at, e.at,
       e.tokens, e.carry
from {s}outbox e
where e.id > :after and e.id <= :last and e.at >= :since
  and (cast(:state as text) is null or e.state = :state)
  and (cast(:rule as text) is null or e.rule = :rule)
  and (cast(:tenant as text) is null or e.tenant = :tenant)
  and (cast(:hold_key as text) is null or e.hold_key = :hold_key)
order by e.id desc limit :limit

-- name: look_up_event
-- Purpose: find an event by its key in a range.
-- Caller: adapters.sql.event_insight, for events show
-- Index: the primary key
select e.id from {s}outbox e
where e.id > :after and e.id <= :last and e.digest = :digest and e.generation = :generation
  and e.type = :type
order by e.id desc limit 1

-- name: dead_events
-- Purpose: page through what is dead at a target.
-- Caller: adapters.sql.event_insight, for lists
-- Index: forward_dead
select f.event_id from {s}forward f
where f.target = :target and f.state = 'dead' and f.event_id > :after
order by f.event_id limit :limit

-- name: forward_failures
-- Purpose: read the failed hand-overs of one event.
-- Caller: adapters.sql.event_insight, for events show
-- Index: the primary key
select target, replay_count, attempt, ended_at, failure_class, code, reason
from {s}forward_attempt where event_id = :id
order by ended_at, target, replay_count, attempt

-- name: owed_depth
-- Purpose: count what a target is owed by state, the longest available first, up to a limit.
-- Caller: adapters.sql.event_insight, for status
-- Index: forward_claim
select w.state, count(*), min(w.owed_at)
from (
    select f.state, f.owed_at from {s}forward f
    where f.target = :target and f.state in ('ready', 'retrying')
    order by f.available_at, f.event_id limit :limit) w
group by w.state

-- name: leased_forward_depth
-- Purpose: count forwards in hand by target, up to a limit for all targets.
-- Caller: adapters.sql.event_insight, for status
-- Index: forward_leased_until
select l.target, count(*), min(l.owed_at)
from (
    select f.target, f.owed_at from {s}forward f
    where f.state = 'leased' order by f.leased_until limit :limit) l
group by l.target

-- name: dead_depth
-- Purpose: count what is dead at a target, up to a limit.
-- Caller: adapters.sql.event_insight, for status
-- Index: forward_dead
select count(*), min(d.ended_at)
from (
    select f.ended_at from {s}forward f
    where f.target = :target and f.state = 'dead' order by f.event_id limit :limit) d
