-- name: database_name
-- Purpose: name the database, for a person to confirm.
-- Differs: it is a file.
-- Caller: adapters.sql.dropping
-- Index: none
select file from pragma_database_list where name = 'main'

-- name: ledger_relations
-- Purpose: list tables and views whose names begin like those of the ledger.
-- Differs: a prefix in the place of a schema.
-- Caller: adapters.sql.dropping
-- Index: system catalogue
select substr(name, length('{s}') + 1) from sqlite_master
where type in ('table', 'view') and substr(name, 1, length('{s}')) = '{s}'

-- name: foreign_dependents
-- Purpose: list what may hang onto the ledger: views, triggers and tables that name one of its tables.
-- Differs: the catalogue knows no dependencies; the caller looks for our names in the text.
-- Caller: adapters.sql.dropping
-- Index: system catalogue
select type, name, tbl_name, sql from sqlite_master
where type in ('table', 'view', 'trigger') and instr(sql, '{s}') > 0 order by name
