-- name: join_caller
-- Purpose: take the write lock within the caller's transaction; no row is changed.
-- Differs: PostgreSQL reads the clock and pins settings here; SQLite has no settings in our way.
-- Caller: adapters.sql.joined_sqlite, first in every call
-- Index: none
update {s}lease_token set last = last where false

-- name: lock_rule
-- Purpose: keep others from changing a rule's state until the transaction ends.
-- Differs: the transaction is the only writer already.
-- Caller: adapters.sql.rules
-- Index: the primary key
select 1 from {s}rule_state where rule = :rule

-- name: lock_chain
-- Purpose: let one writer at a time append to the action log's chain.
-- Differs: the transaction is the only writer already.
-- Caller: adapters.sql.actions
-- Index: none
select 1

-- name: columns
-- Purpose: read a table's columns with their declared types.
-- Differs: from the table's own pragma.
-- Caller: adapters.sql.catalogue
-- Index: system catalogue
select name, lower(type), not "notnull", '' from pragma_table_info(:table)

-- name: alone
-- Purpose: run one batch at a time of a rule whose companions have no order of their own.
-- Differs: the transaction is the only writer already.
-- Caller: adapters.sql.rules
-- Index: none
select 1

-- name: has_ledger
-- Purpose: see whether there is a ledger at all.
-- Differs: in the catalogue.
-- Caller: adapters.sql.migrations
-- Index: system catalogue
select exists (select 1 from sqlite_master where type = 'table' and name = '{s}migration')

-- name: lock_migrations
-- Purpose: let one process migrate at a time.
-- Differs: the transaction is the only writer already.
-- Caller: adapters.sql.migrations
-- Index: none
select 1

-- name: has_place
-- Purpose: see whether a schema for our tables is there; a DBA may have made it for us.
-- Differs: SQLite has no schemas.
-- Caller: adapters.sql.migrations
-- Index: none
select 1

-- name: make_ledger
-- Purpose: make the schema that holds our tables.
-- Differs: SQLite has none; our tables share a prefix.
-- Caller: adapters.sql.migrations
-- Index: none
select 1

-- name: make_migrations
-- Purpose: make the table of applied migrations.
-- Differs: instants are text.
-- Caller: adapters.sql.migrations
-- Index: none
create table if not exists {s}migration (
    version integer primary key, name text not null, checksum text not null,
    applied_at text not null) strict
