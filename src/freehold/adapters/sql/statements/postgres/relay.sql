-- name: read_in_order
-- Purpose: keep the planner from gathering all that waits and sorting it, which costs by what waits;
--          statistics from before a backlog make that look cheap.
-- Caller: adapters.sql.relay, forwards and event_insight, before what takes the first of many
-- Index: none
select set_config('enable_bitmapscan', 'off', true)

-- name: claim_unrouted
-- Purpose: lock waiting events whose targets are not worked out, passing over those of others.
-- Caller: adapters.sql.relay, once a batch
-- Index: outbox_unrouted; ordered by both of its columns, since one of all waiting events has the id
select e.id, e.type, e.rule, e.tenant from {s}outbox e
where e.state = 'pending' and e.routed_at is null
order by e.routed_at, e.id limit :limit for no key update skip locked

-- name: add_forwards
-- Purpose: write what events owe to targets; what is there stays.
-- Caller: adapters.sql.relay, once a routed batch
-- Index: the primary key
insert into {s}forward (event_id, target, state, owed_at, available_at, changed_at)
select n.event_id, n.target, 'ready', :now, :now, :now
from unnest(:c0::bigint[], :c1::text[]) as n (event_id, target)
on conflict (event_id, target) do nothing

-- name: mark_routed
-- Purpose: note that the targets of events are worked out.
-- Caller: adapters.sql.relay, on rows locked just before
-- Index: the primary key; one value at a time, or the index of unrouted ones would be read whole
update {s}outbox e set routed_at = :now where e.id = any (:ids::bigint[])

-- name: claim_forwards
-- Purpose: lock what a target is owed, the longest available first, passing over those of others.
-- Caller: adapters.sql.relay, once a batch
-- Index: forward_claim; the ARRAY keeps the limit under any plan, and any() keeps the event's join
--        to its primary key
select f.event_id, f.attempt, f.replay_count, f.owed_at,
       e.id, e.type, e.rule, e.tenant, e.hold_key, e.digest, e.generation, e.due_at, e.at,
       e.tokens, e.carry
from {s}forward f left join {s}outbox e on e.id = any (array[f.event_id])
where f.ctid = any (array(
    select c.ctid from {s}forward c
    where c.target = :target and c.state in ('ready', 'retrying') and c.available_at <= :now
    order by c.available_at, c.event_id limit :limit for no key update skip locked))
order by f.available_at, f.event_id

-- name: lease_forwards
-- Purpose: claim beyond this transaction.
-- Caller: adapters.sql.relay, on rows locked just before
-- Index: the primary key; states are named so that forward_claim cannot be proven to serve
update {s}forward f
set state = 'leased', leased_until = :until, lease_token = :lease_token,
    first_tried_at = coalesce(f.first_tried_at, :now), changed_at = :now
where f.event_id = any (:ids::bigint[]) and f.target = :target
  and f.state not in ('leased', 'dead', 'discarded', 'delivered')

-- name: discard_orphans
-- Purpose: discard forwards whose event is gone.
-- Caller: adapters.sql.relay, on rows locked just before
-- Index: the primary key
update {s}forward f
set state = 'discarded', reason = :reason, ended_at = :now, changed_at = :now
where f.event_id = any (:ids::bigint[]) and f.target = :target
  and f.state not in ('leased', 'dead', 'discarded', 'delivered')

-- name: lock_events
-- Purpose: lock events in the order of ids, so that of two that end their last forwards the later
--          one sees both.
-- Caller: adapters.sql.relay, before forwards are settled
-- Index: the primary key
select e.id from {s}outbox e where e.id = any (:ids::bigint[]) order by e.id for no key update

-- name: settle_delivered
-- Purpose: end forwards that arrived, fenced by their leases.
-- Caller: adapters.sql.relay
-- Index: the primary key; any() keeps the join from reading the table, and the other states are
--        named so that forward_leased_until cannot be proven to serve
update {s}forward f
set state = 'delivered', attempt = f.attempt + 1, leased_until = null, reason = null,
    ended_at = :now, changed_at = :now
from unnest(:c0::bigint[], :c1::text[], :c2::bigint[]) as d (event_id, target, lease_token)
where f.event_id = any (array[d.event_id]) and f.target = any (array[d.target])
  and f.lease_token = any (array[d.lease_token])
  and f.state not in ('ready', 'retrying', 'dead', 'discarded', 'delivered')

-- name: publish_ended
-- Purpose: publish waiting events that were routed and of which nothing is owed any more.
-- Caller: adapters.sql.relay, after forwards were written or ended
-- Index: the primary keys
update {s}outbox e set state = 'published', published_at = greatest(:now, e.at)
where e.id = any (:ids::bigint[]) and e.state = 'pending' and e.routed_at is not null
  and not exists (select 1 from {s}forward f
                  where f.event_id = any (array[e.id])
                    and f.state in ('ready', 'leased', 'retrying', 'dead'))

-- name: add_forward_attempts
-- Purpose: keep one row for each failed attempt at a forward.
-- Caller: adapters.sql.relay
-- Index: the primary key
insert into {s}forward_attempt as a (
    event_id, target, replay_count, attempt, ended_at, failure_class, code, reason)
select n.event_id, n.target, n.replay_count, n.attempt, :now, n.failure_class, n.code, n.reason
from unnest(:c0::bigint[], :c1::text[], :c2::int[], :c3::int[], :c4::text[], :c5::text[],
            :c6::text[])
     as n (event_id, target, replay_count, attempt, failure_class, code, reason)
on conflict (event_id, target, replay_count, attempt) do update set
    ended_at = excluded.ended_at, failure_class = excluded.failure_class, code = excluded.code,
    reason = excluded.reason

-- name: renew_forwards
-- Purpose: prolong leases, fenced by their tokens.
-- Caller: adapters.sql.relay
-- Index: the primary key; see settle_delivered
update {s}forward f set leased_until = :until, changed_at = :now
from unnest(:c0::bigint[], :c1::text[], :c2::bigint[]) as d (event_id, target, lease_token)
where f.event_id = any (array[d.event_id]) and f.target = any (array[d.target])
  and f.lease_token = any (array[d.lease_token]) and f.leased_until > :now
  and f.state not in ('ready', 'retrying', 'dead', 'discarded', 'delivered')

-- name: ended_forward_leases
-- Purpose: lock forwards whose lease is over, passing over those that others have in hand.
-- Caller: adapters.sql.relay, once a sweep
-- Index: forward_leased_until
select f.event_id, f.target, f.replay_count, f.attempt
from {s}forward f
where f.state = 'leased' and f.leased_until <= :now
order by f.leased_until limit :limit for no key update skip locked

-- name: take_back_forwards
-- Purpose: make forwards ready whose lease is over, an attempt counted.
-- Caller: adapters.sql.relay, on rows locked just before
-- Index: the primary key; see settle_delivered
update {s}forward f
set state = 'ready', attempt = f.attempt + 1, leased_until = null, available_at = :now,
    failure_class = 'transient', reason = :reason, changed_at = :now
from unnest(:c0::bigint[], :c1::text[]) as d (event_id, target)
where f.event_id = any (array[d.event_id]) and f.target = any (array[d.target])
  and f.state not in ('ready', 'retrying', 'dead', 'discarded', 'delivered')

-- name: waiting_page
-- Purpose: page through waiting events, to look for one that nothing is owed of any more.
-- Caller: adapters.sql.relay, once a sweep
-- Index: outbox_pending
select e.id from {s}outbox e where e.state = 'pending' and e.id > :after_id order by e.id limit :limit
