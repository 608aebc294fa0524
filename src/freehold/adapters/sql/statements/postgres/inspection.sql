-- name: no_time_limit
-- Purpose: let an exact count take its time.
-- Caller: adapters.sql.inspection, plan --exact
-- Index: none
select set_config('statement_timeout', '0', true)

-- name: server_facts
-- Purpose: read version, role and the defaults that we override.
-- Caller: adapters.sql.inspection, doctor
-- Index: system catalogue
select current_setting('server_version_num')::int, current_user::text, r.rolsuper, r.rolbypassrls,
       (select reset_val from pg_settings where name = 'synchronous_commit'),
       (select reset_val from pg_settings where name = 'TimeZone')
from pg_roles r where r.rolname = current_user

-- name: table_facts
-- Purpose: read what stands behind a table's name and what this role may do there.
-- Caller: adapters.sql.inspection, doctor
-- Index: system catalogue
select c.oid::bigint, c.relkind::text, c.reltuples::bigint, row_security_active(c.oid),
       c.relkind = 'p' or pg_relation_size(c.oid) > 0,
       has_schema_privilege(n.oid, 'usage'), has_table_privilege(c.oid, 'delete'),
       has_table_privilege(c.oid, 'insert'), has_table_privilege(c.oid, 'truncate'),
       pg_has_role(c.relowner, 'usage')
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relname = :table and c.relkind in ('r', 'p', 'v', 'm', 'f')
  and case when :schema::text is null then pg_table_is_visible(c.oid) else n.nspname = :schema end

-- name: column_facts
-- Purpose: read a table's columns with length, enum labels and this role's rights.
-- Caller: adapters.sql.inspection, doctor
-- Index: system catalogue
select a.attname, format_type(a.atttypid, a.atttypmod),
       format_type(coalesce(nullif(t.typbasetype, 0), a.atttypid), -1), t.typcategory::text,
       not a.attnotnull,
       case when a.atttypid in ('varchar'::regtype, 'bpchar'::regtype) and a.atttypmod > 4
            then a.atttypmod - 4 end,
       array(select e.enumlabel::text from pg_enum e where e.enumtypid = a.atttypid
             order by e.enumsortorder),
       has_column_privilege(a.attrelid, a.attnum, 'select'),
       has_column_privilege(a.attrelid, a.attnum, 'update')
from pg_attribute a join pg_type t on t.oid = a.atttypid
where a.attrelid = :oid::oid and a.attnum > 0 and not a.attisdropped
order by a.attnum

-- name: index_facts
-- Purpose: read a table's valid indexes; a part that is an expression has an empty name.
-- Caller: adapters.sql.inspection, doctor
-- Index: system catalogue
select i.relname, x.indisunique, x.indpred is not null,
       array(select coalesce(a.attname::text, '')
             from unnest(x.indkey::int2[]) with ordinality k (attnum, place)
             left join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.attnum
             where k.place <= x.indnkeyatts order by k.place)
from pg_index x join pg_class i on i.oid = x.indexrelid
where x.indrelid = :oid::oid and x.indisvalid
order by i.relname

-- name: trigger_names
-- Purpose: name the customer's own triggers.
-- Caller: adapters.sql.inspection, doctor
-- Index: system catalogue
select tgname::text from pg_trigger where tgrelid = :oid::oid and not tgisinternal order by 1

-- name: table_names
-- Purpose: name tables, to guess which one was meant.
-- Caller: adapters.sql.inspection, doctor
-- Index: system catalogue
select case when pg_table_is_visible(c.oid) then c.relname::text
            else n.nspname || '.' || c.relname end
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
order by c.oid desc limit 2000

-- name: cast_literal
-- Purpose: see whether a literal fits a type; the slot is the catalogue's own name of it.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
select :value::text::{type}

-- name: plan_update
-- Purpose: have the release planned, without running it.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
explain update {table} h set {assignments} where {held} and {due_upto}

-- name: plan_delete
-- Purpose: have the release of a rule that deletes planned, without running it.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
explain delete from {table} h where {held} and {due_upto}

-- name: plan_companion
-- Purpose: have a companion planned, without running it.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
explain {companion}

-- name: plan_scan
-- Purpose: have the scan planned under the settings of production.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
explain (costs off) select 1 from {table} h where {held} and {due_range} order by {due} limit 500

-- name: prefer_order
-- Purpose: make the planner take an index on due if it can take one at all.
-- Caller: adapters.sql.inspection, doctor
-- Index: none
select set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true)
