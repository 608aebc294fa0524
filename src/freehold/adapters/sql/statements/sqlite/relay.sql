-- name: read_in_order
-- Purpose: keep the planner from gathering all that waits and sorting it.
-- Differs: nothing to do; an index is read in its order.
-- Caller: adapters.sql.relay, forwards and event_insight, before what takes the first of many
-- Index: none
select 1

-- name: claim_unrouted
-- Purpose: read waiting events whose targets are not worked out.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.relay, once a batch
-- Index: outbox_unrouted, by its name: an older one of all waiting events is ordered alike
select e.id, e.type, e.rule, e.tenant from {s}outbox e indexed by {s}outbox_unrouted
where e.state = 'pending' and e.routed_at is null
order by e.id limit :limit

-- name: add_forwards
-- Purpose: write what an event owes to a target; what is there stays.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.relay, once a routed batch
-- Index: the primary key
insert into {s}forward (event_id, target, state, owed_at, available_at, changed_at)
values (:c0, :c1, 'ready', :now, :now, :now)
on conflict (event_id, target) do nothing

-- name: mark_routed
-- Purpose: note that the targets of events are worked out.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.relay
-- Index: the primary key
update {s}outbox set routed_at = :now where id in (select value from json_each(:ids))

-- name: claim_forwards
-- Purpose: read what a target is owed, the longest available first.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.relay, once a batch
-- Index: forward_claim, and the primary key of outbox
select f.event_id, f.attempt, f.replay_count, f.owed_at,
       e.id, e.type, e.rule, e.tenant, e.hold_key, e.digest, e.generation, e.due_at, e.at,
       e.tokens, e.carry
from {s}forward f left join {s}outbox e on e.id = f.event_id
where f.target = :target and f.state in ('ready', 'retrying') and f.available_at <= :now
order by f.available_at, f.event_id limit :limit

-- name: lease_forwards
-- Purpose: claim beyond this transaction.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.relay, on rows read just before
-- Index: the primary key; the plus keeps the state from choosing another
update {s}forward
set state = 'leased', leased_until = :until, lease_token = :lease_token,
    first_tried_at = coalesce(first_tried_at, :now), changed_at = :now
where event_id in (select value from json_each(:ids)) and target = :target
  and +state in ('ready', 'retrying')

-- name: discard_orphans
-- Purpose: discard forwards whose event is gone.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.relay, on rows read just before
-- Index: the primary key; see lease_forwards
update {s}forward
set state = 'discarded', reason = :reason, ended_at = :now, changed_at = :now
where event_id in (select value from json_each(:ids)) and target = :target
  and +state in ('ready', 'retrying')

-- name: lock_events
-- Purpose: read the events whose forwards are settled.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.relay, before forwards are settled
-- Index: the primary key
select e.id from {s}outbox e where e.id in (select value from json_each(:ids)) order by e.id

-- name: settle_delivered
-- Purpose: end a forward that arrived, fenced by its lease.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.relay
-- Index: the primary key; see lease_forwards
update {s}forward
set state = 'delivered', attempt = attempt + 1, leased_until = null, reason = null,
    ended_at = :now, changed_at = :now
where event_id = :c0 and target = :c1 and lease_token = :c2 and +state = 'leased'

-- name: publish_ended
-- Purpose: publish waiting events that were routed and of which nothing is owed any more.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.relay, after forwards were written or ended
-- Index: the primary keys
update {s}outbox as e set state = 'published', published_at = max(:now, e.at)
where e.id in (select value from json_each(:ids)) and +e.state = 'pending'
  and e.routed_at is not null
  and not exists (select 1 from {s}forward f
                  where f.event_id = e.id and +f.state in ('ready', 'leased', 'retrying', 'dead'))

-- name: add_forward_attempts
-- Purpose: keep one row for a failed attempt at a forward.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.relay
-- Index: the primary key
insert into {s}forward_attempt (
    event_id, target, replay_count, attempt, ended_at, failure_class, code, reason)
values (:c0, :c1, :c2, :c3, :now, :c4, :c5, :c6)
on conflict (event_id, target, replay_count, attempt) do update set
    ended_at = excluded.ended_at, failure_class = excluded.failure_class, code = excluded.code,
    reason = excluded.reason

-- name: renew_forwards
-- Purpose: prolong a lease, fenced by its token.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.relay
-- Index: the primary key; see lease_forwards
update {s}forward set leased_until = :until, changed_at = :now
where event_id = :c0 and target = :c1 and lease_token = :c2 and +state = 'leased'
  and +leased_until > :now

-- name: ended_forward_leases
-- Purpose: read forwards whose lease is over.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.relay, once a sweep
-- Index: forward_leased_until
select f.event_id, f.target, f.replay_count, f.attempt
from {s}forward f
where f.state = 'leased' and f.leased_until <= :now
order by f.leased_until limit :limit

-- name: take_back_forwards
-- Purpose: make a forward ready whose lease is over, an attempt counted.
-- Differs: one row an execution (executemany).
-- Caller: adapters.sql.relay, on rows read just before
-- Index: the primary key; see lease_forwards
update {s}forward
set state = 'ready', attempt = attempt + 1, leased_until = null, available_at = :now,
    failure_class = 'transient', reason = :reason, changed_at = :now
where event_id = :c0 and target = :c1 and +state = 'leased'

-- name: waiting_page
-- Purpose: page through waiting events, to look for one that nothing is owed of any more.
-- Differs: the index is named, for statistics of a time when most events waited prefer the key.
-- Caller: adapters.sql.relay, once a sweep
-- Index: outbox_pending
select e.id from {s}outbox e indexed by {s}outbox_pending
where e.state = 'pending' and e.id > :after_id order by e.id limit :limit
