-- name: tenant_indexes
-- Purpose: name valid indexes whose first columns are tenant and due, those of partitions with them.
-- Caller: adapters.sql.due_by_tenant, once a minute while a rule has a backlog
-- Index: system catalogue
select i.relname::text, x.indpred is not null,
       array(select a.attname::text from unnest(x.indkey::int2[]) with ordinality k (attnum, place)
             join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.attnum
             where k.place <= x.indnkeyatts order by k.place),
       array(select c.relname::text from pg_partition_tree(x.indexrelid) p
             join pg_class c on c.oid = p.relid)
from pg_index x
join pg_class i on i.oid = x.indexrelid
join pg_attribute t on t.attrelid = x.indrelid and t.attnum = x.indkey[0]
join pg_attribute d on d.attrelid = x.indrelid and d.attnum = x.indkey[1]
where x.indrelid = to_regclass(:quoted) and x.indisvalid and x.indnkeyatts >= 2
  and t.attname = :tenant_name and d.attname = :due_name
order by x.indpred is null, i.relname

-- name: keep_whole_order
-- Purpose: let reading by tenant follow an index that orders by the key as well, and no other.
-- Caller: adapters.sql.due_by_tenant, in a transaction that reads by such an index
-- Index: none
select set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true)

-- name: find_tenants
-- Purpose: step from tenant to tenant along the index, and tell which have due rows.
-- Caller: adapters.sql.due_by_tenant, once a page of a round
-- Index: the customer's index on (tenant, due); the order by both keeps any other from serving
with recursive t (tenant, place) as (
    (select {tenant_column}, 1 from {table} h where {walked} and {after_tenant}
     order by {tenant_column}, {due} limit 1)
    union all
    select (select {tenant_column} from {table} h where {walked} and {tenant_column} > t.tenant
            order by {tenant_column}, {due} limit 1), t.place + 1
    from t where t.tenant is not null and t.place < :looks)
select f.tenant, f.is_due from (
    select {tenant_out} as tenant, t.place,
           (select true from {table} h
            where {held} and {due_range} and {behind}
              and ({tenant_column}, {due}) > (t.tenant, {due_from})
              and ({tenant_column}, {due}) <= (t.tenant, {due_to})
            order by {tenant_column}, {due} limit 1) is not null as is_due
    from t offset 0) f
where f.is_due or f.tenant is null or f.place = :looks
limit :limit

-- name: find_due_of_tenants
-- Purpose: read due rows of named tenants, each behind a place of its own.
-- Caller: adapters.sql.due_by_tenant, once a page
-- Index: the customer's index on (tenant, due); the order by both keeps any other from serving
select t.place, f.* from unnest(:tenants::text[], :dues::text[], :keys::text[])
    with ordinality as t (tenant, due, hold_key, place)
cross join lateral (
    select {key_text} as hold_key, {due_text} as due, {identity} as identity, {guard} as guard,
           {tenant} as tenant,
           exists (select 1 from {s}operation o
                   where o.rule = :rule and o.hold_key = {key_text}
                     and o.identity = any (array[{identity}])) as is_open
    from {table} h
    where {held} and {due_range} and {of_tenant} and {after_place}
    order by {tenant_column}, {scan_order} limit :each) f
limit :limit
