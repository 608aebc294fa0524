-- name: count_later
-- Purpose: count held rows that fall due later or never, each up to a limit.
-- Caller: adapters.sql.weighing, when many rows turned up overdue
-- Index: the customer's (partial) index on the due column, which holds NULLs too
select (select count(*) from (
            select 1 from {table} h where {held} and {due} > {upto} order by {due} limit :limit) l)
     + (select count(*) from (
            select 1 from {table} h where {held} and {due} is null limit :limit) n)
