-- name: keep_order
-- Purpose: let find_due follow its index and stop at the limit.
-- Differs: the planner does so by itself.
-- Caller: adapters.sql.holds, before find_due in its transaction
-- Index: none
select 1

-- name: find_due
-- Purpose: read due rows behind the cursor, with a mark on those that are open already.
-- Differs: not in text; kept here beside its neighbours, which do.
-- Caller: adapters.sql.holds, once a scanned batch
-- Index: the customer's (partial) index on the due column; operation_identity for the mark
select {key_text} as hold_key, {due_text} as due, {identity} as identity, {guard} as guard,
       {tenant} as tenant,
       exists (select 1 from {s}operation o
               where o.rule = :rule and o.hold_key = {key_text} and o.identity = {identity}) as is_open
from {table} h
where {held} and {due_range} and {after_cursor}
order by {scan_order} limit :limit

-- name: find_empty_due
-- Purpose: read held rows whose due is NULL or not after 1970, in key order.
-- Differs: not in text; kept here beside its neighbours, which do.
-- Caller: adapters.sql.holds, the sweep and doctor
-- Index: the customer's primary key; bounded by the limit
select {key_text} as hold_key, {due_text} as due, {identity} as identity, {guard} as guard,
       {tenant} as tenant,
       exists (select 1 from {s}operation o
               where o.rule = :rule and o.hold_key = {key_text} and o.identity = {identity}) as is_open
from {table} h
where {held} and {due_empty} and {after_key}
order by {key_order} limit :limit

-- name: next_due
-- Purpose: find the first due value after now, to sleep until it.
-- Differs: not in text; kept here beside its neighbours, which do.
-- Caller: adapters.sql.holds, between ticks of a precise schedule
-- Index: the customer's (partial) index on the due column
select {due_text} from {table} h where {held} and {due} > {upto} order by {due} limit 1

-- name: count_overdue
-- Purpose: count due rows, and empty ones where the rule takes them for due, up to a limit.
-- Differs: not in text; kept here beside its neighbours, which do.
-- Caller: adapters.sql.holds, before a rule's first scan and in plan
-- Index: the customer's (partial) index on the due column
select count(*) from (
    select 1 from {table} h where {held} and {overdue} limit :limit) c

-- name: lock_holds
-- Purpose: read the rows of claimed operations and compare the whole fence.
-- Differs: no row locks; the transaction is the only writer.
-- Caller: adapters.sql.holds, once a batch
-- Index: the customer's primary key, the primary key of operation
select o.id, {is_held} and {identity} = o.identity and {guard} = o.guard as matches,
       {due_text} as due
from {s}operation o cross join {table} h on {key_match}
where o.id in (select value from json_each(:ids))

-- name: what_differs
-- Purpose: read rows that do not match their operations, to tell why.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.holds, for rows that lock_holds read in this transaction
-- Index: the customer's primary key, the primary key of operation
select o.id, o.identity, o.guard, o.after_expired, {identity} as identity_now, {guard} as guard_now,
       {is_held} as held, {confirmed} as confirmed, {cancelled} as cancelled,
       {looks_expired} as looks_expired, o.due_at, o.hold_key
from {s}operation o cross join {table} h on {key_match}
where o.id in (select value from json_each(:ids))

-- name: unlocked_holds
-- Purpose: tell rows that are there from rows that are gone.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.holds, for the operations that lock_holds left out
-- Index: the customer's primary key
select o.id from {s}operation o
where o.id in (select value from json_each(:ids)) and exists (select 1 from {table} h where {key_match})

-- name: note_expired
-- Purpose: write the records of a release, with the before-image, ahead of the change.
-- Differs: PostgreSQL does it in the statement that changes the rows.
-- Caller: adapters.sql.holds, once a batch
-- Index: the customer's primary key, the primary key of operation
insert into {s}record (
    operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, attempt,
    before_image, tick_id, tally_id, found_at, finished_at)
select o.id, o.rule, o.tenant, o.hold_key, o.digest, o.generation, o.due_at, 'expired',
       o.attempt + (o.state <> 'leased'), {before_image}, o.tick_id,
       json_extract(c.value, '$[1]'), o.found_at, :now
from json_each(:pairs) c
cross join {s}operation o on o.id = json_extract(c.value, '$[0]')
cross join {table} h on {key_match}

-- name: tell_expired
-- Purpose: write the events of a release, with tokens and carried columns, ahead of the change.
-- Differs: PostgreSQL does it in the statement that changes the rows.
-- Caller: adapters.sql.holds, once a batch
-- Index: the customer's primary key, the primary key of operation
insert into {s}outbox (
    type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry, state)
select 'hold.expired.v1', o.id, o.rule, o.tenant, o.hold_key, o.digest, o.generation, o.due_at,
       :now, {tokens}, {carry},
       case when exists (select 1 from {s}target where active = 1)
            then 'pending' else 'kept' end
from {s}operation o cross join {table} h on {key_match}
where o.id in (select value from json_each(:ids))

-- name: change_by_update
-- Purpose: write the customer's columns; the whole fence is compared.
-- Differs: stands alone, since SQLite has no DML in CTE.
-- Caller: adapters.sql.holds, once a batch
-- Index: the customer's primary key
update {table} as h set {assignments}
from (select * from {s}operation where id in (select value from json_each(:ids))) o
where {key_match} and {is_held} and {is_due} and {identity} = o.identity and {guard} = o.guard

-- name: change_by_delete
-- Purpose: delete the customer's rows; the whole fence is compared.
-- Differs: stands alone, and SQLite has no DELETE ... USING.
-- Caller: adapters.sql.holds, once a batch
-- Index: the customer's primary key
delete from {table} as h where h.rowid in (
    select h.rowid from {s}operation o cross join {table} h on {key_match}
    where o.id in (select value from json_each(:ids)) and {is_held} and {is_due}
      and {identity} = o.identity and {guard} = o.guard)

-- name: still_held
-- Purpose: find rows that a trigger put back after release changed them.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.holds, once a batch, before the commit
-- Index: the customer's primary key
select count(*) from (select value as hold_key from json_each(:keys)) o
cross join {table} h on {key_match} where {is_held}

-- name: still_due
-- Purpose: name the operations whose hold is still held with the same identity; a row too odd to
-- be named (an empty identity) cannot be looked up, and counts as held.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.holds, the sweep of operations in review
-- Index: the customer's primary key
select o.id from {s}operation o
where o.id in (select value from json_each(:ids)) and case when o.identity = '[]' then true else exists (
    select 1 from {table} h where {key_match} and {is_held} and {identity} = o.identity) end

-- name: companion_values
-- Purpose: read the columns that a companion is given, before the change.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.holds, once a batch of a rule with companions
-- Index: the customer's primary key, the primary key of operation
select o.id, o.rule, o.digest, o.tenant, {companion_image}
from {s}operation o cross join {table} h on {key_match}
where o.id in (select value from json_each(:ids))

-- name: images
-- Purpose: read the mapped columns of operations' rows as text, for a handler.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.holds, once a batch of a rule with a handler, before the change
-- Index: the customer's primary key, the primary key of operation
select o.id, {before_image} from {s}operation o cross join {table} h on {key_match}
where o.id in (select value from json_each(:ids))

-- name: read_hold
-- Purpose: read one row's mapped columns without a lock.
-- Differs: no cast.
-- Caller: adapters.sql.holds, for why and preview
-- Index: the customer's primary key
select {before_image}, {is_held} as held from (select :hold_key as hold_key) o cross join {table} h on {key_match}

-- name: sample_due
-- Purpose: see how a textual due column separates date and time.
-- Differs: PostgreSQL has types for it.
-- Caller: adapters.sql.ledger, when a rule is compiled
-- Index: none; stops at the first row
select {due} from {table} h where {due} is not null limit 1
