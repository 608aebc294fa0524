-- name: find_named
-- Purpose: read those of the named rows that are held and due, with a mark on those that are open.
-- Caller: adapters.sql.straight, before a grant that releases what is in its way
-- Index: the customer's primary key; operation_identity for the mark
select {key_text} as hold_key, {due_text} as due, {identity} as identity, {guard} as guard,
       {tenant} as tenant,
       exists (select 1 from {s}operation p
               where p.rule = :rule and p.hold_key = {key_text}
                 and p.identity = any (array[{identity}])) as is_open
from unnest(:keys::text[]) as o (hold_key) join {table} h on {key_match}
where {is_held} and coalesce({overdue}, false)

-- name: lock_found
-- Purpose: lock found rows in key order and compare the whole fence; what matches draws an id.
-- Caller: adapters.sql.straight, once a batch
-- Index: the customer's primary key; rows locked by the host are passed over, never waited for
select o.place - 1, h.matches, case when h.matches then nextval('{s}operation_id_seq') end
from (select * from unnest(:c0::text[], :c1::text[], :c2::text[]) with ordinality
          as f (hold_key, identity, guard, place)
      order by {key_order_of_operation}) o
cross join lateral (
    select {is_held} and {identity} = o.identity and {guard} = o.guard as matches
    from {table} h where {key_match} for {lock_strength} of h skip locked) h

-- name: named_there
-- Purpose: tell rows that the host has locked from rows that are gone.
-- Caller: adapters.sql.straight, for the rows that lock_found left out
-- Index: the customer's primary key
select o.hold_key from unnest(:keys::text[]) as o (hold_key)
where exists (select 1 from {table} h where {key_match})

-- name: release_found
-- Purpose: the compare-and-set with its event and its record, without an operation row.
-- Caller: adapters.sql.straight, once a batch, on rows that lock_found matched in this transaction
-- Index: the customer's primary key
with chosen as materialized (
    select o.*, {before_image} as before_image, {tokens} as tokens, {carry} as carry
    from unnest(:c0::bigint[], :c1::bigint[], :c2::text[], :c3::text[], :c4::text[], :c5::uuid[],
                :c6::timestamptz[], :c7::text[])
         as o (id, tally_id, hold_key, identity, guard, digest, due_at, tenant)
    join {table} h on {key_match}),
changed as ({change} returning o.*),
noted as (
    insert into {s}record (
        operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, reason, attempt,
        before_image, tick_id, tally_id, found_at, finished_at)
    select c.id, :rule, c.tenant, c.hold_key, c.digest, 1, c.due_at, 'expired', :reason, 1,
           c.before_image, :tick_id, c.tally_id, :now, :now
    from changed c),
told as (
    insert into {s}outbox (
        type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry,
        state)
    select 'hold.expired.v1', c.id, :rule, c.tenant, c.hold_key, c.digest, 1, c.due_at, :now,
           c.tokens, c.carry, 'kept'
    from changed c)
select count(*) from changed

-- name: companion_values_of
-- Purpose: read the columns that a companion is given, before the change.
-- Caller: adapters.sql.straight, once a batch of a rule with companions
-- Index: the customer's primary key
select o.hold_key, {companion_image} from unnest(:keys::text[]) as o (hold_key)
join {table} h on {key_match}
