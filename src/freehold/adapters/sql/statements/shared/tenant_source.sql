-- name: find_tenant_rows
-- Purpose: page through the customer's table of tenants in the order of its id.
-- Caller: adapters.sql.tenant_source
-- Index: the table's own, unique on its id
select {id_text}, {image}, {active} from {table} h where {place} order by {id} limit :limit
