-- name: fail
-- Purpose: note a failed attempt, fenced by state, attempt and lease token.
-- Caller: adapters.sql.operations
-- Index: the primary key
update {s}operation
set state = :state, reason = :reason, attempt = :attempt,
    available_at = coalesce(:retry_at, available_at),
    failure_class = :failure_class, failure_code = :failure_code,
    failure_message = :failure_message, leased_until = null, changed_at = :now
where id = :id
  and ((not :leased and state in ('ready', 'retrying', 'deferred')
        and attempt = :attempt - 1)
       or (state = 'leased' and lease_token = :lease_token and attempt = :attempt))

-- name: renew
-- Purpose: prolong a lease, fenced by its token.
-- Caller: adapters.sql.operations
-- Index: operation_leased_until
update {s}operation set leased_until = :until, changed_at = :now
where state = 'leased' and leased_until >= :now and lease_token = :lease_token

-- name: any_leased
-- Purpose: see whether somebody works under a lease that has not ended.
-- Caller: adapters.sql.operations, before a lease where only one transaction can write
-- Index: operation_leased_until
select 1 from {s}operation where state = 'leased' and leased_until >= :now limit 1

-- name: oldest_ready
-- Purpose: find where the claimable operations of a rule begin.
-- Caller: adapters.sql.operations, before they are counted
-- Index: operation_claim
select available_at from {s}operation
where rule = :rule and window_until is null and state in ('ready', 'retrying', 'deferred') and available_at >= :floor
  and available_at <= :now
order by available_at limit 1

-- name: count_ready
-- Purpose: count claimable operations of a rule, but never more than a limit.
-- Caller: adapters.sql.operations, between scanned batches
-- Index: operation_claim
select count(*) from (
    select 1 from {s}operation
    where rule = :rule and window_until is null and state in ('ready', 'retrying', 'deferred') and available_at >= :floor
      and available_at <= :now
    order by available_at limit :limit) c

-- name: find_ready
-- Purpose: page through claimable operations, to name them in messages.
-- Caller: adapters.sql.operations, the dispatcher
-- Index: operation_claim
select id, rule, digest, hold_key, due_at, available_at, attempt + 1
from {s}operation
where rule = :rule and window_until is null and state in ('ready', 'retrying', 'deferred') and available_at <= :now
  and available_at >= :after_at and (available_at, id) > (:after_at, :after_id)
order by available_at, id limit :limit

-- name: newest
-- Purpose: name the claimable operations that were written last.
-- Caller: adapters.sql.operations, when a whole rule seems to fail
-- Index: operation_claim, read backwards
select id from {s}operation
where rule = :rule and window_until is null and state in ('ready', 'retrying', 'deferred') and available_at <= :now
order by available_at desc, id desc limit :limit

-- name: bring_back
-- Purpose: make operations of a tenant claimable again that were put off while it was paused.
-- Caller: adapters.sql.operations, when a pause ends
-- Index: operation_paused
update {s}operation
set state = 'ready', reason = null, available_at = :now, deferrals = 0, changed_at = :now
where state = 'deferred' and id in (
    select o.id from {s}operation o
    where o.rule = :rule and o.tenant = :tenant and o.state = 'deferred' and o.reason = 'paused'
    order by o.id limit :limit)
