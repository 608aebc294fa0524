-- name: find_dead_forwards
-- Purpose: name what is dead at a target.
-- Caller: adapters.sql.forwards, for a person's act
-- Index: forward_dead
select f.event_id from {s}forward f
where f.target = :target and f.state = 'dead' order by f.event_id limit :limit

-- name: find_owed_forwards
-- Purpose: name what waits for a target, the longest available first.
-- Caller: adapters.sql.forwards, for a person's act on a target that left
-- Index: forward_claim
select f.event_id from {s}forward f
where f.target = :target and f.state in ('ready', 'retrying')
order by f.available_at, f.event_id limit :limit

-- name: replayable_events
-- Purpose: read a range of events, without those that have no route or are owed to the target now.
-- Caller: adapters.sql.forwards, for a person's replay
-- Index: the primary keys; the count keeps the subquery apart for each event
select e.id, e.type, e.rule, e.tenant
from {s}outbox e
where e.id > :after and e.id <= :last and e.at >= :since and e.at < :until
  and (cast(:rule as text) is null or e.rule = :rule)
  and (cast(:hold_key as text) is null or e.hold_key = :hold_key)
  and (e.state <> 'pending' or e.routed_at is not null)
  and (select count(*) from {s}forward f
       where f.event_id = e.id and f.target = :target
         and f.state in ('ready', 'leased', 'retrying', 'dead')) = 0
order by e.id limit :limit
