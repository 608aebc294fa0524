-- name: standing_tenant_rows
-- Purpose: see which tenants the customer's table still names.
-- Caller: adapters.sql.tenant_source, before tenants become inactive
-- Index: the table's own, unique on its id
select {id_text}, {active} from {table} h
where {id} = any (array(select {one_id} from unnest(:ids::text[]) as n (value)))

-- name: find_sourced_tenants
-- Purpose: page through active tenants that came from the customer's table.
-- Caller: adapters.sql.tenant_source
-- Index: tenant_sourced
select id from {s}tenant
where from_source and active and id > :after_id order by id limit :limit

-- name: sourced_among
-- Purpose: see which of some tenants came from the customer's table.
-- Caller: adapters.sql.tenant_source
-- Index: the primary key
select id from {s}tenant where id = any (:ids::text[]) and from_source

-- name: mark_sourced
-- Purpose: remember that tenants came from the customer's table; return those that had not.
-- Caller: adapters.sql.tenant_source, once a page
-- Index: the primary key
update {s}tenant set from_source = true
where id = any (:ids::text[]) and not from_source returning id

-- name: retire_sourced
-- Purpose: make tenants inactive that the customer's table names no more.
-- Caller: adapters.sql.tenant_source
-- Index: the primary key
update {s}tenant set active = false, changed_at = :now
where id = any (:ids::text[]) and from_source and active
