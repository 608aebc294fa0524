-- name: count_open
-- Purpose: count what is left open of a rule after detach; few or none.
-- Caller: adapters.sql.reviews, detach
-- Index: operation_identity
select count(*) from (select 1 from {s}operation o where o.rule = :rule limit :limit) c
