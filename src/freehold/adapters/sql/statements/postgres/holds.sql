-- name: keep_order
-- Purpose: let find_due follow its index and stop at the limit, instead of sorting all due rows of
-- a table that was analysed when none was due.
-- Caller: adapters.sql.holds, before find_due in its transaction; adapters.sql.report_calendar,
--         before it reads a page, likewise
-- Index: none
select set_config('enable_sort', 'off', true)

-- name: find_due
-- Purpose: read due rows behind the cursor, with a mark on those that are open already.
-- Caller: adapters.sql.holds, once a scanned batch
-- Index: the customer's (partial) index on the due column; operation_identity for the mark
select {key_text} as hold_key, {due_text} as due, {identity} as identity, {guard} as guard,
       {tenant} as tenant,
       exists (select 1 from {s}operation o
               where o.rule = :rule and o.hold_key = {key_text}
                 and o.identity = any (array[{identity}])) as is_open
from {table} h
where {held} and {due_range} and {after_cursor}
order by {scan_order} limit :limit

-- name: find_empty_due
-- Purpose: read held rows whose due is NULL or not after 1970, in key order.
-- Caller: adapters.sql.holds, the sweep and doctor
-- Index: the customer's primary key; bounded by the limit
select {key_text} as hold_key, {due_text} as due, {identity} as identity, {guard} as guard,
       {tenant} as tenant,
       exists (select 1 from {s}operation o
               where o.rule = :rule and o.hold_key = {key_text}
                 and o.identity = any (array[{identity}])) as is_open
from {table} h
where {held} and {due_empty} and {after_key}
order by {key_order} limit :limit

-- name: next_due
-- Purpose: find the first due value after now, to sleep until it.
-- Caller: adapters.sql.holds, between ticks of a precise schedule
-- Index: the customer's (partial) index on the due column
select {due_text} from {table} h where {held} and {due} > {upto} order by {due} limit 1

-- name: count_overdue
-- Purpose: count due rows, and empty ones where the rule takes them for due, up to a limit.
-- Caller: adapters.sql.holds, before a rule's first scan and in plan
-- Index: the customer's (partial) index on the due column
select count(*) from (
    select 1 from {table} h where {held} and {overdue} limit :limit) c

-- name: lock_holds
-- Purpose: lock the rows of claimed operations in key order and compare the whole fence.
-- Caller: adapters.sql.holds, once a batch
-- Index: the customer's primary key; rows locked by the host are passed over, never waited for
select o.id, h.matches, h.due
from (select * from {s}operation where id = any (:ids::bigint[]) order by {key_order_of_operation}) o
cross join lateral (
    select {is_held} and {identity} = o.identity and {guard} = o.guard as matches,
           {due_text} as due
    from {table} h where {key_match} for {lock_strength} of h skip locked) h

-- name: what_differs
-- Purpose: read locked rows that do not match their operations, to tell why.
-- Caller: adapters.sql.holds, for rows that lock_holds locked in this transaction
-- Index: the customer's primary key, the primary key of operation
select o.id, o.identity, o.guard, o.after_expired, {identity} as identity_now, {guard} as guard_now,
       {is_held} as held, {confirmed} as confirmed, {cancelled} as cancelled,
       {looks_expired} as looks_expired, o.due_at, o.hold_key
from {s}operation o join {table} h on {key_match}
where o.id = any (:ids::bigint[])

-- name: unlocked_holds
-- Purpose: tell rows that the host has locked from rows that are gone.
-- Caller: adapters.sql.holds, for the operations that lock_holds left out
-- Index: the customer's primary key
select o.id from {s}operation o
where o.id = any (:ids::bigint[]) and exists (select 1 from {table} h where {key_match})

-- name: release
-- Purpose: the compare-and-set with its event and its record; the operations leave the ledger.
-- Caller: adapters.sql.holds, once a batch, on rows that lock_holds matched in this transaction
-- Index: the customer's primary key, the primary key of operation; a bare o.id = c.id would let a
-- plan made for an empty ledger read the whole index, with all that an old snapshot keeps in it
with chosen as materialized (
    select o.*, c.tally_id, {before_image} as before_image, {tokens} as tokens, {carry} as carry
    from unnest(:ids::bigint[], :tally_ids::bigint[]) as c (id, tally_id)
    join {s}operation o on o.id = any (array[c.id])
    join {table} h on {key_match}),
changed as ({change} returning o.*),
gone as (
    delete from {s}operation g using changed c where g.id = any (array[c.id]) returning g.id),
noted as (
    insert into {s}record (
        operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, attempt,
        before_image, tick_id, tally_id, found_at, finished_at)
    select c.id, c.rule, c.tenant, c.hold_key, c.digest, c.generation, c.due_at, 'expired',
           c.attempt + case when c.state = 'leased' then 0 else 1 end, c.before_image, c.tick_id,
           c.tally_id, c.found_at, :now
    from changed c),
told as (
    insert into {s}outbox (
        type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry,
        state)
    select 'hold.expired.v1', c.id, c.rule, c.tenant, c.hold_key, c.digest, c.generation, c.due_at,
           :now, c.tokens, c.carry,
           case when exists (select 1 from {s}target where active)
                then 'pending' else 'kept' end
    from changed c)
select (select count(*) from changed), (select count(*) from gone)

-- name: change_by_update
-- Purpose: the part of release that writes the customer's columns; the whole fence is compared.
-- Caller: adapters.sql.holds, set into release
-- Index: the customer's primary key; bare predicates would let a stale plan read all held rows
update {table} h set {assignments} from chosen o
where {key_match} and {is_held} and {is_due} and {identity} = any (array[o.identity]) and {guard} = any (array[o.guard])

-- name: change_by_delete
-- Purpose: the part of release that deletes the customer's row; the whole fence is compared.
-- Caller: adapters.sql.holds, set into release
-- Index: the customer's primary key; bare predicates would let a stale plan read all held rows
delete from {table} h using chosen o
where {key_match} and {is_held} and {is_due} and {identity} = any (array[o.identity]) and {guard} = any (array[o.guard])

-- name: still_held
-- Purpose: find rows that a trigger put back after release changed them.
-- Caller: adapters.sql.holds, once a batch, before the commit
-- Index: the customer's primary key; bare predicates would let a stale plan read all held rows
select count(*) from unnest(:keys::text[]) as o (hold_key) join {table} h on {key_match} where {is_held}

-- name: still_due
-- Purpose: name the operations whose hold is still held with the same identity; a row too odd to
-- be named (an empty identity) cannot be looked up, and counts as held.
-- Caller: adapters.sql.holds, the sweep of operations in review
-- Index: the customer's primary key; bare predicates would let a stale plan read all held rows
select o.id from {s}operation o
where o.id = any (:ids::bigint[]) and case when o.identity = '[]' then true else exists (
    select 1 from {table} h where {key_match} and {is_held} and {identity} = o.identity) end

-- name: companion_values
-- Purpose: read the columns that a companion is given, before the change.
-- Caller: adapters.sql.holds, once a batch of a rule with companions
-- Index: the customer's primary key, the primary key of operation
select o.id, o.rule, o.digest, o.tenant, {companion_image} from {s}operation o join {table} h on {key_match}
where o.id = any (:ids::bigint[])

-- name: images
-- Purpose: read the mapped columns of operations' rows as text, for a handler.
-- Caller: adapters.sql.holds, once a batch of a rule with a handler, before the change
-- Index: the customer's primary key, the primary key of operation
select o.id, {before_image} from {s}operation o join {table} h on {key_match}
where o.id = any (:ids::bigint[])

-- name: read_hold
-- Purpose: read one row's mapped columns without a lock.
-- Caller: adapters.sql.holds, for why and preview
-- Index: the customer's primary key
select {before_image}, {is_held} as held from (select :hold_key::text as hold_key) o join {table} h on {key_match}
