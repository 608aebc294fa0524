-- name: claim_window
-- Purpose: lock the oldest claimable window of a rule, passing over those of other workers.
-- Caller: adapters.sql.windows, when no hold of the rule is claimable
-- Index: operation_window
select o.id, o.window_from, o.window_until, o.tick_id
from {s}operation o
where o.rule = :rule and o.window_until is not null
  and o.state in ('ready', 'retrying', 'deferred') and o.available_at <= :now
order by o.available_at limit 1 for update skip locked

-- name: close_window
-- Purpose: end a window, fenced by its lease.
-- Caller: adapters.sql.windows, when all of it is done
-- Index: the primary key; states are named so that operation_leased_until cannot be proven to serve
with moved as (
    delete from {s}operation o
    where o.id = :id and o.lease_token = :lease_token
      and o.state not in ('ready', 'retrying', 'deferred', 'dead', 'discarded')
    returning o.*)
insert into {s}record (
    operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, reason, attempt,
    tick_id, tally_id, found_at, finished_at)
select m.id, m.rule, m.tenant, m.hold_key, m.digest, m.generation, m.due_at, 'closed', :reason,
       m.attempt, m.tick_id, null, m.found_at, :now
from moved m
