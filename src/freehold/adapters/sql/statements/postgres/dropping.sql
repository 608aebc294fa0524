-- name: database_name
-- Purpose: name the database, for a person to confirm.
-- Caller: adapters.sql.dropping
-- Index: none
select current_database()

-- name: ledger_relations
-- Purpose: list tables, views and sequences of the ledger's schema.
-- Caller: adapters.sql.dropping
-- Index: system catalogue
select c.relname from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname || '.' = '{s}' and c.relkind in ('r', 'p', 'v', 'S')

-- name: foreign_dependents
-- Purpose: list what the customer hung onto the ledger: views, foreign keys, triggers.
-- Caller: adapters.sql.dropping
-- Index: system catalogue
with ours as (
    select c.oid from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname || '.' = '{s}' and c.relname = any (cast(:names as text[])))
select 'view ' || cast(cast(r.ev_class as regclass) as text)
from pg_catalog.pg_depend d join pg_catalog.pg_rewrite r on r.oid = d.objid
where d.classid = cast('pg_catalog.pg_rewrite' as regclass)
    and d.refobjid in (select oid from ours) and r.ev_class not in (select oid from ours)
union
select 'foreign key ' || k.conname || ' of ' || cast(cast(k.conrelid as regclass) as text)
from pg_catalog.pg_constraint k
where k.contype = 'f' and k.confrelid in (select oid from ours) and k.conrelid not in (select oid from ours)
union
select 'trigger ' || t.tgname || ' on ' || cast(cast(t.tgrelid as regclass) as text)
from pg_catalog.pg_trigger t
where not t.tgisinternal and t.tgrelid in (select oid from ours)
order by 1

-- name: bare_schema
-- Purpose: see whether the ledger's schema is empty by now, and ours to drop.
-- Caller: adapters.sql.dropping
-- Index: system catalogue
select not exists (
    select 1 from pg_catalog.pg_depend d
    where d.refclassid = cast('pg_catalog.pg_namespace' as regclass) and d.refobjid = n.oid),
    pg_catalog.pg_has_role(n.nspowner, 'member')
from pg_catalog.pg_namespace n where n.nspname || '.' = '{s}'

-- name: drop_schema
-- Purpose: drop the ledger's empty schema.
-- Caller: adapters.sql.dropping
-- Index: none
drop schema {schema} restrict
