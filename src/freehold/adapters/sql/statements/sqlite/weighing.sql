-- name: weigh_overdue
-- Purpose: look at overdue rows behind the cursor, and count those without an open operation.
-- Differs: the identity is compared bare.
-- Caller: adapters.sql.weighing, when a scanned page holds one that an earlier scan did not see
-- Index: the customer's (partial) index on the due column; operation_identity
select count(*), coalesce(sum(not w.is_open), 0)
from (
    select exists (select 1 from {s}operation o
                   where o.rule = :rule and o.hold_key = {key_text}
                     and o.identity = {identity})
           or coalesce({tenant} in (select value from json_each(:tenants)), 0) as is_open
    from {table} h
    where {held} and {due_range} and {after_cursor}
    order by {scan_order} limit :limit) w

-- name: weigh_before
-- Purpose: look at overdue rows up to the cursor, nearest first, and count those without an open operation.
-- Differs: the identity is compared bare.
-- Caller: adapters.sql.weighing, when a scanned page holds one that an earlier scan did not see
-- Index: the customer's (partial) index on the due column; operation_identity
select count(*), coalesce(sum(not b.is_open), 0)
from (
    select exists (select 1 from {s}operation o
                   where o.rule = :rule and o.hold_key = {key_text}
                     and o.identity = {identity})
           or coalesce({tenant} in (select value from json_each(:tenants)), 0) as is_open
    from {table} h
    where {held} and {due_range} and {upto_cursor}
    order by {due} desc limit :limit) b

-- name: is_without_rowid
-- Purpose: see whether rows can be looked up by number.
-- Differs: SQLite only.
-- Caller: adapters.sql.weighing, before a sample
-- Index: system catalogue
select 1 from pragma_table_list where schema = 'main' and name = :table collate nocase and wr = 1

-- name: sample_held
-- Purpose: count held rows, and those overdue without an open operation, among rows at even steps.
-- Differs: no TABLESAMPLE; looks up rows by number.
-- Caller: adapters.sql.weighing, when more rows turned up overdue than are counted
-- Index: the rowid; operation_identity
with recursive steps (step) as (
    select 0 union all select step + 1 from steps where step < :size - 1),
ends (low, high) as (
    select (select min(rowid) from {table}), (select max(rowid) from {table}))
select count(*), coalesce(sum({due_range} and not exists (
    select 1 from {s}operation o
    where o.rule = :rule and o.hold_key = {key_text} and o.identity = {identity})
    and not coalesce({tenant} in (select value from json_each(:tenants)), 0)), 0)
from ends cross join steps cross join {table} h on h.rowid = (
    select x.rowid from {table} x
    where x.rowid >= ends.low + (ends.high - ends.low) * steps.step / :size order by x.rowid limit 1)
where {held}
