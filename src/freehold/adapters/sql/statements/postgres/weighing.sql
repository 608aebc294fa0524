-- name: weigh_overdue
-- Purpose: look at overdue rows behind the cursor, and count those without an open operation.
-- Caller: adapters.sql.weighing, when a scanned page holds one that an earlier scan did not see
-- Index: the customer's (partial) index on the due column; operation_identity
select count(*), count(*) filter (where not w.is_open)
from (
    select exists (select 1 from {s}operation o
                   where o.rule = :rule and o.hold_key = {key_text}
                     and o.identity = any (array[{identity}]))
           or coalesce({tenant} = any (:tenants::text[]), false) as is_open
    from {table} h
    where {held} and {due_range} and {after_cursor}
    order by {scan_order} limit :limit) w

-- name: weigh_before
-- Purpose: look at overdue rows up to the cursor, nearest first, and count those without an open operation.
-- Caller: adapters.sql.weighing, when a scanned page holds one that an earlier scan did not see
-- Index: the customer's (partial) index on the due column; operation_identity
select count(*), count(*) filter (where not b.is_open)
from (
    select exists (select 1 from {s}operation o
                   where o.rule = :rule and o.hold_key = {key_text}
                     and o.identity = any (array[{identity}]))
           or coalesce({tenant} = any (:tenants::text[]), false) as is_open
    from {table} h
    where {held} and {due_range} and {upto_cursor}
    order by {due} desc limit :limit) b

-- name: table_pages
-- Purpose: tell how large a table is, with its partitions.
-- Caller: adapters.sql.weighing, before a sample
-- Index: none; asks the file system
select greatest(pg_relation_size(to_regclass(:quoted)),
                (select coalesce(sum(pg_relation_size(p.relid)), 0)
                 from pg_partition_tree(to_regclass(:quoted)) p))::bigint / 8192

-- name: sample_held
-- Purpose: count held rows, and those overdue without an open operation, in some pages of a table.
-- Caller: adapters.sql.weighing, when more rows turned up overdue than are counted
-- Index: none, a bounded share of the pages; operation_identity
select count(*), count(*) filter (where {due_range} and not exists (
    select 1 from {s}operation o
    where o.rule = :rule and o.hold_key = {key_text} and o.identity = any (array[{identity}]))
    and not coalesce({tenant} = any (:tenants::text[]), false))
from {table} h tablesample system (:percent) where {held}
