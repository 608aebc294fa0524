-- name: read_whole_tables
-- Purpose: let the planner read whole tables, and statements take their time, in this transaction.
-- Caller: adapters.sql.reading, for the audit
-- Index: none
select set_config('enable_seqscan', 'on', true),
       set_config('statement_timeout', (10 * extract(epoch from current_setting('statement_timeout')::interval) * 1000)::bigint::text, true)

-- name: look_at_hold
-- Purpose: read one row as a rule sees it, without a lock.
-- Caller: adapters.sql.insight_holds, for why
-- Index: the customer's primary key
select {key_text}, {due_text}, {identity}, {guard}, {tenant}, {is_held}, {confirmed}, {cancelled},
       {looks_expired}, {before_image}
from (select :hold_key::text as hold_key) o join {table} h on {key_match}

-- name: count_empty_due
-- Purpose: count held rows whose due is NULL or not after 1970, each up to a limit, as two ranges of one index.
-- Caller: adapters.sql.insight_holds, for status
-- Index: the customer's index on the due column, which holds NULLs too
select (select count(*) from (
            select 1 from {table} h where {held} and {due} is null limit :limit) n)
     + (select count(*) from (
            select 1 from {table} h where {held} and {due} <= {upto} limit :limit) z)
