-- name: read_whole_tables
-- Purpose: let the planner read whole tables in this transaction.
-- Differs: nothing keeps it from doing so here.
-- Caller: adapters.sql.reading, for the audit
-- Index: none
select 1

-- name: look_at_hold
-- Purpose: read one row as a rule sees it, without a lock.
-- Differs: no cast of the key.
-- Caller: adapters.sql.insight_holds, for why
-- Index: the customer's primary key
select {key_text}, {due_text}, {identity}, {guard}, {tenant}, {is_held}, {confirmed}, {cancelled},
       {looks_expired}, {before_image}
from (select :hold_key as hold_key) o cross join {table} h on {key_match}

-- name: count_empty_due
-- Purpose: count held rows whose due is NULL or not after 1970, up to a limit.
-- Differs: reads the index from its start, where NULLs and zeros stand; asked for them by value,
--          the planner reads the whole table where many rows share one due.
-- Caller: adapters.sql.insight_holds, for status
-- Index: the customer's index on the due column
select count(*) from (
    select {due} as due from {table} h where {held} order by {due} limit :limit) c
where c.due is null or c.due <= {upto}
