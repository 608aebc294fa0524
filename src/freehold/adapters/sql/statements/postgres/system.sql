-- name: database_now
-- Purpose: pin what a transaction depends on, and read the clock; one round trip.
-- Caller: adapters.sql.postgres, first in every transaction; the slots are our own settings
-- Index: none
begin {transaction};
select clock_timestamp(), pg_postmaster_start_time(),
       set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, YMD', true),
       set_config('IntervalStyle', 'postgres', true), set_config('extra_float_digits', '1', true),
       set_config('bytea_output', 'hex', true), set_config('search_path', {search_path}, true),
       set_config('synchronous_commit', 'on', true),
       set_config('lock_timeout', '{lock_timeout_ms}', true),
       set_config('statement_timeout', '{statement_timeout_ms}', true),
       set_config('idle_in_transaction_session_timeout', '{idle_timeout_ms}', true),
       set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)

-- name: join_caller
-- Purpose: read the clock and the caller's settings, and pin ours until we give them back. The
-- instant is a count of microseconds: the driver may not know of the new date style yet.
-- Caller: adapters.sql.joined_postgres, first in every call
-- Index: none
with was as materialized (
    select json_object_agg(n.name, current_setting(n.name))::text as settings
    from unnest(array['client_encoding', 'TimeZone', 'DateStyle', 'IntervalStyle',
                      'extra_float_digits', 'bytea_output', 'search_path', 'plan_cache_mode',
                      'enable_seqscan', 'jit']) as n (name))
select (extract(epoch from clock_timestamp()) * 1000000)::bigint, was.settings,
       set_config('client_encoding', 'UTF8', true),
       set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, YMD', true),
       set_config('IntervalStyle', 'postgres', true), set_config('extra_float_digits', '1', true),
       set_config('bytea_output', 'hex', true), set_config('search_path', 'public, pg_temp', true),
       set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)
from was

-- name: leave_caller
-- Purpose: give the caller's settings back.
-- Caller: adapters.sql.joined_postgres, last in every call
-- Index: none
select set_config(n.name, n.text, true)
from unnest(:names::text[], :values::text[]) as n (name, text)

-- name: lock_rule
-- Purpose: keep others from changing a rule's state until the transaction ends.
-- Caller: adapters.sql.rules
-- Index: the primary key
select 1 from {s}rule_state where rule = :rule for no key update

-- name: lock_chain
-- Purpose: let one writer at a time append to the action log's chain.
-- Caller: adapters.sql.actions
-- Index: none
select pg_advisory_xact_lock(hashtextextended('{s}action', 0))

-- name: columns
-- Purpose: read a table's columns with the types that values are cast to.
-- Caller: adapters.sql.catalogue
-- Index: system catalogue
select a.attname, case when a.atttypid = 'bpchar'::regtype then 'bpchar'
                       else format_type(a.atttypid, -1) end,
       not a.attnotnull, t.typcategory::text
from pg_attribute a join pg_type t on t.oid = a.atttypid
where a.attrelid = to_regclass(:quoted) and a.attnum > 0 and not a.attisdropped
order by a.attnum

-- name: is_plain_table
-- Purpose: tell an ordinary table from views, foreign tables and those with partitions or children.
-- Caller: adapters.sql.catalogue
-- Index: system catalogue
select c.relkind = 'r' and not c.relhassubclass from pg_class c where c.oid = to_regclass(:quoted)

-- name: alone
-- Purpose: run one batch at a time of a rule whose companions have no order of their own.
-- Caller: adapters.sql.rules
-- Index: none
select pg_try_advisory_xact_lock(hashtextextended('{s}' || :rule, 1))

-- name: hold_records
-- Purpose: take the table of all records before its parts, in the order in which all others do.
-- Caller: adapters.sql.housekeeping, when a month's partition is missing
-- Index: none
lock table only {s}record in share update exclusive mode

-- name: hold_default
-- Purpose: keep records out of the default partition while some of its rows move.
-- Caller: adapters.sql.housekeeping, when a month's partition is missing
-- Index: none
lock table {s}record_default in access exclusive mode

-- name: lend
-- Purpose: let a handler think for longer than we may idle, and name the transaction it is lent.
-- Caller: adapters.sql.lent_postgres, once a batch of a rule with a handler
-- Index: none
select pg_current_xact_id()::text,
       set_config('idle_in_transaction_session_timeout', :idle_ms, true)

-- name: lent_transaction
-- Purpose: see whether a handler gave back the transaction that it was lent.
-- Caller: adapters.sql.lent_postgres, once a batch of a rule with a handler
-- Index: none
select pg_current_xact_id_if_assigned()::text

-- name: missing_partitions
-- Purpose: tell which partitions are not there yet, by their places in the list.
-- Caller: adapters.sql.housekeeping, the sweep
-- Index: system catalogue
select place from unnest(:names::text[]) with ordinality as n (name, place)
where to_regclass(name) is null

-- name: make_partition
-- Purpose: make the table of one month's records; the slots are our own names and instants.
-- Caller: adapters.sql.housekeeping, the sweep
-- Index: none
create table if not exists {s}{partition} (like {s}record including defaults including constraints)

-- name: fill_partition
-- Purpose: move what fell into the default partition before the month had one.
-- Caller: adapters.sql.housekeeping, the sweep
-- Index: none; the default partition is all but empty
with moved as (
    delete from {s}record_default
    where finished_at >= '{start}' and finished_at < '{end}' returning *)
insert into {s}{partition} select * from moved

-- name: attach_partition
-- Purpose: let the month's records live in their own partition.
-- Caller: adapters.sql.housekeeping, the sweep
-- Index: none
alter table {s}record attach partition {s}{partition} for values from ('{start}') to ('{end}')

-- name: has_ledger
-- Purpose: see whether there is a ledger at all.
-- Caller: adapters.sql.migrations
-- Index: system catalogue
select to_regclass('{s}migration') is not null

-- name: lock_migrations
-- Purpose: let one process migrate at a time.
-- Caller: adapters.sql.migrations
-- Index: none
select pg_advisory_xact_lock(hashtextextended('{s}migration', 0))

-- name: has_place
-- Purpose: see whether a schema for our tables is there; a DBA may have made it for us.
-- Caller: adapters.sql.migrations
-- Index: system catalogue
select to_regnamespace('freehold') is not null

-- name: make_ledger
-- Purpose: make the schema that holds our tables.
-- Caller: adapters.sql.migrations
-- Index: none
create schema if not exists freehold

-- name: make_migrations
-- Purpose: make the table of applied migrations.
-- Caller: adapters.sql.migrations
-- Index: none
create table if not exists {s}migration (
    version integer primary key, name text not null, checksum text not null,
    applied_at timestamptz not null)
