-- name: claim_window
-- Purpose: read the oldest claimable window of a rule.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.windows, when no hold of the rule is claimable
-- Index: operation_window
select o.id, o.window_from, o.window_until, o.tick_id
from {s}operation o
where o.rule = :rule and o.window_until is not null
  and o.state in ('ready', 'retrying', 'deferred') and o.available_at <= :now
order by o.available_at limit 1

-- name: close_window
-- Purpose: write the record of a window that ends, fenced by its lease.
-- Differs: the operation goes in a statement of its own (no DML in CTE).
-- Caller: adapters.sql.windows, when all of it is done
-- Index: the primary key
insert into {s}record (
    operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, reason, attempt,
    tick_id, tally_id, found_at, finished_at)
select o.id, o.rule, o.tenant, o.hold_key, o.digest, o.generation, o.due_at, 'closed', :reason,
       o.attempt, o.tick_id, null, o.found_at, :now
from {s}operation o
where o.id = :id and o.state = 'leased' and o.lease_token = :lease_token
