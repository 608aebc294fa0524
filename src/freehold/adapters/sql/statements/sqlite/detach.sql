-- name: withdraw
-- Purpose: set open operations of a rule aside, whatever state they are in; live leases stay.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.reviews, detach
-- Index: operation_identity
update {s}operation
set state = 'discarded', reason = :reason, leased_until = null, changed_at = :now
where id in (
    select o.id from {s}operation o
    where o.rule = :rule and (o.state <> 'leased' or o.leased_until < :now) limit :limit)
returning id
