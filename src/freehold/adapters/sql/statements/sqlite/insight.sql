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
