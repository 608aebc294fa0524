-- name: enqueue
-- Purpose: write open operations for due holds; an identity that is open already stays as it is.
-- Caller: adapters.sql.operations, once a scanned batch
-- Index: operation_identity
insert into {s}operation as o (
    rule, tenant, hold_key, digest, identity, guard, due_at, generation, after_expired,
    state, reason, available_at, found_at, changed_at, tick_id, fingerprint)
select :rule, n.tenant, n.hold_key, n.digest, n.identity, n.guard, n.due_at, n.generation,
       n.after_expired, case when n.dead_reason is null then 'ready' else 'dead' end,
       n.dead_reason, :now, :now, :now, :tick_id, :fingerprint
from unnest(:c0::text[], :c1::text[], :c2::uuid[], :c3::text[], :c4::text[], :c5::timestamptz[],
            :c6::int[], :c7::boolean[], :c8::text[])
     as n (tenant, hold_key, digest, identity, guard, due_at, generation, after_expired, dead_reason)
on conflict (rule, hold_key, digest) do nothing

-- name: rebuild
-- Purpose: give claimed operations the identity, fence and due that another mapping reads.
-- Caller: adapters.sql.operations, once a batch with operations of another mapping
-- Index: the primary key
update {s}operation o
set tenant = n.tenant, digest = n.digest, identity = n.identity, guard = n.guard,
    due_at = n.due_at, fingerprint = :fingerprint, changed_at = :now
from unnest(:c0::bigint[], :c1::text[], :c2::uuid[], :c3::text[], :c4::text[], :c5::timestamptz[])
     as n (id, tenant, digest, identity, guard, due_at)
where o.id = any (array[n.id])

-- name: renumber
-- Purpose: give operations just written the generation that their predecessors leave them.
-- Caller: adapters.sql.operations, once a scanned batch with holds that are due again
-- Index: operation_identity
update {s}operation o
set generation = n.generation, after_expired = n.after_expired,
    state = case when n.dead_reason is null then o.state else 'dead' end,
    reason = coalesce(n.dead_reason, o.reason)
from unnest(:c0::text[], :c1::uuid[], :c2::int[], :c3::boolean[], :c4::text[])
     as n (hold_key, digest, generation, after_expired, dead_reason)
where o.rule = :rule and o.hold_key = n.hold_key and o.digest = n.digest
  and o.generation < n.generation and o.state in ('ready', 'dead')

-- name: past_records
-- Purpose: count earlier generations of the identities that a scan found.
-- Caller: adapters.sql.operations, once a scanned batch
-- Index: record_hold, in the partitions since the oldest due of the batch; none of later months
select r.hold_key, r.digest, max(r.generation), bool_or(r.outcome = 'expired')
from unnest(:keys::text[], :digests::uuid[]) as f (hold_key, digest)
cross join lateral (
    select p.hold_key, p.digest, p.generation, p.outcome from {s}record p
    where p.rule = :rule and p.hold_key = f.hold_key and p.digest = f.digest
      and p.finished_at >= :since and p.finished_at < :now + interval '1 day'
    offset 0) r
group by r.hold_key, r.digest

-- name: claim
-- Purpose: lock claimable operations of holds, oldest first, passing over those of other workers.
-- Caller: adapters.sql.operations, once a batch
-- Index: operation_claim; the ARRAY keeps the limit under any plan (a join may claim more)
select o.id, o.rule, o.tenant, o.hold_key, o.digest, o.due_at, o.generation, o.after_expired,
       o.attempt, o.deferrals, o.lease_token, o.available_at, o.fingerprint
from {s}operation o
where o.ctid = any (array(
    select c.ctid from {s}operation c
    where c.rule = :rule and c.window_until is null and c.state in ('ready', 'retrying', 'deferred')
      and c.available_at >= :floor and c.available_at <= :now
    order by c.available_at, c.id limit :limit for update skip locked))

-- name: still_ready
-- Purpose: read named operations as far as they are claimable, to name them again.
-- Caller: adapters.sql.operations, the dispatcher
-- Index: the primary key; states are excluded, so that operation_claim cannot be proven to serve
select o.id, o.rule, o.digest, o.hold_key, o.due_at, o.available_at, o.attempt + 1
from {s}operation o
where o.id = any (:ids::bigint[]) and o.window_until is null
  and o.state not in ('leased', 'dead', 'discarded') and o.available_at <= :now
order by o.available_at, o.id

-- name: claim_these
-- Purpose: lock named operations as far as they are still claimable, or leased under the token.
-- Caller: adapters.sql.operations, while a batch is bisected and under a lease
-- Index: the primary key
select o.id, o.rule, o.tenant, o.hold_key, o.digest, o.due_at, o.generation, o.after_expired,
       o.attempt, o.deferrals, o.lease_token, o.available_at, o.fingerprint
from {s}operation o
where o.id = any (:ids::bigint[])
  and ((o.state in ('ready', 'retrying', 'deferred') and o.available_at <= :now
        and (o.window_until is null or :with_windows::boolean))
       or (o.state = 'leased' and o.lease_token = :lease_token::bigint))
for update skip locked

-- name: still_leased
-- Purpose: lock named operations as far as they are still leased under the token.
-- Caller: adapters.sql.operations, before customer code runs under a lease
-- Index: the primary key; the other states are named so that operation_leased_until cannot be
-- proven to serve, where all leases of a large installation stand
select o.id from {s}operation o
where o.id = any (:ids::bigint[]) and o.lease_token = :lease_token
  and o.state not in ('ready', 'retrying', 'deferred', 'dead', 'discarded')
for update skip locked

-- name: next_lease_token
-- Purpose: draw a fencing token, larger than any drawn before.
-- Caller: adapters.sql.operations, once a lease
-- Index: none
select nextval('{s}lease_token')

-- name: lease_these
-- Purpose: claim beyond this transaction; an attempt is counted before customer code runs.
-- Caller: adapters.sql.operations, once a leased batch, on rows locked just before
-- Index: the primary key; states are named so that operation_claim cannot be proven to serve
update {s}operation o
set state = 'leased', attempt = o.attempt + 1, leased_until = :until, lease_token = :lease_token,
    changed_at = :now
where o.id = any (:ids::bigint[]) and o.state not in ('leased', 'dead', 'discarded')

-- name: put_off
-- Purpose: defer operations without spending an attempt; one that a lease counted is given back.
-- Caller: adapters.sql.operations, once a batch with deferred rows
-- Index: the primary key
update {s}operation o
set state = 'deferred', reason = p.reason, available_at = p.available_at, deferrals = p.deferrals,
    attempt = o.attempt - case when o.state = 'leased' then 1 else 0 end,
    leased_until = null, changed_at = :now
from unnest(:c0::bigint[], :c1::text[], :c2::timestamptz[], :c3::int[])
     as p (id, reason, available_at, deferrals)
where o.id = any (array[p.id])

-- name: add_tallies
-- Purpose: write the counts of one releasing transaction; ids come back in the order of writing.
-- Caller: adapters.sql.operations, once a batch
-- Index: none
insert into {s}tally (
    rule, tenant, at, expired_count, skipped, lag_counts, lag_max_seconds, redelivery_count)
select t.rule, t.tenant, :now, t.expired_count, t.skipped, t.lag_counts, t.lag_max, t.redelivered
from unnest(:c0::text[], :c1::text[], :c2::int[], :c3::json[], :c4::json[], :c5::float8[],
            :c6::int[]) with ordinality
     as t (rule, tenant, expired_count, skipped, lag_counts, lag_max, redelivered, place)
order by t.place
returning id

-- name: record_skipped
-- Purpose: move operations to the records as skipped, in one statement.
-- Caller: adapters.sql.operations, once a batch with skips
-- Index: the primary key
with moved as (
    delete from {s}operation o
    using unnest(:c0::bigint[], :c1::bigint[], :c2::text[]) as e (id, tally_id, reason)
    where o.id = any (array[e.id])
    returning o.*, e.tally_id, e.reason as skip_reason)
insert into {s}record (
    operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, reason, attempt,
    tick_id, tally_id, found_at, finished_at)
select m.id, m.rule, m.tenant, m.hold_key, m.digest, m.generation, m.due_at, 'skipped',
       m.skip_reason, m.attempt + case when m.state = 'leased' then 0 else 1 end, m.tick_id,
       m.tally_id, m.found_at, :now
from moved m

-- name: tell_skipped
-- Purpose: write the events of operations that are about to end as skipped.
-- Caller: adapters.sql.operations, once a batch with skips, where the rule asks for it
-- Index: the primary key
insert into {s}outbox (
    type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry, state)
select 'hold.skipped.v1', o.id, o.rule, o.tenant, o.hold_key, o.digest, o.generation, o.due_at,
       :now, '{}'::json, json_build_object('reason', e.reason),
       case when exists (select 1 from {s}target where active)
            then 'pending' else 'kept' end
from unnest(:c0::bigint[], :c1::text[]) as e (id, reason)
join {s}operation o on o.id = any (array[e.id])

-- name: lapsed
-- Purpose: lock leases that ended, oldest first.
-- Caller: adapters.sql.operations, once a sweep
-- Index: operation_leased_until
select o.id, o.rule, o.tenant, o.hold_key, o.digest, o.due_at, o.generation, o.after_expired,
       o.attempt, o.deferrals, o.lease_token, o.available_at, o.fingerprint
from {s}operation o
where o.state = 'leased' and o.leased_until < :now
order by o.leased_until limit :limit for update skip locked

-- name: return_lapsed
-- Purpose: make operations of ended leases ready again; the attempt stays counted.
-- Caller: adapters.sql.operations, once a sweep, on rows locked just before
-- Index: operation_leased_until
update {s}operation o
set state = 'ready', available_at = :now, leased_until = null, changed_at = :now,
    reason = 'lease ended'
where o.id = any (:ids::bigint[]) and o.state = 'leased' and o.leased_until < :now

-- name: note_attempts
-- Purpose: keep one row for each failed attempt of a batch.
-- Caller: adapters.sql.operations, when attempts end without a release
-- Index: none
insert into {s}attempt (
    operation_id, attempt, failure_class, failure_code, failure_message, failed_at, lease_token)
select a.id, a.attempt, :failure_class, :failure_code, :failure_message, :now, a.lease_token
from unnest(:c0::bigint[], :c1::int[], :c2::bigint[]) as a (id, attempt, lease_token)

-- name: bury
-- Purpose: make claimed operations dead letters.
-- Caller: adapters.sql.operations
-- Index: the primary key
update {s}operation o
set state = 'dead', reason = :reason, failure_class = :failure_class,
    failure_code = :failure_code, failure_message = :failure_message, leased_until = null,
    changed_at = :now
where o.id = any (:ids::bigint[]) and o.state not in ('dead', 'discarded')

-- name: open_of_rule
-- Purpose: page through operations in review, in id order.
-- Caller: adapters.sql.reviews, the sweep and batch reviews
-- Index: operation_review
select o.id from {s}operation o
where o.rule = :rule and o.state in ('dead', 'discarded') and o.id > :after_id
order by o.id limit :limit

-- name: requeue
-- Purpose: give dead or discarded operations a fresh count of attempts; the history stays.
-- Caller: adapters.sql.reviews
-- Index: the primary key
update {s}operation o
set state = 'ready', reason = 'requeued', attempt = 0, deferrals = 0, available_at = :now,
    after_expired = false, changed_at = :now
where o.id = any (:ids::bigint[]) and o.state in ('dead', 'discarded') and o.due_at is not null
returning o.id

-- name: discard
-- Purpose: set dead operations aside; they stay open, and visible.
-- Caller: adapters.sql.reviews
-- Index: the primary key
update {s}operation o set state = 'discarded', reason = :reason, changed_at = :now
where o.id = any (:ids::bigint[]) and o.state = 'dead'
returning o.id

-- name: close
-- Purpose: end operations in review whose hold needs nothing any more.
-- Caller: adapters.sql.reviews, the sweep
-- Index: the primary key
with moved as (
    delete from {s}operation o
    where o.id = any (:ids::bigint[]) and o.state in ('dead', 'discarded')
    returning o.*)
insert into {s}record (
    operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, reason, attempt,
    tick_id, tally_id, found_at, finished_at)
select m.id, m.rule, m.tenant, m.hold_key, m.digest, m.generation, m.due_at, 'closed', :reason,
       m.attempt, m.tick_id, null, m.found_at, :now
from moved m

-- name: read_in_review
-- Purpose: read named operations as far as they are in review.
-- Caller: adapters.sql.reviews
-- Index: the primary key
select id, rule, tenant, hold_key, digest, due_at, generation, state, reason, attempt,
       failure_class, failure_code, failure_message, found_at, changed_at, fingerprint,
       window_until is not null
from {s}operation
where id = any (:ids::bigint[]) and state in ('dead', 'discarded')
order by id
