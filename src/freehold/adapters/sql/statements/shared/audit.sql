-- name: expired_without_event
-- Purpose: find expired records whose event is missing.
-- Caller: adapters.sql.audit
-- Index: outbox_event
select r.rule, r.hold_key, r.operation_id, 'the record has no event hold.expired.v1'
from {s}record r
where r.outcome = 'expired' and r.finished_at >= :since
  and not exists (select 1 from {s}outbox e
                  where e.operation_id = r.operation_id and e.type = 'hold.expired.v1')
limit :limit

-- name: event_without_expired
-- Purpose: find events whose record is missing, or says something else.
-- Caller: adapters.sql.audit
-- Index: record_hold
select e.rule, e.hold_key, e.operation_id, 'the event ' || e.id || ' has no expired record like it'
from {s}outbox e
where e.type = 'hold.expired.v1' and e.at >= :since
  and not exists (select 1 from {s}record r
                  where r.rule = e.rule and r.hold_key = e.hold_key
                    and r.operation_id = e.operation_id and r.outcome = 'expired'
                    and r.digest = e.digest and r.generation = e.generation
                    and r.finished_at = e.at and r.tenant is not distinct from e.tenant)
limit :limit

-- name: identity_ended_twice
-- Purpose: find generations of one identity that ended more than once; beside a straight release
-- its operation may end too, as skipped or closed.
-- Caller: adapters.sql.audit
-- Index: none; groups the whole table
select r.rule, r.hold_key, min(r.operation_id),
       'generation ' || r.generation || ' ended ' || count(*) || ' times'
from {s}record r where r.finished_at >= :since
group by r.rule, r.hold_key, r.digest, r.generation
having count(*) > 1 + max(case when r.outcome = 'expired' and r.reason = 'straight' then 1 else 0 end)
    or sum(case when r.outcome = 'expired' then 1 else 0 end) > 1
limit :limit

-- name: operation_ended_twice
-- Purpose: find operations with more than one record.
-- Caller: adapters.sql.audit
-- Index: none; groups the whole table
select min(r.rule), min(r.hold_key), r.operation_id, 'the operation has ' || count(*) || ' records'
from {s}record r where r.finished_at >= :since
group by r.operation_id having count(*) > 1
limit :limit

-- name: open_and_ended
-- Purpose: find open operations that ended already; one whose hold was released straight is to end.
-- Caller: adapters.sql.audit
-- Index: record_hold
select o.rule, o.hold_key, o.id,
       'open as ' || o.state || ' in generation ' || o.generation || ', and ended already'
from {s}operation o
where exists (select 1 from {s}record r
              where r.rule = o.rule and r.hold_key = o.hold_key
                and (r.operation_id = o.id
                     or (r.digest = o.digest and r.generation >= o.generation
                         and (r.generation > o.generation or r.outcome <> 'expired'
                              or r.reason is distinct from 'straight'))))
limit :limit

-- name: event_told_twice
-- Purpose: find events that an operation left more than once.
-- Caller: adapters.sql.audit
-- Index: outbox_event
select min(e.rule), min(e.hold_key), e.operation_id, count(*) || ' events of type ' || e.type
from {s}outbox e where e.at >= :since
group by e.operation_id, e.type having count(*) > 1
limit :limit

-- name: attempts_over_policy
-- Purpose: find open operations that were tried more often than the policy allows.
-- Caller: adapters.sql.audit
-- Index: none
select o.rule, o.hold_key, o.id,
       'attempt ' || o.attempt || ', and ' || o.state
from {s}operation o
where o.rule = :rule
  and (o.attempt > :attempts_max
       or (o.attempt = :attempts_max and o.state in ('ready', 'retrying', 'deferred')))
limit :limit

-- name: recorded_attempts_over_policy
-- Purpose: find records that took more attempts than the policy allows.
-- Caller: adapters.sql.audit
-- Index: record_hold
select r.rule, r.hold_key, r.operation_id, 'ended with attempt ' || r.attempt
from {s}record r
where r.rule = :rule and r.attempt > :attempts_max and r.finished_at >= :since
limit :limit

-- name: dead_without_reason
-- Purpose: find operations in review that do not say why.
-- Caller: adapters.sql.audit
-- Index: operation_review
select o.rule, o.hold_key, o.id, 'it is ' || o.state || ' without a reason'
from {s}operation o
where o.state in ('dead', 'discarded') and coalesce(o.reason, '') = ''
limit :limit

-- name: lease_token_fell
-- Purpose: find attempts written under an older lease than the attempt before them.
-- Caller: adapters.sql.audit
-- Index: attempt_operation
select o.rule, o.hold_key, a.operation_id,
       'an attempt under lease token ' || a.lease_token || ' came after one under ' || a.before
from (
    select t.operation_id, t.lease_token,
           lag(t.lease_token) over (partition by t.operation_id order by t.failed_at, t.attempt) as before
    from {s}attempt t where t.lease_token is not null and t.failed_at >= :since) a
left join {s}operation o on o.id = a.operation_id
where a.lease_token < a.before
limit :limit

-- name: leased_without_token
-- Purpose: find leased operations without a fencing token.
-- Caller: adapters.sql.audit
-- Index: operation_leased_until
select o.rule, o.hold_key, o.id, 'leased without a lease token'
from {s}operation o where o.state = 'leased' and o.lease_token is null
limit :limit

-- name: lease_not_returned
-- Purpose: find leases that ended and that no sweep took back.
-- Caller: adapters.sql.audit
-- Index: operation_leased_until
select o.rule, o.hold_key, o.id, 'its lease ended at ' || o.leased_until
from {s}operation o where o.state = 'leased' and o.leased_until < :lapsed_before
limit :limit

-- name: ready_not_taken
-- Purpose: find operations of an active rule that wait longer than the promise.
-- Caller: adapters.sql.audit
-- Index: operation_claim
select o.rule, o.hold_key, o.id, o.state || ' since ' || o.available_at
from {s}operation o
where o.rule = :rule and o.state in ('ready', 'retrying', 'deferred')
  and o.available_at < :promised_before and o.due_at < :due_before
  and exists (select 1 from {s}rule_state s where s.rule = o.rule and s.condition = 'active')
limit :limit

-- name: event_not_leaving
-- Purpose: find events that could have left within the promise: nobody worked out who gets them,
--          nothing is owed of them any more, or a target waits for them that was neither paused nor
--          failing, nor changed, within it. A pause that is over by its own end keeps its row, and
--          is none. What is dead for a target waits for a person.
-- Caller: adapters.sql.audit
-- Index: outbox_pending, the primary key of forward
select e.rule, e.hold_key, e.operation_id, 'the event ' || e.id || ' waits since ' || e.at
from {s}outbox e
where e.state = 'pending' and e.rule = :rule and e.at < :promised_before
  and not exists (select 1 from {s}pause p
                  where p.role = 'relay' and p.rule is null and p.tenant is null
                    and (p.ended_at is null or p.ended_at >= :promised_before)
                    and (p.paused_until is null or p.paused_until > :promised_before))
  and (e.routed_at is null
       or not exists (select 1 from {s}forward o
                      where o.event_id = e.id and o.state in ('ready', 'leased', 'retrying', 'dead'))
       or exists (select 1 from {s}forward f join {s}target t on t.name = f.target
                  where f.event_id = e.id and f.state in ('ready', 'retrying')
                    and f.available_at < :promised_before and t.active and t.failing_since is null
                    and t.changed_at < :promised_before
                    and not exists (select 1 from {s}target_pause q
                                    where q.target = t.name
                                      and (q.ended_at is null or q.ended_at >= :promised_before)
                                      and (q.paused_until is null
                                           or q.paused_until > :promised_before))))
limit :limit

-- name: event_left_wrongly
-- Purpose: find events whose state, instant of publishing and forwards disagree; what is told again
--          is no disagreement.
-- Caller: adapters.sql.audit
-- Index: the primary key of forward
select e.rule, e.hold_key, e.operation_id,
       'the event ' || e.id || ' is ' || e.state || ' with a wrong published_at, or is owed still'
from {s}outbox e
where e.at >= :since
  and ((e.state = 'published') <> (e.published_at is not null) or e.published_at < e.at
       or (e.state <> 'pending'
           and exists (select 1 from {s}forward f
                       where f.event_id = e.id and f.replay_count = 0
                         and f.state in ('ready', 'leased', 'retrying', 'dead'))))
limit :limit

-- name: forward_of_nothing
-- Purpose: find forwards that are open and whose event is gone.
-- Caller: adapters.sql.audit
-- Index: the primary key of outbox
select null, null, null, 'the event ' || f.event_id || ' is gone and owed to ' || f.target
from {s}forward f
where f.state in ('ready', 'leased', 'retrying', 'dead')
  and not exists (select 1 from {s}outbox e where e.id = f.event_id)
limit :limit

-- name: dead_forward_without_reason
-- Purpose: find events that are dead for a target and do not say why.
-- Caller: adapters.sql.audit
-- Index: forward_dead
select null, null, null, 'the event ' || f.event_id || ' is dead for ' || f.target || ' without a reason'
from {s}forward f where f.state = 'dead' and coalesce(f.reason, '') = ''
limit :limit

-- name: forward_leased_without_token
-- Purpose: find leased forwards without a fencing token.
-- Caller: adapters.sql.audit
-- Index: forward_leased_until
select null, null, null, 'the event ' || f.event_id || ' is leased for ' || f.target || ' without a lease token'
from {s}forward f where f.state = 'leased' and f.lease_token is null
limit :limit

-- name: forward_lease_not_returned
-- Purpose: find leases of forwards that ended and that no sweep took back.
-- Caller: adapters.sql.audit
-- Index: forward_leased_until
select null, null, null, 'the lease of the event ' || f.event_id || ' for ' || f.target || ' ended at ' || f.leased_until
from {s}forward f where f.state = 'leased' and f.leased_until < :lapsed_before
limit :limit

-- name: tick_not_finished
-- Purpose: find runs that began long ago, never finished and have no successor.
-- Caller: adapters.sql.audit
-- Index: tick_unfinished, tick_once
select t.schedule, null, null, 'the run of ' || t.logical_time || ' by ' || t.runner || ' never finished'
from {s}tick t
where t.schedule = :rule and t.finished_at is null and t.started_at < :stale_before
  and (:rolled_up = 0
       or not exists (select 1 from {s}tick n
                      where n.schedule = t.schedule and n.logical_time > t.logical_time
                        and n.finished_at is not null))
limit :limit

-- name: record_without_tally
-- Purpose: find records that no tally counts.
-- Caller: adapters.sql.audit
-- Index: none
select r.rule, r.hold_key, r.operation_id, 'the ' || r.outcome || ' record has no tally'
from {s}record r
where r.tally_id is null and r.outcome <> 'closed' and r.finished_at >= :since
limit :limit

-- name: tenant_of_operation
-- Purpose: find open operations whose tenant is not their row's; keys that are none are left out first.
-- Caller: adapters.sql.audit
-- Index: the customer's primary key
with o as materialized (
    select p.id, p.rule, p.hold_key, p.identity, p.tenant from {s}operation p
    where p.rule = :rule and p.identity <> '[]')
select o.rule, o.hold_key, o.id, 'the tenant is ' || coalesce(o.tenant, 'nobody') || ', the row says ' || coalesce({tenant}, 'nobody')
from o join {table} h on {key_match}
where {identity} = o.identity and o.tenant is distinct from {tenant}
limit :limit

-- name: tenant_of_record
-- Purpose: find expired records whose tenant is not the one in their before-image; what another
-- mapping released may have had its tenant elsewhere.
-- Caller: adapters.sql.audit
-- Index: record_hold
select o.rule, o.hold_key, o.operation_id, 'the tenant is ' || coalesce(o.tenant, 'nobody') || ', the released row said ' || coalesce({image_tenant}, 'nobody')
from {s}record o
where o.rule = :rule and o.outcome = 'expired' and o.finished_at >= :since
  and o.tenant is distinct from {image_tenant} and {of_this_mapping}
limit :limit

-- name: released_but_held
-- Purpose: find released rows that are held again in the same identity without a later operation.
-- Caller: adapters.sql.audit
-- Index: the customer's primary key, operation_identity, record_hold
select o.rule, o.hold_key, o.operation_id, 'expired at ' || o.finished_at || ', and the row is still held'
from {s}record o join {table} h on {key_match}
where o.rule = :rule and o.outcome = 'expired' and o.finished_at >= :since
  and {is_held} and {identity} = {image_identity}
  and not exists (select 1 from {s}operation p
                  where p.rule = o.rule and p.hold_key = o.hold_key and p.digest = o.digest)
  and not exists (select 1 from {s}record n
                  where n.rule = o.rule and n.hold_key = o.hold_key and n.digest = o.digest
                    and n.generation > o.generation)
limit :limit

-- name: released_images
-- Purpose: page through what expired records say that they released. The page is cut first: the
-- planner thinks that next to no image has the columns asked for, and would sort all that are left.
-- Caller: adapters.sql.audit
-- Index: record_hold
select o.operation_id, o.hold_key, o.digest, {image_identity}, {of_this_mapping}
from (select r.operation_id, r.hold_key, r.digest, r.before_image from {s}record r
      where r.rule = :rule and r.outcome = 'expired' and r.finished_at >= :since
        and (r.hold_key, r.operation_id) > (:after_key, :after_id)
      order by r.hold_key, r.operation_id limit :limit) o
order by o.hold_key, o.operation_id

-- name: acts
-- Purpose: page through the action log in the order of its chain.
-- Caller: adapters.sql.audit
-- Index: the primary key
select id, at, actor, action, subject, reason, before, after, previous_hash, hash
from {s}action where id > :after_id order by id limit :limit
