-- name: lock_rate
-- Purpose: read a rule's rate, so that two scans do not spend the same credit.
-- Differs: the transaction is the only writer already.
-- Caller: adapters.sql.rates, the scan
-- Index: the primary key
select per_second, attached_at, credited_at from {s}attach_rate where rule = :rule
