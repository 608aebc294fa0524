-- name: find_named
-- Purpose: read those of the named rows that are held and due, with a mark on those that are open.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.straight, before a grant that releases what is in its way
-- Index: the customer's primary key; operation_identity for the mark
select {key_text} as hold_key, {due_text} as due, {identity} as identity, {guard} as guard,
       {tenant} as tenant,
       exists (select 1 from {s}operation p
               where p.rule = :rule and p.hold_key = {key_text} and p.identity = {identity}) as is_open
from (select value as hold_key from json_each(:keys)) o cross join {table} h on {key_match}
where {is_held} and coalesce({overdue}, 0)

-- name: lock_found
-- Purpose: read found rows and compare the whole fence.
-- Differs: no row locks; the transaction is the only writer, and ids are drawn afterwards.
-- Caller: adapters.sql.straight, once a batch
-- Index: the customer's primary key
select o.place, {is_held} and {identity} = o.identity and {guard} = o.guard as matches, 0
from (select key as place, json_extract(value, '$[0]') as hold_key,
             json_extract(value, '$[1]') as identity, json_extract(value, '$[2]') as guard
      from json_each(:rows)) o
cross join {table} h on {key_match}

-- name: draw_ids
-- Purpose: move the counter of operation ids on, so that no operation gets an id drawn here.
-- Differs: PostgreSQL has a sequence.
-- Caller: adapters.sql.straight, once a batch
-- Index: none; one row a table with a counter
update sqlite_sequence set seq = seq + :count where name = '{s}operation' returning seq

-- name: begin_ids
-- Purpose: make the counter of operation ids, where no operation was ever written.
-- Differs: PostgreSQL has a sequence.
-- Caller: adapters.sql.straight, once in the life of a ledger
-- Index: none
insert into sqlite_sequence (name, seq) values ('{s}operation', :count) returning seq

-- name: named_there
-- Purpose: tell rows that are there from rows that are gone.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.straight, for the rows that lock_found left out
-- Index: the customer's primary key
select o.hold_key from (select value as hold_key from json_each(:keys)) o
where exists (select 1 from {table} h where {key_match})

-- name: note_found
-- Purpose: write the records of a release, with the before-image, ahead of the change.
-- Differs: PostgreSQL does it in the statement that changes the rows.
-- Caller: adapters.sql.straight, once a batch
-- Index: the customer's primary key
insert into {s}record (
    operation_id, rule, tenant, hold_key, digest, generation, due_at, outcome, reason, attempt,
    before_image, tick_id, tally_id, found_at, finished_at)
select o.id, :rule, o.tenant, o.hold_key, o.digest, 1, o.due_at, 'expired', :reason, 1,
       {before_image}, :tick_id, o.tally_id, :now, :now
from (select json_extract(value, '$[0]') as id, json_extract(value, '$[1]') as tally_id,
             json_extract(value, '$[2]') as hold_key, json_extract(value, '$[5]') as digest,
             json_extract(value, '$[6]') as due_at, json_extract(value, '$[7]') as tenant
      from json_each(:rows)) o
cross join {table} h on {key_match}

-- name: tell_found
-- Purpose: write the events of a release, with tokens and carried columns, ahead of the change.
-- Differs: PostgreSQL does it in the statement that changes the rows.
-- Caller: adapters.sql.straight, once a batch
-- Index: the customer's primary key
insert into {s}outbox (
    type, operation_id, rule, tenant, hold_key, digest, generation, due_at, at, tokens, carry, state)
select 'hold.expired.v1', o.id, :rule, o.tenant, o.hold_key, o.digest, 1, o.due_at, :now,
       {tokens}, {carry},
       case when exists (select 1 from {s}target where active = 1)
            then 'pending' else 'kept' end
from (select json_extract(value, '$[0]') as id, json_extract(value, '$[2]') as hold_key,
             json_extract(value, '$[5]') as digest, json_extract(value, '$[6]') as due_at,
             json_extract(value, '$[7]') as tenant
      from json_each(:rows)) o
cross join {table} h on {key_match}

-- name: change_found_by_update
-- Purpose: write the customer's columns; the whole fence is compared.
-- Differs: stands alone, since SQLite has no DML in CTE.
-- Caller: adapters.sql.straight, once a batch
-- Index: the customer's primary key
update {table} as h set {assignments}
from (select json_extract(value, '$[2]') as hold_key, json_extract(value, '$[3]') as identity,
             json_extract(value, '$[4]') as guard
      from json_each(:rows)) o
where {key_match} and {is_held} and {is_due} and {identity} = o.identity and {guard} = o.guard

-- name: change_found_by_delete
-- Purpose: delete the customer's rows; the whole fence is compared.
-- Differs: stands alone, and SQLite has no DELETE ... USING.
-- Caller: adapters.sql.straight, once a batch
-- Index: the customer's primary key
delete from {table} as h where h.rowid in (
    select h.rowid
    from (select json_extract(value, '$[2]') as hold_key, json_extract(value, '$[3]') as identity,
                 json_extract(value, '$[4]') as guard
          from json_each(:rows)) o
    cross join {table} h on {key_match}
    where {is_held} and {is_due} and {identity} = o.identity and {guard} = o.guard)

-- name: companion_values_of
-- Purpose: read the columns that a companion is given, before the change.
-- Differs: the batch arrives as JSON.
-- Caller: adapters.sql.straight, once a batch of a rule with companions
-- Index: the customer's primary key
select o.hold_key, {companion_image} from (select value as hold_key from json_each(:keys)) o
cross join {table} h on {key_match}
