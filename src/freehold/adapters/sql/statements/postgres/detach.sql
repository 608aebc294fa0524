-- name: withdraw
-- Purpose: set open operations of a rule aside, whatever state they are in; live leases stay.
-- Caller: adapters.sql.reviews, detach
-- Index: operation_identity
with taken as (
    select o.id from {s}operation o
    where o.rule = :rule and (o.state <> 'leased' or o.leased_until < :now)
    limit :limit for update skip locked)
update {s}operation o
set state = 'discarded', reason = :reason, leased_until = null, changed_at = :now
from taken t where o.id = any (array[t.id])
returning o.id
