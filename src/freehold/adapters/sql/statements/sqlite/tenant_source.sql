-- name: standing_tenant_rows
-- Purpose: see which tenants the customer's table still names.
-- Differs: the ids arrive as JSON.
-- Caller: adapters.sql.tenant_source, before tenants become inactive
-- Index: the table's own, unique on its id
select {id_text}, {active} from json_each(:ids) n cross join {table} h on {id} = {one_id}

-- name: find_sourced_tenants
-- Purpose: page through active tenants that came from the customer's table.
-- Differs: truth is a number.
-- Caller: adapters.sql.tenant_source
-- Index: tenant_sourced
select id from {s}tenant
where from_source = 1 and active = 1 and id > :after_id order by id limit :limit

-- name: sourced_among
-- Purpose: see which of some tenants came from the customer's table.
-- Differs: the ids arrive as JSON.
-- Caller: adapters.sql.tenant_source
-- Index: the primary key
select id from {s}tenant where id in (select value from json_each(:ids)) and from_source = 1

-- name: mark_sourced
-- Purpose: remember that tenants came from the customer's table; return those that had not.
-- Differs: the ids arrive as JSON.
-- Caller: adapters.sql.tenant_source, once a page
-- Index: the primary key
update {s}tenant set from_source = 1
where id in (select value from json_each(:ids)) and from_source = 0 returning id

-- name: retire_sourced
-- Purpose: make tenants inactive that the customer's table names no more.
-- Differs: the ids arrive as JSON.
-- Caller: adapters.sql.tenant_source
-- Index: the primary key
update {s}tenant set active = 0, changed_at = :now
where id in (select value from json_each(:ids)) and from_source = 1 and active = 1
