-- name: no_time_limit
-- Purpose: let an exact count take its time.
-- Differs: there is no limit.
-- Caller: adapters.sql.inspection, plan --exact
-- Index: none
select 1

-- name: server_facts
-- Purpose: read the engine's version.
-- Differs: there is no server.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
select sqlite_version()

-- name: journal_mode
-- Purpose: read how the file is journalled.
-- Differs: SQLite only.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
pragma journal_mode

-- name: table_facts
-- Purpose: read what stands behind a table's name.
-- Differs: from the table's own pragma; there are no roles.
-- Caller: adapters.sql.inspection, doctor
-- Index: system catalogue
select type, wr from pragma_table_list where schema = 'main' and name = :table collate nocase

-- name: column_facts
-- Purpose: read a table's columns with their declared types and their place in the primary key.
-- Differs: from the table's own pragma.
-- Caller: adapters.sql.inspection, doctor
-- Index: system catalogue
select name, type, not "notnull", pk from pragma_table_info(:table)

-- name: index_facts
-- Purpose: read a table's indexes, a row for each part; an expression has no name.
-- Differs: from the table's own pragma.
-- Caller: adapters.sql.inspection, doctor
-- Index: system catalogue
select l.name, l."unique", l.partial, coalesce(i.name, '')
from pragma_index_list(:table) l join pragma_index_info(l.name) i
order by l.seq, i.seqno

-- name: trigger_names
-- Purpose: name the customer's own triggers.
-- Differs: in the catalogue.
-- Caller: adapters.sql.inspection, doctor
-- Index: system catalogue
select name from sqlite_master where type = 'trigger' and tbl_name = :table collate nocase order by 1

-- name: table_names
-- Purpose: name tables, to guess which one was meant.
-- Differs: in the catalogue.
-- Caller: adapters.sql.inspection, doctor
-- Index: system catalogue
select name from sqlite_master where type = 'table' and name not like 'sqlite\_%' escape '\' limit 2000

-- name: plan_update
-- Purpose: have the release planned, without running it.
-- Differs: EXPLAIN lists a program.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
explain update {table} as h set {assignments} where {held} and {due_upto}

-- name: plan_delete
-- Purpose: have the release of a rule that deletes planned, without running it.
-- Differs: EXPLAIN lists a program; the release names rows by rowid.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
explain delete from {table} as h where h.rowid > 0 and {held} and {due_upto}

-- name: plan_companion
-- Purpose: have a companion planned, without running it.
-- Differs: EXPLAIN lists a program.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
explain {companion}

-- name: plan_scan
-- Purpose: have the scan planned; the slot may name an index, which fails where it cannot serve.
-- Differs: EXPLAIN QUERY PLAN, and INDEXED BY as the proof.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
explain query plan select 1 from {table} h {indexed_by} where {held} and {due_range} order by {due} limit 500
