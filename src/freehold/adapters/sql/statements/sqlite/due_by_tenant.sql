-- name: tenant_indexes
-- Purpose: name indexes whose first columns are tenant and due.
-- Differs: from the table's own pragma; an expression has no name.
-- Caller: adapters.sql.due_by_tenant, once a minute while a rule has a backlog
-- Index: system catalogue
select l.name, l.partial,
       (select json_group_array(name) from (select name from pragma_index_info(l.name) order by seqno)),
       json_array()
from pragma_index_list(:table_name) l
join pragma_index_info(l.name) t on t.seqno = 0 and t.name = :tenant_name collate nocase
join pragma_index_info(l.name) d on d.seqno = 1 and d.name = :due_name collate nocase
order by l.partial desc, l.seq

-- name: keep_whole_order
-- Purpose: let reading by tenant follow an index that orders by the key as well, and no other.
-- Differs: the planner does so by itself.
-- Caller: adapters.sql.due_by_tenant, in a transaction that reads by such an index
-- Index: none
select 1

-- name: find_tenants
-- Purpose: step from tenant to tenant along the index, and tell which have due rows.
-- Differs: the index is named, and the first step is wrapped for its order.
-- Caller: adapters.sql.due_by_tenant, once a page of a round
-- Index: the customer's index on (tenant, due)
with recursive t (tenant, place) as (
    select * from (
        select {tenant_column}, 1 from {table} h {indexed} where {walked} and {after_tenant}
        order by {tenant_column}, {due} limit 1)
    union all
    select (select {tenant_column} from {table} h {indexed} where {walked} and {tenant_column} > t.tenant
            order by {tenant_column}, {due} limit 1), t.place + 1
    from t where t.tenant is not null and t.place < :looks)
select f.tenant, f.is_due from (
    select {tenant_out} as tenant, t.place,
           (select 1 from {table} h {indexed}
            where {held} and {due_range} and {behind} and {tenant_column} = t.tenant
            order by {due} limit 1) is not null as is_due
    from t) f
where f.is_due or f.tenant is null or f.place = :looks
limit :limit

-- name: find_due_of_tenants
-- Purpose: read due rows of one tenant behind a place.
-- Differs: the index is named. There is no lateral join; a statement for each tenant costs no round trip.
-- Caller: adapters.sql.due_by_tenant, once a tenant and page
-- Index: the customer's index on (tenant, due)
select {key_text} as hold_key, {due_text} as due, {identity} as identity, {guard} as guard,
       {tenant} as tenant,
       exists (select 1 from {s}operation o
               where o.rule = :rule and o.hold_key = {key_text} and o.identity = {identity}) as is_open
from {table} h {indexed}
where {held} and {due_range} and {of_tenant} and {after_place}
order by {scan_order} limit :each
